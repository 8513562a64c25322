"""The settings of a fine-tuned model: the content of task.json in a model folder.

A Hugging Face folder without task.json is read too: its config.json names a class of Transformers and the labels. This
module does not import TensorFlow.
"""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections import Counter
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.architectures import ARCHITECTURES
from bert_tf.checkpoints.formats.keras_nlp_backbone import task_of_preset
from bert_tf.checkpoints.formats.kerashub import is_preset, own_entries, preset_config
from bert_tf.checkpoints.hub_repository import MODULES_FILE
from bert_tf.errors import CheckpointError, TaskError
from bert_tf.files import read_json
from bert_tf.finetuning.labels import composed
from bert_tf.tokenizers.vocabulary import CONFIG_FILE

if TYPE_CHECKING:
    from bert_tf.architectures.architecture import Architecture


TASKS = ("classify", "tag", "answer", "choose", "similarity")
POOLINGS = ("cls", "mean", "attention", "max")
#: The poolings of sentence-transformers that are read; "first" is its "cls", the hidden state of the first token.
SIMILARITY_POOLINGS = ("mean", "first", "max")
LOWER_IS_BETTER = ("mean_squared_error",)
FILE = "task.json"
SHORTEST = 8  # tokens: the least that a fine-tuned model reads
#: Switch of the Pooling module -> the word for it in the setting "pooling_mode" of newer versions.
POOLING_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLINGS_OF_MODES = {"cls": "first", "mean": "mean", "max": "max"}

# The end of a Transformers class name (for example BertForTokenClassification) -> the task.
_CLASSES = {
    "ForSequenceClassification": "classify",
    "ForTokenClassification": "tag",
    "ForQuestionAnswering": "answer",
    "ForMultipleChoice": "choose",
}
_MOST_LABELS = 100_000  # without names


@dataclass(frozen=True)
class TaskSettings:
    """The settings of one fine-tuned task.

    Args:
        task: str. One of `TASKS`.
        labels: tuple of str. The classes or tags, in the order of the logits, stored in NFC; empty for tasks without
            labels.
        pooling: str. How the vector of the sentence is computed, one of `POOLINGS`; "cls" is the pooler's output. For
            "similarity" one of `SIMILARITY_POOLINGS`.
        multi_label: bool. Whether an input can have several labels, each with its own probability (sigmoid).
        regression: bool. Whether the target is a number instead of a label.
        pair: bool. Whether an input is two texts; None if unknown (a classifier of Transformers).
        max_length: int. The number of tokens that an input, or a window of it, is cut to.
        metric: str. The metric that selects the best epoch, see `selection_score`.
        base_model: str. The name or folder of the model that has the tensors missing in the folder, or None.
        extra: dict of JSON values. Other settings of the task. "activation" is the activation of the head's own layer
            on the first token (`Architecture.sentence_heads`); without it the head reads the pooler's output.

    Raises: TaskError if the values do not fit together.

    Example:
        settings = TaskSettings("classify", labels=("negative", "positive"), max_length=64)
        longer = settings.replace(max_length=128)
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
        poolings = SIMILARITY_POOLINGS if self.task == "similarity" else POOLINGS
        if self.pooling not in poolings:
            raise TaskError(f"There is no pooling {self.pooling!r}; choose from {', '.join(poolings)}.")
        if self.multi_label and self.regression:
            raise TaskError("A task is either multi_label or regression, not both.")
        if not isinstance(self.max_length, int) or self.max_length < SHORTEST:
            raise TaskError(f"max_length is {self.max_length!r}; it must be a whole number of at least {SHORTEST}.")
        if not all(isinstance(label, str) for label in self.labels):
            raise TaskError(f"The labels must be strings, not {self.labels!r:.80}.")
        if len(set(self.labels)) < len(self.labels):
            raise TaskError(f"A label is given twice in {', '.join(self.labels):.80}.")
        # As they are read from files. A model that learned both forms as two classes keeps them.
        labels = tuple(map(composed, self.labels))
        if len(set(labels)) == len(labels):
            object.__setattr__(self, "labels", labels)

    @property
    def pools_first_token(self) -> bool:
        """Whether the head reads only the hidden state of the first token, through the pooler or its own layer."""
        return self.task == "choose" or (self.task, self.pooling) in (("classify", "cls"), ("similarity", "first"))

    def on(self, architecture: Architecture) -> "TaskSettings":
        """The settings of a new head on a model of an architecture.

        Args:
            architecture: `Architecture`.

        Returns: `TaskSettings`.

        Raises: TaskError if the head would read only the first token of a causal model, which sees only itself.
        """
        if not self.pools_first_token:
            return self
        if architecture.attention_direction == "left_to_right":
            remedy = {
                "classify": "--pooling mean, max or attention",
                "similarity": "--pooling mean or max",
                "choose": "a bidirectional model: choices are scored from the first token alone",
            }[self.task]
            raise TaskError(
                f"The first token of a {architecture.title.lower()} model sees only itself, so the prediction would be "
                f"the same for every text; give {remedy}."
            )
        head = architecture.sentence_heads.get(self.task)
        return self.replace(extra={**self.extra, "activation": head[0]}) if head else self

    def replace(self, **changes: Any) -> "TaskSettings":
        """A copy with changed settings, which are checked again."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as a dict of JSON values, as in task.json."""
        return {**dataclasses.asdict(self), "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "TaskSettings":
        """Makes the settings from the content of task.json; keys of later versions are ignored."""
        known = {item.name for item in dataclasses.fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in known})


def selection_score(scores: dict[str, Any], metric: str) -> float:
    """The number by which models are compared; higher is better.

    Args:
        scores: dict name -> number.
        metric: str. One of the names.

    Returns: float: the score, negated if lower is better; -inf if the score is missing or undefined.
    """
    if metric not in scores or math.isnan(scores[metric]):
        return -math.inf
    return -scores[metric] if metric in LOWER_IS_BETTER else scores[metric]


def score_text(value: float) -> str:
    """A score as it is printed: a metric with four decimals, a count (an integer) as it is."""
    return f"{value:,}" if isinstance(value, Integral) else f"{value:.4f}"


def undefined_note(scores: dict[str, Any]) -> str | None:
    """The sentence on the scores that are undefined; None if each is a number.

    Args:
        scores: dict name -> number.
    """
    names = " and ".join(name for name, value in scores.items() if isinstance(value, float) and math.isnan(value))
    if not names:
        return None
    return f"Undefined (nan): {names}, because all targets or all predictions are equal; give examples that differ."


def read_settings(folder: str | Path) -> TaskSettings | None:
    """Reads the task of a model folder.

    Args:
        folder: str or Path. A model folder of this project or of Hugging Face.

    Returns: `TaskSettings`, or None for a model without a task.

    Raises: CheckpointError or TaskError if task.json or config.json cannot be used; the message names the file.
    """
    path = Path(folder) / FILE
    if not path.is_file() and not is_preset(folder):
        return similarity_settings(folder) or _from_config(Path(folder) / "config.json")
    try:
        return _of_preset(folder) if is_preset(folder) else TaskSettings.from_dict(read_json(path))
    except (TaskError, TypeError) as error:
        raise TaskError(f"{path}: {error}") from error


def _of_preset(folder):
    """The settings of a text classifier of KerasHub, whose task.json is its own; None for another preset."""
    task, values = task_of_preset(folder) or (None, {})
    if task != "TextClassifier":
        return None
    own = own_entries(folder).get("task")
    if isinstance(own, dict):
        return TaskSettings.from_dict(own)
    config = preset_config(folder)
    outputs, activation = values.get("num_classes"), values.get("activation")
    if type(outputs) is not int or outputs < 1:
        raise TaskError(f"num_classes must be a whole number of at least 1, not {outputs!r}.")
    if activation not in (None, "linear", "softmax", "sigmoid"):
        raise TaskError(f"an activation {str(activation)!r:.60} of the classes is not read.")
    regression = outputs == 1 and activation != "sigmoid"
    return TaskSettings(
        "classify",
        () if regression else tuple(f"LABEL_{index}" for index in range(outputs)),
        multi_label=activation == "sigmoid",
        regression=regression,
        pair=None,
        max_length=config.max_tokens,
        metric="spearman" if regression else "accuracy",
    ).on(config.architecture)


def transformers_class(settings: TaskSettings, architecture: Architecture) -> str | None:
    """The Transformers class whose head computes the same as ours.

    Transformers has no CRF, and only the pooling `cls`. Its heads for classification and multiple choice on
    architectures without a pooler (DistilBERT, ELECTRA) have their own layer on the first token; heads that earlier
    versions of this project trained have a pooler instead.

    Args:
        settings: `TaskSettings`.
        architecture: `Architecture`.

    Returns: str, or None if there is no class with this head.
    """
    if settings.task == "similarity":
        return architecture.transformers_class(()) if architecture.in_transformers else None
    pooled = settings.task in ("classify", "choose")
    activation = architecture.sentence_heads.get(settings.task, (None,))[0]
    same = settings.pools_first_token and settings.extra.get("activation") == activation
    if architecture.prediction_head:
        same = settings.task == "choose" or settings.pooling in ("cls", "mean")
    if settings.extra.get("crf") or architecture.attention_direction != "bidirectional" or pooled and not same:
        return None
    ending = next(end for end, known in _CLASSES.items() if known == settings.task)
    return architecture.transformers_class(()).removesuffix("Model") + ending


def similarity_settings(folder: str | Path) -> TaskSettings | None:
    """Reads the task of a folder of sentence-transformers: a Transformer, a Pooling and perhaps a Normalize.

    Args:
        folder: str or Path. A model folder.

    Returns: `TaskSettings` of the task "similarity"; None without modules.json, and, with a warning, if the modules
        compute something else.

    Raises: CheckpointError if a file of the modules is missing or is not JSON.
    """
    folder = Path(folder)
    path = folder / MODULES_FILE
    if not path.is_file():
        return None
    try:
        modules = json.loads(path.read_text(encoding="utf-8"))
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
        paths = [folder / str(module["path"]) for module in modules]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} does not list modules of sentence-transformers ({error}).") from error
    if not all(part.resolve().is_relative_to(folder.resolve()) for part in paths):
        return None  # as in `encoder_folder`
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        return _encoder_only(path, f"the modules {', '.join(kinds)}")
    pooling_settings = read_json(paths[1] / "config.json")
    modes = [word for name, word in POOLING_MODES.items() if pooling_settings.get(name)]
    if "pooling_mode" in pooling_settings:  # newer versions
        mode = pooling_settings["pooling_mode"]
        modes = mode if isinstance(mode, list) else [mode]
    if len(modes) != 1 or str(modes[0]) not in POOLINGS_OF_MODES:
        return _encoder_only(path, f"the pooling {' and '.join(map(str, modes)) or 'none'}")
    library_settings = folder / "config_sentence_transformers.json"
    prompt = read_json(library_settings).get("default_prompt_name") if library_settings.is_file() else None
    if prompt is not None:
        warnings.warn(
            f"{library_settings}: sentence-transformers puts the prompt {prompt!r} before every text. Here texts are "
            "read as they are: write the prompt into them.",
            stacklevel=2,
        )
    encoder = paths[0] / "sentence_bert_config.json"
    values = read_json(encoder) if encoder.is_file() else {}
    return TaskSettings(
        "similarity",
        pooling=POOLINGS_OF_MODES[modes[0]],
        regression=True,
        pair=True,
        max_length=_tokens_read(paths[0], encoder, values.get("max_seq_length")),
        metric="spearman",
        extra={"normalize": kinds[2:] == ["Normalize"], "lower_case": bool(values.get("do_lower_case"))},
    )


def _tokens_read(folder, path, stated):
    """How many tokens sentence-transformers reads: as its settings state, else the most of its tokenizer and model."""
    config = read_json(folder / "config.json")
    most = _most_tokens(ARCHITECTURES.get(str(config.get("model_type", "bert"))), config)
    if stated is None:
        path = folder / CONFIG_FILE
        stated = read_json(path).get("model_max_length") if path.is_file() else None
    length = min(stated, most) if isinstance(stated, int) and stated > 0 else most
    if isinstance(stated, str) or length < SHORTEST:
        raise TaskError(f"{path} lets the model read {stated!r} tokens; it must be a number of at least {SHORTEST}.")
    return length


def _encoder_only(path, what):
    warnings.warn(
        f"{path}: {what} of sentence-transformers are not read; the encoder is read alone, without its sentence "
        "vectors.",
        stacklevel=3,
    )


def _first_position(architecture, config):
    """The row of the position table for the first token."""
    if architecture is None or not architecture.positions_after_pad:
        return 0
    return _number(architecture, config, "pad_token_id", 1) + 1


def _most_tokens(architecture, config):
    """The number of tokens that a model of Transformers reads."""
    return _number(architecture, config, "max_position_embeddings", 512) - _first_position(architecture, config)


def _number(architecture, config, name, default):
    """A number of config.json; where it is missing or null, that of the architecture, else `default`."""
    if config.get(name) is not None:
        return config[name]
    return architecture.defaults.get(name, default) if architecture else default


def _pooling(path, config, task, architecture):
    """The pooling of a sentence head that Transformers saved; config.json names it where heads have a choice."""
    if task != "classify" or architecture is None or not architecture.prediction_head:
        return "cls"
    pooling = config.get("classifier_pooling", "cls")
    if pooling not in ("cls", "mean"):
        raise CheckpointError(f"{path}: classifier_pooling is {pooling!r:.40}; Transformers has cls and mean.")
    return pooling


def _from_config(path):
    if not path.is_file():
        return None
    config = read_json(path)
    classes = config.get("architectures") or [""]
    if not isinstance(classes, list):
        raise CheckpointError(f"{path}: architectures must be a list of class names, not {classes!r:.60}.")
    task = next((task for end, task in _CLASSES.items() if str(classes[0]).endswith(end)), None)
    if task is None:
        return None
    architecture = ARCHITECTURES.get(str(config.get("model_type", "bert")))
    if architecture:
        _check_form(path, config, task, architecture)
    for name in ("max_position_embeddings", "pad_token_id", "num_labels"):
        if config.get(name) is not None and type(config[name]) is not int:
            raise CheckpointError(f"{path}: {name} must be a whole number, not {config[name]!r:.60}.")
    names = config.get("id2label") or _unnamed_labels(path, config)
    if not isinstance(names, dict):
        raise CheckpointError(f"{path}: id2label must be an object of numbers and labels, not {names!r:.60}.")
    try:
        labels = tuple(str(names[str(index)]) for index in range(len(names)))
    except (KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: id2label must name the labels 0 to {len(names) - 1}.") from error
    if len(set(labels)) < len(labels):
        repeated = Counter(labels).most_common(1)[0][0]
        raise CheckpointError(f"{path}: id2label has the label {repeated!r} twice; give one of them another name.")
    kind = config.get("problem_type")
    regression = task == "classify" and (kind == "regression" or kind is None and len(labels) == 1)
    if regression and len(labels) > 1:
        raise _not_supported(path, config, task, architecture, f"a regression of {len(labels)} values")
    settings = TaskSettings(
        task,
        labels if task in ("classify", "tag") and not regression else (),
        multi_label=kind == "multi_label_classification",
        regression=regression,
        pooling=_pooling(path, config, task, architecture),
        pair={"classify": None, "tag": False, "answer": True, "choose": True}[task],
        max_length=_most_tokens(architecture, config),
        metric={
            "classify": "spearman" if regression else "accuracy",
            "tag": "f1",
            "answer": "f1",
            "choose": "accuracy",
        }[task],
    )
    return settings.on(architecture) if architecture else settings


def _unnamed_labels(path, config):
    """The labels that Transformers gives a model without id2label: by default two."""
    count = 2 if config.get("num_labels") is None else config["num_labels"]
    if not 1 <= count <= _MOST_LABELS:
        raise CheckpointError(f"{path}: num_labels must be from 1 to {_MOST_LABELS:,}, not {count}.")
    return {str(index): f"LABEL_{index}" for index in range(count)}


def _check_form(path, config, task, architecture):
    """Raises TaskError if the config gives the Transformers head a form that is not supported here."""
    other = [
        f"{name} {config[name]!r}"
        for name, value in architecture.sentence_settings.items()
        if task == "choose" and config.get(name, value) != value
    ]
    if architecture.attention_direction != "bidirectional":
        other = [f"model_type {architecture.model_type!r}"]
    if other:
        raise _not_supported(path, config, task, architecture, ", ".join(other))


def _not_supported(path, config, task, architecture, form):
    encoder = (architecture or ARCHITECTURES["bert"]).transformers_class(())
    return TaskError(
        f"{path}: the head of {config['architectures'][0]} has a form that is not supported ({form}). To read the "
        f'encoder alone, set "architectures" to ["{encoder}"]; to {task} with it, fine-tune it here.'
    )
