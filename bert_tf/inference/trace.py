"""`Trace`: all values of one forward pass in one immutable object.

Dimension legend: T tokens, P masks, V vocabulary, L layers, N heads, H hidden size.
"""

from __future__ import annotations

import json
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bert_tf.errors import InputError
from bert_tf.inference.words import WordSpan, read_texts, words_of
from bert_tf.results import Result, frame
from bert_tf.tokenizers import Truncation

if TYPE_CHECKING:
    import pandas as pd

    from bert_tf.inference.model_inputs import PreparedInput
    from bert_tf.tokenizers import BaseTokenizer


class PairPrediction(Result, figures={"probabilities": "bert_tf.plots.predictions:pair_probabilities"}):
    """The prediction for a pair of texts: the base class of named tuples of two probabilities that add up to 1."""

    _asdict: Callable[[], dict[str, float]]

    @classmethod
    def from_logits(cls, logits: np.ndarray) -> Self:
        """Return the softmax of the head's two logits [2]."""
        difference = float(logits[1]) - float(logits[0])
        first = 0.5 * (1.0 - np.tanh(0.5 * difference))
        return cls(float(first), float(1.0 - first))  # type: ignore[call-arg]

    def to_dict(self) -> dict[str, float]:
        """Return a dict of answer -> probability."""
        return self._asdict()

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each answer."""
        return frame({"answer": list(self.to_dict()), "probability": list(self.to_dict().values())})

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return an empty dict: a pair prediction has no arrays."""
        return {}


class NextSentence(PairPrediction, namedtuple("NextSentence", ("is_next", "not_next"))):
    """The two probabilities of the next-sentence head; index 0 of its logits is IsNext."""


class SentenceOrder(PairPrediction, namedtuple("SentenceOrder", ("in_order", "swapped"))):
    """The two probabilities of the sentence-order head (ALBERT); index 0 of its logits is "in order"."""


def sigmoid(logits: Any) -> np.ndarray:
    """Return the probabilities, float32, of logits of any shape, without overflow."""
    return (0.5 * (1 + np.tanh(0.5 * np.asarray(logits, np.float32)))).astype(np.float32)


def hidden_states_of(trace: Trace) -> np.ndarray:
    """Return the hidden states of a trace, float32 [L+1, T, H].

    Raises:
        InputError: it holds none.
    """
    if trace.hidden_states is None:
        raise InputError("This trace holds no hidden states: trace again with hidden_states=True.")
    return trace.hidden_states


#: (head, output) of the heads whose outputs a trace holds.
HEAD_OUTPUTS = (
    ("mlm", "mlm_logits"),
    ("nsp", "nsp_logits"),
    ("sop", "sop_logits"),
    ("replaced", "replaced_logits"),
    ("pooler", "pooled_output"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Result):
    """The input and the outputs of one forward pass. The arrays are read-only.

    Attributes:
        model: str. The name of the model.
        heads: frozenset of str. The heads of the model, some of `bert_tf.model_outputs.ALL_HEADS`.
        text_a: str. The user's text.
        text_b: str or None. The user's second text.
        tokens: tuple of T str. The tokens, "[MASK]" at the masks.
        original_tokens: tuple of T str. The tokens before masking.
        token_ids: int32 [T]. The ids of `tokens`.
        original_ids: int32 [T]. The ids of `original_tokens`.
        offsets: tuple of T pairs or None. (first character, one after the last) in the user's text; None for tokens
            that the model adds.
        word_ids: tuple of T int or None. The number of the word in its text; None for tokens that the model adds.
        sources: tuple of T "a", "b" or None. The text of each token.
        segments: int32 [T]. The segment ids, 0 or 1.
        masks: tuple of P int. The masked positions, in ascending order.
        logits: float32 [P, V] or None. The MLM logits at the masks; None if the model has no MLM head.
        nsp: `NextSentence` or None. None without a second text or without an NSP head.
        attentions: float32 [L, N, T, T] or None. Rows are queries, columns are keys, rows add up to 1; None if not
            requested.
        hidden_states: float32 [L+1, T, H] or None. Index 0 has the embeddings; None if not requested.
        pooled: float32 [H] or None. The pooled output; None if the model has no pooler.
        truncated: `Truncation`. Zeros if nothing was cut.
        seconds: float. The wall time of tokenization and forward pass.
        sop: `SentenceOrder` or None. None without a second text or without a sentence-order head.
        replaced: float32 [T] or None. The probability that a token was replaced; None if the model has no head for
            it.
    """

    model: str
    heads: frozenset[str]
    text_a: str
    text_b: str | None
    tokens: tuple[str, ...]
    original_tokens: tuple[str, ...]
    token_ids: np.ndarray
    original_ids: np.ndarray
    offsets: tuple[Any, ...]
    word_ids: tuple[int | None, ...]
    sources: tuple[str | None, ...]
    segments: np.ndarray
    masks: tuple[int, ...]
    logits: np.ndarray | None
    nsp: NextSentence | None
    attentions: np.ndarray | None
    hidden_states: np.ndarray | None
    pooled: np.ndarray | None
    truncated: Truncation
    seconds: float
    sop: SentenceOrder | None = None
    replaced: np.ndarray | None = None

    @classmethod
    def from_results(
        cls,
        prepared: PreparedInput,
        results: dict[str, Any],
        tokenizer: BaseTokenizer,
        model: str,
        heads: frozenset[str],
        seconds: float,
    ) -> Trace:
        """Create the trace of one input.

        Args:
            prepared: `PreparedInput`. The input.
            results: dict of output name -> float32 array without a batch axis. An output of `HEAD_OUTPUTS` for each of
                the heads, and optionally "attentions" and "hidden_states".
            tokenizer: tokenizer of the model.
            model: str. The name of the model.
            heads: frozenset of str. The heads of the model.
            seconds: float. The wall time.
        """
        encoding, tokens = prepared.encoding, list(prepared.encoding.tokens)
        for position in prepared.masks:
            tokens[position] = tokenizer.id_to_token(tokenizer.mask_id)
        paired = prepared.text_b is not None
        return cls(
            model=model,
            heads=heads,
            text_a=prepared.text_a,
            text_b=prepared.text_b,
            tokens=tuple(tokens),
            original_tokens=tuple(encoding.tokens),
            token_ids=prepared.token_ids,
            original_ids=encoding.token_ids,
            offsets=tuple(encoding.offsets),
            word_ids=tuple(encoding.word_ids),
            sources=tuple(encoding.sources),
            segments=encoding.segment_ids,
            masks=prepared.masks,
            truncated=encoding.truncated,
            nsp=NextSentence.from_logits(results["nsp_logits"]) if paired and "nsp" in heads else None,
            sop=SentenceOrder.from_logits(results["sop_logits"]) if paired and "sop" in heads else None,
            replaced=sigmoid(results["replaced_logits"]) if "replaced" in heads else None,
            logits=results.get("mlm_logits"),
            attentions=results.get("attentions"),
            hidden_states=results.get("hidden_states"),
            pooled=results.get("pooled_output"),
            seconds=seconds,
        )

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                read_only = value.view()
                read_only.flags.writeable = False
                object.__setattr__(self, field.name, read_only)

    def __repr__(self) -> str:
        return f"Trace({self.model!r}, {' '.join(self.tokens)!r:.80}, masks={self.masks})"

    @property
    def length(self) -> int:
        """The number T of tokens, with the special tokens that the model adds."""
        return len(self.tokens)

    def words(self) -> tuple[WordSpan, ...]:
        """Return the words of both texts in reading order, as `WordSpan`s."""
        return words_of(self, self.text_a, self.text_b)

    def read_texts(self) -> tuple[str, str | None]:
        """Return the two texts without the ends that were cut off."""
        return read_texts(self, self.text_a, self.text_b)

    def to_dict(self, arrays: bool = False) -> dict[str, Any]:
        """Return a dict of plain values for JSON.

        Args:
            arrays: bool. Whether to include the large arrays (logits, attentions, hidden_states, pooled) as nested
                lists.
        """
        plain: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _LARGE:
                if arrays:
                    plain[field.name] = None if value is None else value.tolist()
            elif field.name == "heads":
                plain["heads"] = sorted(value)
            elif field.name in ("nsp", "sop"):
                plain[field.name] = None if value is None else value.to_dict()
            elif field.name == "truncated":
                plain[field.name] = value._asdict()
            elif isinstance(value, np.ndarray):
                plain[field.name] = value.tolist()
            elif isinstance(value, tuple):
                plain[field.name] = [list(entry) if isinstance(entry, tuple) else entry for entry in value]
            else:
                plain[field.name] = value
        return plain

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each token."""
        columns = {
            "position": np.arange(self.length),
            "token": self.tokens,
            "original_token": self.original_tokens,
            "token_id": self.token_ids,
            "source": self.sources,
            "word": self.word_ids,
            "masked": [position in self.masks for position in range(self.length)],
        }
        return frame(columns if self.replaced is None else {**columns, "replaced": self.replaced})

    def _repr_html_(self) -> str:
        """Attention as lines between the tokens; a table of the tokens if the trace has no attention maps."""
        if self.attentions is None:
            return super()._repr_html_()
        from bert_tf.plots.attention.lines import lines_html

        return lines_html(self)

    def save_npz(self, file: Any) -> None:
        """Write the trace as a compressed .npz: each large array under its name, the rest as JSON under "trace".

        Args:
            file: path or binary file object. `numpy.load(file)` reads it; nothing in it is pickled.
        """
        present = {name: getattr(self, name) for name in _LARGE if getattr(self, name) is not None}
        np.savez_compressed(file, trace=np.array(json.dumps(self.to_dict())), **present)


_LARGE = ("logits", "attentions", "hidden_states", "pooled")
