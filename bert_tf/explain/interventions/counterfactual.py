"""What the model would have said to a slightly different input: swapped, a word less, another word, half the
context.

A variant is made of the trace's own tokens, so that every mask is known again wherever it has moved to; what a change
of the text would make a tokenizer read otherwise is read anew.

Dimension legend: T tokens, P masks, V vocabulary.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Optional

import numpy as np

from bert_tf.analysis import TOP_K, Analysis, Option
from bert_tf.errors import InputError, WordNotFound, report, require_head
from bert_tf.explain.models.compare import jensen_shannon
from bert_tf.inference.answer import check_question
from bert_tf.inference.batching import TOKENS_PER_BATCH
from bert_tf.inference.predictions import check_top_k, fill_mask, mask_predictions
from bert_tf.inference.trace import NextSentence, SentenceOrder
from bert_tf.results import Result, frame, frame_text
from bert_tf.tokenizers import pad_batch


@dataclass(frozen=True, eq=False)
class Variant:
    """An input made out of a trace's.

    Attributes:
        label: what was done to it.
        tokens: T strings. token_ids, segment_ids: int32 [T].
        masks: where the masks that are left stand now, ascending. rows: which of the trace's masks each was,
            from 0.
        paired: whether there are two texts.
    """

    label: str
    tokens: tuple
    token_ids: np.ndarray
    segment_ids: np.ndarray
    masks: tuple
    rows: tuple
    paired: bool


@dataclass(frozen=True, eq=False)
class VariantPrediction:
    """What the model says to a variant, and how that differs from what it said to the trace.

    Attributes:
        variant: the `Variant`.
        masks: a `MaskPrediction` for each of the variant's masks; positions are the variant's.
        nsp: `NextSentence`; None without a second text or head.
        log_probability_changes: float64, one a mask: how much the log-probability (natural logarithm) of the trace's
            likeliest token there has changed.
        divergences: float64, one a mask: Jensen-Shannon divergence from the trace's distribution, in bits.
        nsp_change: change of P(IsNext), or None.
        sop, sop_change: `SentenceOrder` and the change of P(in order) of a model that judges that instead; None
            likewise.
    """

    variant: Variant
    masks: tuple
    nsp: Optional[NextSentence]
    log_probability_changes: np.ndarray
    divergences: np.ndarray
    nsp_change: Optional[float]
    sop: Optional[SentenceOrder] = None
    sop_change: Optional[float] = None


@dataclass(frozen=True, eq=False)
class Counterfactuals(
    Result,
    figures={
        "changes": "bert_tf.plots.interventions.counterfactual:counterfactual_changes",
        "predictions": "bert_tf.plots.interventions.counterfactual:counterfactual_predictions",
    },
):
    """What the model says to an input and to variants of it.

    Attributes:
        tokens: T strings of the input. before: a `MaskPrediction` for each of its masks.
        nsp_before, sop_before: `NextSentence` and `SentenceOrder` of the input, or None as in a trace.
        variants: the `VariantPrediction`s.
    """

    tokens: tuple
    before: tuple
    nsp_before: Optional[NextSentence]
    sop_before: Optional[SentenceOrder]
    variants: tuple

    @classmethod
    def of(cls, bert, trace, variants, top_k=5):
        """Those of a trace.

        Args:
            bert: the `Bert` that made the trace. trace: a `Trace`. variants: its `VariantPrediction`s.
            top_k: how many predictions are kept at each mask of the trace itself.
        """
        has_masks = trace.masks and "mlm" in bert.heads
        before = fill_mask(trace, bert.tokenizer, top_k) if has_masks else ()
        return cls(trace.tokens, before, trace.nsp, trace.sop, tuple(variants))

    def to_frame(self):
        """A row for each prediction at each mask of each variant; one for a variant without masks.

        `mask` is the number of the mask among those of the input, `position` where it stands in the variant.
        """
        rows = [row for one in self.variants for row in _rows(one)]
        return frame({name: [row.get(name) for row in rows] for name in _COLUMNS}).astype(
            {name: "Int64" for name in ("mask", "position", "rank")}
        )

    def to_text(self):
        """A line for each variant and mask, with the likeliest token."""
        table = self.to_frame()
        table = table[table["rank"].fillna(1) == 1].drop(columns="rank")
        return frame_text(table.dropna(axis="columns", how="all"))


_COLUMNS = (
    "variant",
    "mask",
    "position",
    "rank",
    "prediction",
    "probability",
    "log_probability_change",
    "divergence_bits",
    "is_next",
    "is_next_change",
    "in_order",
    "in_order_change",
)


def _rows(one):
    """The rows of a `VariantPrediction` in the table, as dicts."""
    about = {
        "variant": one.variant.label,
        "is_next": one.nsp and one.nsp.is_next,
        "is_next_change": one.nsp_change,
        "in_order": one.sop and one.sop.in_order,
        "in_order_change": one.sop_change,
    }
    if not one.masks:
        yield about
    for number, mask, change, divergence in zip(
        one.variant.rows, one.masks, one.log_probability_changes, one.divergences
    ):
        for rank, prediction in enumerate(mask.predictions, 1):
            yield {
                **about,
                "mask": number,
                "position": mask.position,
                "rank": rank,
                "prediction": prediction.token,
                "probability": prediction.probability,
                "log_probability_change": change,
                "divergence_bits": divergence,
            }


def swapped(bert, trace):
    """The second text first. Raises InputError if there is none."""
    if trace.text_b is None:
        raise InputError("There is only one text; swapping needs two.")
    texts = _texts(trace)
    return _variant(bert, trace, "A and B swapped", texts["b"], texts["a"])


def without_word(bert, trace, word):
    """A word left out. `word`: a `WordSpan` of the trace. Raises InputError if it is the whole text.

    Words that would grow together ("well-known" without its hyphen) stay apart.
    """
    texts = _edited(bert, trace, word, "")
    if not texts[word.source]:
        raise InputError(f"Nothing would be left of text_{word.source} without {word.text!r:.40}.")
    return _variant(bert, trace, f'without "{word.text}"', texts["a"], texts["b"])


def with_word(bert, trace, word, replacement):
    """Another word, or several, in the place of one.

    Args:
        word: a `WordSpan` of the trace. replacement: text; "[MASK]" in it is a mask that no comparison is
            made at.
    Raises:
        InputError: an empty replacement, or the input gets too long.
    """
    replacement = replacement.strip() if isinstance(replacement, str) else ""
    if not len(bert.tokenizer.tokenize(replacement)):
        raise InputError(f"There is nothing to put in the place of {word.text!r:.40}: give a word.")
    texts = _edited(bert, trace, word, bert.tokenizer.normalize_mask_token(replacement))
    label = f'"{replacement}" for "{word.text}"'
    return _variant(bert, trace, label, texts["a"], texts["b"])


def left_context(bert, trace, mask):
    """Only what stands before a mask: what a reader from left to right would have known of it.

    A left-to-right model is trained for that and this one is not: it takes the text for a whole one that ends
    here.

    Args:
        mask: the position of one of the trace's masks.
    Raises:
        InputError: nothing is masked there.
    """
    own, texts = _of_one_word(trace, mask), _texts(trace)
    source = trace.sources[mask]
    texts[source] = [entry for entry in texts[source] if entry[1] <= max(own)]
    if source == "a":
        texts["b"] = []
    return _variant(bert, trace, "only what stands before", texts["a"], texts["b"])


def right_context(bert, trace, mask):
    """Only what stands after a mask; otherwise as `left_context`. A first text before the mask's is left
    out."""
    own, texts = _of_one_word(trace, mask), _texts(trace)
    source = trace.sources[mask]
    texts[source] = [entry for entry in texts[source] if entry[1] >= min(own)]
    if source == "b":
        texts = {"a": texts["b"], "b": []}
    return _variant(bert, trace, "only what stands after", texts["a"], texts["b"])


def predict_variants(bert, trace, variants, top_k=5):
    """What the model says to variants of a trace, all in one batch.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. variants: `Variant`s of it.
        top_k: predictions a mask.
    Returns:
        tuple of `VariantPrediction`, in their order.
    Raises:
        NothingToPredict, MissingHead: the trace has neither a mask nor a second text, or no head for it.
        InputError: a bad `top_k`.
    """
    check_top_k(top_k)
    check_question(trace.masks, trace.text_b, bert.heads, bert.name)
    variants = tuple(variants)
    if not variants:
        return ()
    results = _run(bert, variants)
    return tuple(_outcome(bert, trace, variant, row, results, top_k) for row, variant in enumerate(variants))


def counterfactuals(bert, trace, replace=(), top_k=5):
    """Every change of a text at once: A and B swapped, only one side of each mask, words replaced, each word left out.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`.
        replace: pairs (word, what is put in the place of the first of that spelling). top_k: predictions a mask.
    Returns:
        `Counterfactuals`.
    Raises:
        WordNotFound: a word that is not in the text. Otherwise as `predict_variants`.
    """
    variants = [swapped(bert, trace)] if trace.text_b is not None else []
    for mask in trace.masks:
        variants += [left_context(bert, trace, mask), right_context(bert, trace, mask)]
    words = trace.words()
    for old, new in replace:
        word = next((word for word in words if word.text == old), None)
        if word is None:
            raise WordNotFound(f"The word {old!r:.60} is not in the text.")
        variants.append(with_word(bert, trace, word, new))
    variants += [without_word(bert, trace, word) for word in _removable(trace)]
    return Counterfactuals.of(bert, trace, predict_variants(bert, trace, variants, top_k), top_k)


def _removable(trace):
    """The words without a mask that are not the only one of their text."""
    alone = Counter(word.source for word in trace.words())
    return [word for word in trace.words() if alone[word.source] > 1 and not set(word.positions) & set(trace.masks)]


def without_each_word(bert, trace, top_k=5, progress=None):
    """What the model says with each word left out, one at a time.

    Words with a mask in them stay, and so does the only word of a text.

    Args:
        bert: the `Bert` that made the trace. trace: a `Trace`. top_k: predictions a mask.
        progress: callable(done, total) in words; returning False cancels.
    Returns:
        tuple of (`WordSpan`, `VariantPrediction`), in reading order.
    Raises:
        As `predict_variants`; Cancelled by `progress`.
    """
    words = _removable(trace)
    block, found = max(1, TOKENS_PER_BATCH // trace.length), []
    for start in range(0, len(words), block):
        chosen = words[start : start + block]
        variants = [without_word(bert, trace, word) for word in chosen]
        found += zip(chosen, predict_variants(bert, trace, variants, top_k))
        report(progress, len(found), len(words))
    return tuple(found)


def _texts(trace):
    """Both texts as lists of (token id, position in the trace)."""
    return {
        source: [(int(trace.token_ids[p]), p) for p in range(trace.length) if trace.sources[p] == source]
        for source in ("a", "b")
    }


def _edited(bert, trace, word, replacement):
    """The texts as `_texts` gives them, other characters or none in the place of a word, as if they had been typed.

    What touches the word without a space is read with it, and so is the word that comes first when the first one is
    gone: a byte-level piece tells whether a space stands before it. Hidden tokens stay what they are.
    """
    own = [p for p in range(trace.length) if trace.sources[p] == word.source]
    text = bert.tokenizer.normalize_mask_token(trace.text_a if word.source == "a" else trace.text_b)
    text = text[: max(trace.offsets[p][1] for p in own)]  # what was not cut off
    start, end = _with_neighbours(text, word.start, word.end)
    before, after = text[start : word.start], text[word.end : end]
    apart = " " if not replacement and before[-1:].isalnum() and after[:1].isalnum() else ""
    read = f"{before}{replacement}{apart}{after}"
    if not read and not text[:start].strip():
        following = len(text) - len(text[end:].lstrip())
        _, end = _with_neighbours(text, following, following)
        read = text[following:end]
    places = [p for p in own if start <= trace.offsets[p][0] < end]
    if set(places) & set(trace.masks) - set(word.positions):
        places, read, start = word.positions, replacement, word.start
    space = " " if text[:start].endswith(" ") else ""
    pieces = bert.tokenizer.tokenize(space + read).ids if read else ()
    texts = _texts(trace)
    texts[word.source] = (
        [entry for entry in texts[word.source] if entry[1] < places[0]]
        + [(int(piece), None) for piece in pieces]
        + [entry for entry in texts[word.source] if entry[1] > places[-1]]
    )
    return texts


def _with_neighbours(text, start, end):
    """A part of a text with all that touches it without a space between."""
    while start and not text[start - 1].isspace():
        start -= 1
    while end < len(text) and not text[end].isspace():
        end += 1
    return start, end


def _of_one_word(trace, mask):
    """The masked positions of the word that a mask belongs to."""
    if mask not in trace.masks:
        raise InputError(f"Token {mask} is not masked; the masks are at {', '.join(map(str, trace.masks)) or 'none'}.")
    return [
        p for p in trace.masks if (trace.sources[p], trace.word_ids[p]) == (trace.sources[mask], trace.word_ids[mask])
    ]


def _variant(bert, trace, label, first, second):
    tokenizer = bert.tokenizer
    ids = [[token for token, _ in entries] for entries in (first, second)]
    packed = tokenizer.pack_pair(ids[0], ids[1] or None, bert.max_length)
    if packed.truncated:
        raise InputError(
            f"The input would have {packed.length + sum(packed.truncated)} tokens; this model reads {bert.max_length}."
        )
    added = (None,)
    between = added * tokenizer.separators_between if second else ()
    origins = [*added, *(origin for _, origin in first), *between, *(origin for _, origin in second), *added]
    masks = [(place, trace.masks.index(origin)) for place, origin in enumerate(origins) if origin in trace.masks]
    return Variant(
        label,
        tuple(tokenizer.id_to_token(int(i)) for i in packed.token_ids),
        packed.token_ids,
        packed.segment_ids,
        tuple(place for place, _ in masks),
        tuple(row for _, row in masks),
        bool(second),
    )


def _run(bert, variants):
    batch = pad_batch([(one.token_ids, one.segment_ids) for one in variants], pad_id=bert.tokenizer.pad_id)
    outputs, most = [], max(len(one.masks) for one in variants)
    if most:
        require_head(bert.heads, "mlm", bert.name)
        batch["mask_positions"] = np.zeros((len(variants), most), np.int32)
        for row, one in enumerate(variants):
            batch["mask_positions"][row, : len(one.masks)] = one.masks
        outputs.append("mlm_logits")
    if any(one.paired for one in variants):
        outputs += [f"{head}_logits" for head in ("nsp", "sop") if head in bert.heads]
    return bert.runtime.run(batch, tuple(outputs)) if outputs else {}


def _outcome(bert, trace, variant, row, results, top_k):
    masks, changes, divergences, nsp, sop = (), [], [], None, None
    if variant.masks:
        logits = results["mlm_logits"][row, : len(variant.masks)]
        originals = trace.original_ids[[trace.masks[r] for r in variant.rows]]
        masks = mask_predictions(logits, variant.masks, originals, bert.tokenizer, top_k)
        for scores, before in zip(logits, trace.logits[list(variant.rows)]):
            p, q = _softmax(before), _softmax(scores)
            best = before.argmax()
            changes.append(np.log(q[best] / p[best]))
            divergences.append(jensen_shannon(p, q))
    if variant.paired and "nsp" in bert.heads:
        nsp = NextSentence.from_logits(results["nsp_logits"][row])
    if variant.paired and "sop" in bert.heads:
        sop = SentenceOrder.from_logits(results["sop_logits"][row])
    nsp_change = nsp.is_next - trace.nsp.is_next if nsp and trace.nsp else None
    sop_change = sop.in_order - trace.sop.in_order if sop and trace.sop else None
    return VariantPrediction(variant, masks, nsp, np.array(changes), np.array(divergences), nsp_change, sop, sop_change)


def _softmax(logits):
    powers = np.exp(logits.astype(np.float64) - logits.max())
    return powers / powers.sum()


def replacement_of(text):
    """(old, new) of "old=new".

    Raises: InputError: anything else.
    """
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InputError(f"A replacement is OLD=NEW, such as cat=dog; not {text!r:.40}.")
    return old, new


ANALYSIS = Analysis(
    name="counterfactual",
    function=counterfactuals,
    summary="answers to the input swapped, shortened, with other words",
    options=(
        Option("replace", "words to replace", several=True, default=(), metavar="OLD=NEW", parse=replacement_of),
        TOP_K,
    ),
)
