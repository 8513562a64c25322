"""What a fine-tuned model was made for: the content of a model folder's task.json. No TensorFlow.

A folder of Hugging Face's without task.json is understood too: its config.json names a class of Transformers
and the labels.
"""

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path

from bert_tf.architectures import ARCHITECTURES
from bert_tf.errors import CheckpointError, TaskError
from bert_tf.files import read_json

TASKS = ("classify", "tag", "answer", "choose")
POOLINGS = ("cls", "mean", "attention", "max")
LOWER_IS_BETTER = ("mean_squared_error",)
FILE = "task.json"

# The end of Transformers' class names (BertForTokenClassification, say) -> the task.
_CLASSES = {
    "ForSequenceClassification": "classify",
    "ForTokenClassification": "tag",
    "ForQuestionAnswering": "answer",
    "ForMultipleChoice": "choose",
}


@dataclass(frozen=True)
class TaskSettings:
    """The settings of one fine-tuned task.

    Args:
        task: one of `TASKS`.
        labels: names of the classes or tags, in the order of the logits; empty for the tasks without.
        pooling: how the sentence's vector is made, one of `POOLINGS`; "cls" is the pooler's output.
        multi_label: several labels at once, each with a probability of its own (sigmoid).
        regression: one number instead of labels.
        pair: whether the inputs are two texts; None where nothing says so (a classifier of Transformers').
        max_length: tokens that an input, or a window of it, is cut to.
        metric: the name in the scores that the best epoch is chosen by, see `selection_score`.
        base_model: name or folder of the model whose tensors stand in for those that the folder lacks, or
        None. extra: what else a family needs, JSON-able. "activation": of the layer on the first token that a head
        brings itself (`Architecture.sentence_heads`); without it the pooler's output is read.

    Raises:
        TaskError: on values that do not go together.
    """

    task: str
    labels: tuple = ()
    pooling: str = "cls"
    multi_label: bool = False
    regression: bool = False
    pair: bool | None = False
    max_length: int = 128
    metric: str = "accuracy"
    base_model: str | None = None
    extra: dict = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "labels", tuple(self.labels))
        if self.task not in TASKS:
            raise TaskError(f"There is no task {self.task!r}; choose from {', '.join(TASKS)}.")
        if self.pooling not in POOLINGS:
            raise TaskError(f"There is no pooling {self.pooling!r}; choose from {', '.join(POOLINGS)}.")
        if self.multi_label and self.regression:
            raise TaskError("A task is either multi_label or regression, not both.")
        if not isinstance(self.max_length, int) or self.max_length < 8:
            raise TaskError(f"max_length is {self.max_length!r}; it must be a whole number of at least 8.")
        if not all(isinstance(label, str) for label in self.labels):
            raise TaskError(f"The labels must be strings, not {self.labels!r:.80}.")
        if len(set(self.labels)) < len(self.labels):
            raise TaskError(f"A label is given twice in {', '.join(self.labels):.80}.")

    @property
    def pools_first_token(self):
        """Whether the head reads the first token's state alone, be it through the pooler or a layer of its own."""
        return self.task == "choose" or self.task == "classify" and self.pooling == "cls"

    def on(self, architecture):
        """The settings for a fresh head on a model of this architecture.

        Raises: TaskError: the head would read the first token alone, and that one has seen nothing but itself.
        """
        if not self.pools_first_token:
            return self
        if architecture.attention_direction == "left_to_right":
            remedy = (
                "--pooling mean, max or attention"
                if self.task == "classify"
                else "a model that reads both ways: choices are judged by the first token alone"
            )
            raise TaskError(
                f"The first token of a {architecture.title.lower()} reader sees nothing but itself and would say "
                f"the same of every text; give {remedy}."
            )
        known = architecture.sentence_heads.get(self.task)
        return self.replace(extra={**self.extra, "activation": known[0]}) if known else self

    def replace(self, **changes):
        """A copy with some settings changed (and checked again)."""
        return dataclasses.replace(self, **changes)

    def to_dict(self):
        """As in task.json."""
        return {**dataclasses.asdict(self), "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, values):
        """From task.json's content; keys of later versions are passed over."""
        known = {item.name for item in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in known})


def selection_score(scores, metric):
    """What models are compared by: the higher the better.

    Args: scores: dict name -> number. metric: one of the names.

    Returns: the score, with its sign turned where lower is better; -inf where it is missing.
    """
    if metric not in scores:
        return -math.inf
    return -scores[metric] if metric in LOWER_IS_BETTER else scores[metric]


def read_settings(folder):
    """The task of a model folder.

    Args:
        folder: path of a folder of this project's or of Hugging Face's.

    Returns: `TaskSettings`, or None for a model without a task.

    Raises:
        CheckpointError, TaskError: a task.json or config.json that cannot be used; the message names the
            file.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return _from_config(Path(folder) / "config.json")
    try:
        return TaskSettings.from_dict(read_json(path))
    except (TaskError, TypeError) as error:
        raise TaskError(f"{path}: {error}") from error


def transformers_class(settings, architecture):
    """The class of Transformers whose head computes what ours does.

    It has no CRF, and of the poolings `cls` alone. Its classifiers and choosers of architectures that have no pooler
    (DistilBERT, ELECTRA) bring a layer of their own; heads that were trained here before had the pooler in its place.

    Args: settings: `TaskSettings`. architecture: an `Architecture`.

    Returns: str, or None where there is no such class.
    """
    pooled = settings.task in ("classify", "choose")
    activation = architecture.sentence_heads.get(settings.task, (None,))[0]
    same = settings.pools_first_token and settings.extra.get("activation") == activation
    if settings.extra.get("crf") or architecture.attention_direction != "bidirectional" or pooled and not same:
        return None
    ending = next(end for end, known in _CLASSES.items() if known == settings.task)
    return architecture.transformers_class(()).removesuffix("Model") + ending


def _first_position(architecture, config):
    """Row of the position table that the first token takes."""
    return config.get("pad_token_id", 1) + 1 if architecture and architecture.positions_after_pad else 0


def _from_config(path):
    if not path.is_file():
        return None
    config = read_json(path)
    classes = config.get("architectures") or [""]
    task = next((task for end, task in _CLASSES.items() if str(classes[0]).endswith(end)), None)
    if task is None:
        return None
    architecture = ARCHITECTURES.get(config.get("model_type", "bert"))
    if architecture:
        _check_form(path, config, task, architecture)
    names = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    try:
        labels = tuple(str(names[str(index)]) for index in range(len(names)))
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: id2label must name the labels 0 to {len(names) - 1}.") from error
    kind = config.get("problem_type")
    regression = task == "classify" and (kind == "regression" or kind is None and len(labels) == 1)
    settings = TaskSettings(
        task,
        labels if task in ("classify", "tag") and not regression else (),
        multi_label=kind == "multi_label_classification",
        regression=regression,
        pair={"classify": None, "tag": False, "answer": True, "choose": True}[task],
        max_length=min(512, config.get("max_position_embeddings", 512) - _first_position(architecture, config)),
        metric={
            "classify": "spearman" if regression else "accuracy",
            "tag": "f1",
            "answer": "f1",
            "choose": "accuracy",
        }[task],
    )
    return settings.on(architecture) if architecture else settings


def _check_form(path, config, task, architecture):
    """Raises TaskError where the settings of Transformers' class give its head a form that ours has not."""
    other = [
        f"{name} {config[name]!r}"
        for name, value in architecture.sentence_settings.items()
        if task == "choose" and config.get(name, value) != value
    ]
    if architecture.attention_direction != "bidirectional":
        other = [f"model_type {architecture.model_type!r}"]
    if other:
        raise TaskError(
            f"{path}: the head of {config['architectures'][0]} has another form than those here ({', '.join(other)}). "
            f'To read the encoder alone, set "architectures" to ["{architecture.transformers_class(())}"]; to {task} '
            "with it, fine-tune it here."
        )
