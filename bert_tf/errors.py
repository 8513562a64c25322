"""The errors that a user can cause, each with one clear sentence: inputs, texts, vocabularies, model folders, tasks."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any


class InputError(ValueError):
    """An invalid input; the message says what to change."""


class EmptyText(InputError):
    """A text without tokens."""


class NothingToPredict(InputError):
    """An input without a masked token and without a second text."""


class MaskPositionError(InputError):
    """A position to mask that is outside the sequence or holds a special token that the model adds."""


class WordNotFound(InputError):
    """A word to mask that is not in the texts."""


class MaskTruncated(InputError):
    """A mask in the part of a text that was cut off because it is longer than the model's limit."""


class NotComparable(InputError):
    """Two traces of different texts."""


class Cancelled(Exception):
    """A computation that its progress callback stopped by returning False."""


def report(progress: Callable[[int, int], Any] | None, done: int, total: int) -> None:
    """Call a progress callback, if there is one.

    Args:
        progress: callable or None. It is called as progress(done, total).
        done: int. The number of finished steps.
        total: int. The number of all steps.

    Raises:
        Cancelled: the callback returned False. None, the result of a callback without a return value, continues.
    """
    if progress is not None and progress(done, total) is False:
        raise Cancelled(f"Stopped after {done} of {total}.")


def refuse_one_alone(inputs: Any, name: str, error: type[Exception] = InputError) -> None:
    """Raise `error` if `inputs` is one input alone, which would be taken apart, and not an iterable of inputs.

    Args:
        inputs: what the caller gave.
        name: str. What the inputs are, such as "texts".
    """
    if isinstance(inputs, (str, bytes, Mapping)):
        raise error(f"Give a list of {name}, such as [{inputs!r:.60}], not one alone.")


def checked_text(text: Any, name: str) -> str:
    """Return `text` if it is a string that is not blank.

    Raises:
        InputError: it is None or no `str`.
        EmptyText: it is empty or only white space.
    """
    if text is None:
        raise InputError(f"{name} is missing or null: give it at least one word.")
    if not isinstance(text, str):
        raise InputError(f"{name} must be a string, not {type(text).__name__} ({text!r:.60}).")
    if not text.strip():
        raise EmptyText(f"{name} is empty: give it at least one word.")
    return text


def checked_pair(text_a: Any, text_b: Any) -> tuple[str, str | None]:
    """Check two texts and return them; a `text_b` that is None or blank becomes None (no pair).

    Raises:
        InputError, EmptyText: as in `checked_text`.
    """
    text_a = checked_text(text_a, "text_a")
    if text_b is None or (isinstance(text_b, str) and not text_b.strip()):
        return text_a, None
    return text_a, checked_text(text_b, "text_b")


class TextError(ValueError):
    """A text that cannot be tokenized, or lengths that cannot be packed."""


class VocabularyError(ValueError):
    """A vocabulary that cannot be used; the message names the file and the line."""


def check_text(text: object, where: str = "The text") -> None:
    """Check that a value is a valid text.

    Args:
        text: object. The value.
        where: str. The name of the value in the message.

    Raises:
        TextError: it is not a str, or it holds half a surrogate pair.
    """
    if not isinstance(text, str):
        kind = type(text).__name__
        raise TextError(f"{where} must be a str, not {kind}: decode bytes, and convert other values.")
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        raise TextError(
            f"{where} is broken at character {error.start}: U+{code:04X} is half a surrogate pair; "
            "read the text again with its correct encoding."
        ) from None


class CheckpointError(ValueError):
    """A model folder that cannot be read or written; the message names the file, the tensor and what to do."""


class UnknownModel(CheckpointError):
    """A model name that is neither installed nor released, or a released model that is not on this machine."""


class DownloadError(OSError):
    """A download that failed; the message says why, and whether it can be resumed."""


_HEAD_NAMES = {
    "pooler": "pooler",
    "mlm": "masked language model head",
    "nsp": "next-sentence head",
    "sop": "sentence-order head",
    "replaced": "replaced-token head",
    "classes": "head of a text classifier",
}
_HEAD_USES = {
    "pooler": "give a pooled output",
    "mlm": "predict masked words",
    "nsp": "score whether one sentence follows another",
    "sop": "score whether two texts are in order",
    "replaced": "score which tokens were replaced",
    "classes": "classify texts",
}


class MissingHead(CheckpointError):
    """A prediction was requested from a model whose checkpoint has no weights for it.

    Args:
        head: str. One of `bert_tf.model_outputs.ALL_HEADS`, or "classes" (a fine-tuned classifier); several of which
            one is enough are joined with "|".
        model: str. The name of the model, for the message.

    Attributes:
        sentence: str. The message without the command that trains a head, for readers who have no command line.
    """

    def __init__(self, head: str, model: str = "this model") -> None:
        self.head, self.model = head, str(model)
        heads = head.split("|")
        command = "finetune" if heads == ["classes"] else "pretrain"
        # Which of several heads is wanted is not known, nor which command trains it.
        training = f", or train one with `python -m bert_tf {command}`" if len(heads) == 1 else ""
        sentence = (
            f"{self.model} has {_listed([f'no {_HEAD_NAMES[name]}' for name in heads], 'and')} in its checkpoint, so "
            f"it cannot {_listed([_HEAD_USES[name] for name in heads], 'or')}; choose a model that has one"
        )
        self.sentence = f"{sentence}."
        super().__init__(f"{sentence}{training}.")


def json_kind(value: Any) -> str:
    """What JSON calls a value of this type, for messages: "null" for None, "array" for a list."""
    kinds = {list: "array", dict: "object", str: "string", int: "number", float: "number", bool: "boolean"}
    return kinds.get(type(value), "null")


def _listed(words, last):
    """Words with commas between them, and `last` before the last one."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def did_you_mean(names: Iterable[object]) -> str:
    """The end of an error message: " Did you mean A, B or C?" of names that are similar to a wrong one; "" for none."""
    near = [str(name) for name in names]
    return f" Did you mean {_listed(near, 'or')}?" if near else ""


def post_norm_needed(analysis: str, name: str, layer: str) -> InputError:
    """The error of an analysis that goes back through the layer normalisation after each block.

    Args:
        analysis: str. The analysis.
        name: str. The name of the model.
        layer: str. The class of its layers.
    """
    return InputError(
        f"{analysis} needs BERT's encoder layer, which normalises the sum after each block; {name} has {layer}. "
        "Ablation, patching and gradients work with any layer."
    )


def check_scores(config: Any, name: str, analysis: str) -> None:
    """Raise InputError unless the attention scores of a model are products of queries and keys alone.

    Args:
        config: `BertConfig`. The settings of the model.
        name: str. The name of the model, for the message.
        analysis: str. The analysis, for the message.
    """
    if config.architecture.score_terms > 1:
        raise InputError(
            f"{analysis} needs attention scores that compare the contents of two tokens alone; in {name} they also "
            "compare contents with relative positions. Attention maps, ablation and gradients work with it."
        )


def check_layer(layer: int, layers: int) -> None:
    """Raise InputError unless a model of `layers` layers has the layer, numbered from 0."""
    if not 0 <= layer < layers:
        raise InputError(f"There is no layer {layer}; the model has layers 0 to {layers - 1}.")


def check_hidden_state(layer: int, layers: int) -> None:
    """Raise InputError unless a model of `layers` layers has the hidden state; 0 is the embeddings."""
    if not 0 <= layer <= layers:
        raise InputError(f"There is no layer {layer}: give 0 (the embeddings) to {layers}.")


def require_head(heads: Collection[str], head: str, model: str = "this model") -> None:
    """Check that a model has a head.

    Args:
        heads: collection of str. The heads of the model (`bert_heads`).
        head: str. The head that is needed; several of which one is enough are joined with "|".
        model: str. The name of the model, for the message.

    Raises:
        MissingHead: the model does not have the head.
    """
    if not set(head.split("|")) & set(heads):
        raise MissingHead(head, model)


class RuntimeInputError(ValueError):
    """A batch, precision, engine or output that the runtime does not support; the message says what to change."""


class TaskError(ValueError):
    """Invalid settings of a task, or an invalid request to a task model."""


class DataError(ValueError):
    """A file of examples that cannot be used; the message names the file and, if there is one, the line."""


class RowError(DataError):
    """A row without a required field or text."""
