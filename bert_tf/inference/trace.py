"""Everything one forward pass tells, in one immutable object.

Dimension legend: T tokens, P masks, V vocabulary, L layers, N heads, H hidden.
"""

import json
from collections import namedtuple
from dataclasses import dataclass, fields
from typing import Any, Optional, Self

import numpy as np

from bert_tf.inference.model_inputs import PreparedInput
from bert_tf.inference.words import WordSpan, words_of
from bert_tf.results import Result, frame
from bert_tf.tokenizers import BaseTokenizer, Truncation


class PairPrediction(Result, figures={"probabilities": "bert_tf.plots.predictions:pair_probabilities"}):
    """What a head says of a pair of texts: the base of named tuples of two probabilities that add up to 1."""

    @classmethod
    def from_logits(cls, logits: np.ndarray) -> Self:
        """Softmax of the head's two logits [2]."""
        difference = float(logits[1]) - float(logits[0])
        first = 0.5 * (1.0 - np.tanh(0.5 * difference))
        pair: Any = cls  # the two fields belong to the named tuples below
        return pair(float(first), float(1.0 - first))

    # `self` is Any for the same reason.
    def to_dict(self: Any) -> dict[str, float]:
        """Answer -> probability."""
        return self._asdict()

    def to_frame(self: Any) -> Any:
        """A row for each answer."""
        return frame({"answer": self._fields, "probability": tuple(self)})

    def to_arrays(self) -> dict[str, np.ndarray]:
        """There are none."""
        return {}


class NextSentence(PairPrediction, namedtuple("NextSentence", ("is_next", "not_next"))):
    """The next-sentence head's two probabilities; index 0 of its logits is IsNext."""


class SentenceOrder(PairPrediction, namedtuple("SentenceOrder", ("in_order", "swapped"))):
    """The sentence-order head's two probabilities (ALBERT); index 0 of its logits is in order."""


def sigmoid(logits: Any) -> np.ndarray:
    """Probabilities float32 of logits of any shape, without overflow."""
    return (0.5 * (1 + np.tanh(0.5 * np.asarray(logits, np.float32)))).astype(np.float32)


#: (Head, what it gives) of the heads that a trace tells of.
HEAD_OUTPUTS = (
    ("mlm", "mlm_logits"),
    ("nsp", "nsp_logits"),
    ("sop", "sop_logits"),
    ("replaced", "replaced_logits"),
    ("pooler", "pooled_output"),
)


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Result):
    """What went into one forward pass and what came out of it. Its arrays are read-only.

    Attributes:
        model: name of the model.
        heads: those the model has, of `bert_tf.models.ALL_HEADS`.
        text_a, text_b: the user's texts; `text_b` is None when there was no pair.
        tokens: T strings, "[MASK]" where masked.
        original_tokens: T strings as the tokenizer read them.
        token_ids, original_ids: int32 [T], the same as ids.
        offsets: T pairs (first character, one after the last) in the user's text, None for tokens the model
            adds.
        word_ids: T word numbers, counted in each text apart, None for tokens the model adds.
        sources: T of "a", "b" or None.
        segments: int32 [T], 0 or 1.
        masks: the P masked positions, ascending.
        logits: float32 [P, V], MLM logits at the masks; None if the model has no MLM head.
        nsp: `NextSentence`; None without a second text or without an NSP head.
        attentions: float32 [L, N, T, T], row: query, column: key, rows add up to 1; None if not asked for.
        hidden_states: float32 [L+1, T, H], index 0 the embeddings; None if not asked for.
        pooled: float32 [H]; None if the model has no pooler.
        truncated: `Truncation`, zeros if everything was read.
        seconds: wall time of tokenising and the forward pass.
        sop: `SentenceOrder`; None without a second text or without such a head.
        replaced: float32 [T], probability that a token was put there in the place of another; None if the
            model has no head for it.
    """

    model: str
    heads: frozenset
    text_a: str
    text_b: Optional[str]
    tokens: tuple
    original_tokens: tuple
    token_ids: np.ndarray
    original_ids: np.ndarray
    offsets: tuple
    word_ids: tuple
    sources: tuple
    segments: np.ndarray
    masks: tuple
    logits: Optional[np.ndarray]
    nsp: Optional[NextSentence]
    attentions: Optional[np.ndarray]
    hidden_states: Optional[np.ndarray]
    pooled: Optional[np.ndarray]
    truncated: Truncation
    seconds: float
    sop: Optional[SentenceOrder] = None
    replaced: Optional[np.ndarray] = None

    @classmethod
    def from_results(
        cls,
        ready: PreparedInput,
        results: dict[str, np.ndarray],
        tokenizer: BaseTokenizer,
        model: str,
        heads: frozenset,
        seconds: float,
    ) -> Self:
        """The trace of one input.

        Args:
            ready: the input, a `PreparedInput`.
            results: dict name -> float32 array without a batch axis: an output of `HEAD_OUTPUTS` for each of the heads,
                "attentions" and "hidden_states" if they are to be kept.
            tokenizer: the model's. model: its name. heads: frozenset of those it has. seconds: wall time.
        """
        encoding, tokens = ready.encoding, list(ready.encoding.tokens)
        for position in ready.masks:
            tokens[position] = tokenizer.id_to_token(tokenizer.mask_id)
        paired = ready.text_b is not None
        return cls(
            model=model,
            heads=heads,
            text_a=ready.text_a,
            text_b=ready.text_b,
            tokens=tuple(tokens),
            original_tokens=tuple(encoding.tokens),
            token_ids=ready.token_ids,
            original_ids=encoding.token_ids,
            offsets=tuple(encoding.offsets),
            word_ids=tuple(encoding.word_ids),
            sources=tuple(encoding.sources),
            segments=encoding.segment_ids,
            masks=ready.masks,
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

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                frozen = value.view()
                frozen.flags.writeable = False
                object.__setattr__(self, field.name, frozen)

    def __repr__(self):
        return f"Trace({self.model!r}, {' '.join(self.tokens)!r:.80}, masks={self.masks})"

    @property
    def length(self) -> int:
        """Number of tokens T, the model's own special tokens included."""
        return len(self.tokens)

    def words(self) -> tuple[WordSpan, ...]:
        """The words of both texts in reading order, as `WordSpan`s."""
        return words_of(self, self.text_a, self.text_b)

    def to_dict(self, arrays: bool = False) -> dict[str, Any]:
        """Plain Python values that `json.dumps` takes.

        Args:
            arrays: whether the large arrays (logits, attentions, hidden_states, pooled) come along, as nested
                lists.
        """
        plain = {}
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

    def to_frame(self) -> Any:
        """A row for each token."""
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

    def _repr_html_(self):
        """The attention of the heads as lines between the tokens; the table of a trace without attention maps."""
        if self.attentions is None:
            return super()._repr_html_()
        from bert_tf.plots.attention.lines import lines_html

        return lines_html(self)

    def save_npz(self, file: Any) -> None:
        """Write all of it as a compressed .npz: every array under its name, the rest as JSON under "trace".

        Args:
            file: a path or a binary file object. Read it back with `numpy.load(file)`; nothing in it is
                pickled.
        """
        present = {name: getattr(self, name) for name in _LARGE if getattr(self, name) is not None}
        np.savez_compressed(file, trace=np.array(json.dumps(self.to_dict())), **present)


_LARGE = ("logits", "attentions", "hidden_states", "pooled")
