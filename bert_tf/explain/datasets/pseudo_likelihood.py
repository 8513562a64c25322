"""Pseudo-log-likelihood: how likely a masked language model finds a text, each token predicted from all the others.

Dimension legend: T tokens, B rows, V vocabulary. Source: Salazar et al. 2020, "Masked Language Model
Scoring"; for words of several pieces Kauf and Ivanova 2023, "A Better Way to Do Masked Language Model
Scoring"; for minimal pairs Warstadt et al. 2020, "BLiMP".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Optional

import numpy as np

from bert_tf.analysis import Analysis, Option
from bert_tf.errors import InputError, NothingToPredict, checked_text, report, require_head
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.words import words_of
from bert_tf.results import Result, frame
from bert_tf.tokenizers import Truncation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pandas

    from bert_tf.explain.datasets.text_rows import TextRow
    from bert_tf.inference.bert import Bert
    from bert_tf.inference.trace import Trace


@dataclass(frozen=True, eq=False)
class PseudoLikelihood(Result, figures={"tokens": "bert_tf.plots.datasets.pseudo_likelihood:token_bars"}):
    """The scores of one text or pair.

    Attributes:
        text_a: str. text_b: str or None.
        tokens: tuple of T str.
        log_probabilities: float64 [T]. The natural logarithm of each token's probability in the context of the other
            tokens; NaN for the special tokens that the model adds and where the user typed "[MASK]".
        truncated: `Truncation`. The tokens cut off; they are not in the score.
        total: float. The pseudo-log-likelihood: the sum, in nats.
        perplexity: float. exp of the mean negative log-probability per token; not comparable between vocabularies.
    """

    text_a: str
    text_b: Optional[str]
    tokens: tuple
    log_probabilities: np.ndarray
    truncated: Truncation
    total: float = field(init=False)
    perplexity: float = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "total", float(np.nansum(self.log_probabilities)))
        object.__setattr__(self, "perplexity", float(np.exp(-np.nanmean(self.log_probabilities))))

    def to_frame(self) -> pandas.DataFrame:
        """A row for each scored token."""
        scored = np.flatnonzero(~np.isnan(self.log_probabilities))
        return frame(
            {
                "position": scored,
                "token": [self.tokens[position] for position in scored],
                "log_probability": self.log_probabilities[scored],
            }
        )

    def to_text(self) -> str:
        """The table, then the sum."""
        return f"{super().to_text()}\ntotal: {self.total:.3f} nats"


@dataclass(frozen=True, eq=False)
class MinimalPair(Result, figures={"tokens": "bert_tf.plots.datasets.pseudo_likelihood:pair_token_bars"}):
    """The scores of two texts of which the model should find the first likelier.

    Attributes:
        good, bad: `PseudoLikelihood` of the first and of the second text.
        margin: float. The total of the first text minus that of the second, in nats.
        preferred: bool. Whether the margin is above 0: the model does not prefer one of two texts with equal totals.
    """

    good: PseudoLikelihood
    bad: PseudoLikelihood
    margin: float = field(init=False)
    preferred: bool = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "margin", self.good.total - self.bad.total)
        object.__setattr__(self, "preferred", self.margin > 0)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each scored token of the first text, then of the second."""
        import pandas

        tables = [self.good.to_frame(), self.bad.to_frame()]
        for name, table in zip(("good", "bad"), tables):
            table.insert(0, "text", name)
        return pandas.concat(tables, ignore_index=True)

    def to_text(self) -> str:
        """The table, then the sums."""
        sums = f"total: {self.good.total:.3f} and {self.bad.total:.3f} nats; margin: {self.margin:+.3f}"
        return f"{super().to_text()}\n{sums}"


@dataclass(frozen=True, eq=False)
class MinimalPairs(Result, figures={"margins": "bert_tf.plots.datasets.pseudo_likelihood:margin_bars"}):
    """Many minimal pairs. It has a length and can be iterated over.

    Attributes:
        names: tuple. The name of each pair: the number of its row, or its subject.
        pairs: tuple of `MinimalPair`.
        accuracy: float. The share of pairs whose first text is preferred.
    """

    names: tuple
    pairs: tuple
    accuracy: float = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "accuracy", sum(pair.preferred for pair in self.pairs) / max(len(self.pairs), 1))

    def __iter__(self) -> Iterator[MinimalPair]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def to_frame(self) -> pandas.DataFrame:
        """A row for each pair, in the order of the pairs."""
        columns = {
            "row": lambda name, pair: name,
            "good": lambda name, pair: pair.good.text_a,
            "bad": lambda name, pair: pair.bad.text_a,
            "log_likelihood_good": lambda name, pair: pair.good.total,
            "log_likelihood_bad": lambda name, pair: pair.bad.total,
            "margin": lambda name, pair: pair.margin,
            "preferred": lambda name, pair: pair.preferred,
        }
        return frame(
            {title: [of(name, pair) for name, pair in zip(self.names, self.pairs)] for title, of in columns.items()}
        )


def pseudo_likelihood(
    bert: Bert,
    text_a: str,
    text_b: str | None = None,
    within_word: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> PseudoLikelihood:
    """Mask one token at a time and read the probability of the masked token.

    Args:
        bert: `Bert`. A model with an MLM head.
        text_a, text_b: as in `Bert.trace`.
        within_word: bool. Whether the later pieces of a token's word are masked with it (Kauf and Ivanova's
            PLL-word-l2r), so that "##hai" does not give "Shang" away; False computes Salazar's score.
        progress: callable(done, total) in tokens; returning False cancels.
    Returns:
        `PseudoLikelihood`. The model reads one copy of the input per token.
    Raises:
        InputError, TextError: as in `Bert.trace`.
        NothingToPredict: the text holds nothing but "[MASK]".
        MissingHead: the model has no MLM head.
        Cancelled: by `progress`.
    """
    require_head(bert.heads, "mlm", bert.name)
    ready = prepare_input(bert.tokenizer, bert.max_length, text_a, text_b)
    words = words_of(ready.encoding, ready.text_a, ready.text_b)
    hidden = {}  # position -> all positions masked to predict it
    for word in words:
        for place, position in enumerate(word.positions):
            if position not in ready.masks:
                hidden[position] = word.positions[place:] if within_word else (position,)
    if not hidden:
        raise NothingToPredict('There is no token to score: the text holds nothing but "[MASK]".')
    scores = np.full(ready.encoding.length, np.nan)
    places = list(hidden)
    block = max(1, TOKENS_PER_BATCH // ready.encoding.length)
    for start in range(0, len(places), block):
        chosen = places[start : start + block]
        scores[chosen] = _scores(bert, ready, chosen, hidden)
        report(progress, min(start + block, len(places)), len(places))
    return PseudoLikelihood(ready.text_a, ready.text_b, tuple(ready.encoding.tokens), scores, ready.encoding.truncated)


def minimal_pairs(
    bert: Bert,
    pairs: Iterable[Sequence[str]],
    within_word: bool = True,
    progress: Callable[[int, int], object] | None = None,
    names: Sequence | None = None,
) -> MinimalPairs:
    """Score pairs of texts and see which text of each pair the model finds likelier.

    Args:
        bert: `Bert`. A model with an MLM head.
        pairs: iterable of pairs (good, bad) of str.
        within_word: bool. As in `pseudo_likelihood`.
        progress: callable(done, total) in pairs; returning False cancels.
        names: sequence or None. The name of each pair; None numbers them from 0.
    Returns:
        `MinimalPairs`.
    Raises:
        InputError: a pair that is not two texts, or as in `pseudo_likelihood`.
        Cancelled: by `progress`.
    """
    pairs = list(pairs)
    scored = []
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"A minimal pair is two texts, not {pair!r:.60}.")
        scored.append(MinimalPair(*(pseudo_likelihood(bert, text, None, within_word) for text in pair)))
        report(progress, len(scored), len(pairs))
    return MinimalPairs(tuple(range(len(scored)) if names is None else names), tuple(scored))


def minimal_pairs_of_rows(
    bert: Bert, rows: Sequence[TextRow], within_word: bool = True, progress: Callable[[int, int], object] | None = None
) -> MinimalPairs:
    """`minimal_pairs` of the rows of a file; the row numbers name the pairs.

    Args:
        bert, within_word, progress: as in `minimal_pairs`.
        rows: sequence of `TextRow` with two texts each.
    Raises:
        InputError: a row has one text only; otherwise as in `minimal_pairs`.
    """
    unpaired = next((row.number for row in rows if row.text_b is None), None)
    if unpaired is not None:
        raise InputError(f"Line {unpaired} has one text only; a minimal pair is two texts with a tab between them.")
    pairs = [(row.text_a, row.text_b) for row in rows if row.text_b is not None]
    return minimal_pairs(bert, pairs, within_word, progress, [row.number for row in rows])


def likelihood(
    bert: Bert,
    trace: Trace,
    other_text: str | None = None,
    within_word: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> PseudoLikelihood | MinimalPair:
    """The pseudo-log-likelihood of a trace's texts, alone or beside that of another first text.

    Args:
        bert: `Bert`. The model that made the trace.
        trace: `Trace`.
        other_text: str or None. Another first text, read with the same second text; None for no comparison.
        within_word, progress: as in `pseudo_likelihood`.
    Returns:
        `PseudoLikelihood`, or with `other_text` a `MinimalPair`.
    Raises:
        As `pseudo_likelihood`.
    """
    texts = [trace.text_a] if other_text is None else [trace.text_a, other_text]
    scores = [pseudo_likelihood(bert, text, trace.text_b, within_word, progress) for text in texts]
    return scores[0] if other_text is None else MinimalPair(*scores)


def _scores(bert, ready, positions, hidden):
    """The log-probabilities of the tokens at B positions, float64 [B]; the model reads one copy of the input each."""
    rows, length = len(positions), len(ready.token_ids)
    ids = np.repeat(ready.token_ids[None], rows, axis=0)
    for row, position in enumerate(positions):
        ids[row, list(hidden[position])] = bert.tokenizer.mask_id
    batch = {
        "token_ids": ids,
        "segment_ids": np.repeat(ready.segment_ids[None], rows, axis=0),
        "padding_mask": np.ones((rows, length), np.int32),
        "mask_positions": np.array(positions, np.int32)[:, None],
    }
    logits = bert.runtime.run(batch, ("mlm_logits",))["mlm_logits"][:, 0]  # [B, V]
    peaks = logits.max(axis=1)
    normalizers = peaks + np.log(np.exp(logits - peaks[:, None]).sum(axis=1, dtype=np.float64))
    return logits[np.arange(rows), ready.token_ids[positions]] - normalizers


def _check(options):
    if options["other_text"] is not None:
        checked_text(options["other_text"], "--other-text")


_WITHIN_WORD = Option(
    "within_word", "do not mask the later pieces of a token's word with it", bool, True, aliases=("single-tokens",)
)
_SOURCE = "Salazar et al. 2020, Masked Language Model Scoring; Kauf and Ivanova 2023"
ANALYSES = (
    Analysis(
        name="pseudo-likelihood",
        function=likelihood,
        summary="how likely a text is, or which of two is likelier",
        source=_SOURCE,
        options=(
            Option("other_text", "another first text to compare with", metavar="TEXT", aliases=("against",)),
            _WITHIN_WORD,
        ),
        needs=("mlm",),
        masks=False,
        check=_check,
        aliases=("likelihood",),
    ),
    Analysis(
        name="minimal-pairs",
        function=minimal_pairs_of_rows,
        summary="which text of each pair of a file is likelier",
        source=f"Warstadt et al. 2020, BLiMP; {_SOURCE}",
        options=(_WITHIN_WORD,),
        inputs="file",
        needs=("mlm",),
        masks=False,
        aliases=("pairs",),
    ),
)
