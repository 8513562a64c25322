"""Evaluation of a model's pre-training heads on text that it was not trained on.

Shapes: B batch, T tokens, P masks of a sequence, V vocabulary.
"""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import require_head
from bert_tf.model_outputs import INPUTS
from bert_tf.pretraining.data.corpus import MemoryCorpus, tokenize_documents
from bert_tf.pretraining.data.documents import TextError, find_files, read_documents
from bert_tf.pretraining.data.packing import (
    document_pairs,
    full_sentences,
    pack_pairs,
    sentence_order_pairs,
)
from bert_tf.pretraining.objectives.masking import MaskSettings, mask_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bert_tf.inference.bert import Bert


#: 15% of the positions, all replaced by [MASK], so that the model never sees the token it has to predict.
MASKS = MaskSettings(rate=0.15, mask_share=1.0, random_share=0.0)
#: The number of consecutive places whose masked tokens are counted together.
PLACES = 32


def evaluate_mlm(
    bert: Bert,
    files: str | Path | Sequence[str | Path],
    length: int = 128,
    seed: int = 0,
    limit: int | None = None,
    batch_size: int = 32,
    progress: Callable[[int, int], object] | None = None,
    alone: bool = False,
    generator: Bert | None = None,
    text_field: str = "text",
    language: str = "en",
    by_position: bool = False,
) -> dict[str, Any]:
    """Measures the accuracy of a model's pre-training heads on text files. Equal arguments give equal results.

    Args:
        bert: a `Bert` with an MLM head or a replaced-token head.
        files: str, Path, or a list of them. Paths or patterns of text files (one paragraph a line, a blank line between
            documents) or of JSON lines.
        length: int. T, the tokens of a sequence with its special tokens; pairs are packed to it as in pre-training.
        seed: int. The seed of the pairs, masks and replacements.
        limit: int. The largest number of sequences of each kind, spread evenly over the text; None for all.
        batch_size: int. Sequences in one forward pass; does not change the results.
        progress: callable progress(done, total), counted in sequences, for one kind after the other; or None.
        alone: bool. Whether each sequence has one segment and one masked token. Models of every attention direction can
            be compared so, as a model with one direction was never trained on text with masks.
        generator: a `Bert` with an MLM head and the same tokenizer, which samples the replacement tokens; None to
            sample them from the tokens of the text.
        text_field: str. The field of JSON lines that holds the text.
        language: str. The language code of the sentence splitter, for example "en".
        by_position: bool. Whether to report the accuracy at each place of the sequence, in groups of `PLACES`.

    Returns:
        dict. With an MLM head:
        "top1", "top5": the share of the masked tokens that are the likeliest, or among the five likeliest;
        "pseudo_perplexity": exp of the mean negative log-likelihood of the masked tokens. Here 15% of the tokens are
            masked at once, while Salazar et al. 2020 mask one token at a time;
        "nsp_accuracy": the accuracy on equal numbers of true and random second segments; None if the model has no NSP
            head, or if one kind is missing: the text has one document, or only documents of one sentence;
        "sequences", "pairs", "masked_tokens": counts;
        "by_position": if asked for, a list of dicts {"first", "last", "top1", "masked_tokens"}, one for each group of
            places that has a masked token; places count from 0, which is [CLS].
        With a sentence-order head:
        "sop_accuracy": the accuracy on "order_pairs" pairs of consecutive segments, half of them swapped; None if one
            kind is missing.
        With a replaced-token head:
        "replaced_accuracy": the share of tokens classified correctly;
        "replaced_auc": the area under the ROC curve (0.5 by chance);
        "replaced_found": the share of the replaced tokens classified as replaced;
        "replaced_share": the share of replaced tokens among the "judged_tokens". A model that classifies no token as
            replaced has the accuracy 1 - "replaced_share".
        Always: "documents", "length", "seed", "seconds".

    Raises:
        MissingHead: the model has none of these heads.
        TextError: a file does not exist, or the text is too short for a sequence.
        ValueError: a length or limit is out of range, or the generator has another tokenizer or reads fewer tokens.
    """
    if "replaced" not in bert.heads:
        require_head(bert.heads, "mlm", bert.name)
    if not 8 <= length <= bert.max_length:
        raise ValueError(f"The length (--length) must be 8 to {bert.max_length} tokens for {bert.name}, not {length}.")
    if batch_size < 1 or (limit is not None and limit < 2):
        raise ValueError(f"Give a batch size of at least 1 and a limit of at least 2, not {batch_size} and {limit}.")
    if generator is not None:
        _check_generator(bert, generator, length)
    start = time.perf_counter()
    patterns: Any = [files] if isinstance(files, str) else files
    documents = read_documents(find_files(patterns), text_field)
    corpus = MemoryCorpus(tokenize_documents(documents, bert.tokenizer, language))
    if not len(corpus):
        raise TextError(f"No text in {files}.")
    request = _Request(bert, corpus, length, limit, batch_size, progress)
    report = {}
    if "mlm" in bert.heads:
        report.update(_masked_words(request, np.random.default_rng(seed), alone, files, by_position))
    if "sop" in bert.heads:
        report.update(_sentence_order(request, np.random.default_rng((seed, 1))))
    if "replaced" in bert.heads:
        report.update(_replaced_tokens(request, np.random.default_rng((seed, 2)), generator, files))
    return {
        **report,
        "documents": len(corpus),
        "length": length,
        "seed": seed,
        "seconds": round(time.perf_counter() - start, 1),
    }


@dataclasses.dataclass(frozen=True)
class _Request:
    """The model, the corpus and the options of one evaluation; see `evaluate_mlm`."""

    bert: Bert
    corpus: MemoryCorpus
    length: int
    limit: int | None
    batch_size: int
    progress: Callable[[int, int], object] | None

    def pairs(self, make_pairs, rng):
        """The pairs of all documents; `make_pairs` is `document_pairs` or `sentence_order_pairs`."""
        between = self.bert.tokenizer.separators_between
        return [
            pair
            for number in range(len(self.corpus))
            for pair in make_pairs(self.corpus, number, rng, self.length, between=between)
        ]

    def packed(self, pairs):
        return pack_pairs(pairs, self.bert.tokenizer, self.length)

    def row_batches(self, batch):
        """Yields the row numbers of `batch_size` sequences of similar lengths, which saves work on padding.

        The results are means, so the order does not matter.
        """
        order = np.argsort(batch["padding_mask"].sum(axis=1), kind="stable")
        for first in range(0, len(order), self.batch_size):
            rows = order[first : first + self.batch_size]
            yield rows
            if self.progress:
                self.progress(first + len(rows), len(order))


def _masked_words(request, rng, alone, files, by_position):
    corpus, tokenizer = request.corpus, request.bert.tokenizer
    if alone:
        pairs = list(full_sentences(corpus, range(len(corpus)), tokenizer.sep_id, request.length))
    else:
        pairs = request.pairs(document_pairs, rng)
    chosen = _balanced(pairs, request.limit)
    if not chosen:
        raise TextError(f"{files} holds too little text to make a pair of sentences of.")
    masks = dataclasses.replace(MASKS, most=1) if alone else MASKS
    batch = mask_batch(request.packed(chosen), tokenizer, rng, masks)
    if not batch["mask_weights"].any():
        raise TextError(f"{files} holds no word that {request.bert.name} knows.")
    ranks, losses, nsp_hits, places = _score(request, batch)
    has_nsp = "nsp" in request.bert.heads and len({pair.not_next for pair in chosen}) == 2
    return {
        "top1": float(np.mean(ranks < 1)),
        "top5": float(np.mean(ranks < 5)),
        "pseudo_perplexity": float(np.exp(np.mean(losses))),
        "nsp_accuracy": float(np.mean(nsp_hits)) if has_nsp else None,
        "sequences": len(chosen),
        "pairs": len(pairs),
        "masked_tokens": len(ranks),
        **({"by_position": _by_position(ranks, places)} if by_position else {}),
    }


def _by_position(ranks, places):
    """The accuracy of each group of `PLACES` places, as in `evaluate_mlm`."""
    groups = []
    for first in range(0, places.max() + 1, PLACES):
        inside = ranks[(places >= first) & (places < first + PLACES)]
        if len(inside):
            groups.append(
                {
                    "first": first,
                    "last": first + PLACES - 1,
                    "top1": float(np.mean(inside < 1)),
                    "masked_tokens": len(inside),
                }
            )
    return groups


def _sentence_order(request, rng):
    chosen = _balanced(request.pairs(sentence_order_pairs, rng), request.limit)
    if len({pair.not_next for pair in chosen}) < 2:
        return {"sop_accuracy": None, "order_pairs": 0}
    batch, hits = request.packed(chosen), []
    for rows in request.row_batches(batch):
        logits = request.bert.runtime.run(_inputs(batch, rows), ("sop_logits",))["sop_logits"]
        hits.extend(logits.argmax(axis=1) == batch["nsp_labels"][rows])
    return {"sop_accuracy": float(np.mean(hits)), "order_pairs": len(chosen)}


def _replaced_tokens(request, rng, generator, files):
    """Samples 15% of the tokens anew; a sample equal to the original token counts as original, as in training."""
    corpus, tokenizer = request.corpus, request.bert.tokenizer
    pairs = list(full_sentences(corpus, range(len(corpus)), tokenizer.sep_id, request.length))
    if request.limit is not None and len(pairs) > request.limit:
        pairs = [pairs[i * len(pairs) // request.limit] for i in range(request.limit)]
    if not pairs:
        raise TextError(f"{files} holds no text.")
    original = request.packed(pairs)
    batch = mask_batch(original, tokenizer, rng, MASKS)
    masked_ids = batch["mask_labels"][batch["mask_weights"] == 1]
    if not len(masked_ids):
        raise TextError(f"{files} holds no word that {request.bert.name} knows.")
    text_samples = rng.choice(masked_ids, batch["mask_labels"].shape)
    score_parts, label_parts = [], []
    for rows in request.row_batches(batch):
        inputs = _inputs(batch, rows)
        real = batch["mask_weights"][rows] == 1
        positions = np.nonzero(real)[0], batch["mask_positions"][rows][real]
        if generator is None:
            samples = text_samples[rows][real]
        else:
            masks = max(1, int(real.sum(axis=1).max()))
            generator_inputs = {**inputs, "mask_positions": batch["mask_positions"][rows, :masks]}
            logits = generator.runtime.run(generator_inputs, ("mlm_logits",))["mlm_logits"][real[:, :masks]]
            # Gumbel-max trick: the argmax of logits plus Gumbel noise is a sample from their softmax.
            samples = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
        inputs["token_ids"] = inputs["token_ids"].copy()
        inputs["token_ids"][positions] = samples
        replaced_logits = request.bert.runtime.run(inputs, ("replaced_logits",))["replaced_logits"]
        is_token = inputs["padding_mask"] == 1
        score_parts.append(replaced_logits[is_token])
        label_parts.append((inputs["token_ids"] != original["token_ids"][rows, : is_token.shape[1]])[is_token])
    scores, labels = np.concatenate(score_parts), np.concatenate(label_parts)
    return {
        "replaced_accuracy": float(np.mean((scores > 0) == labels)),
        "replaced_auc": _roc_auc(scores, labels),
        "replaced_found": float(np.mean(scores[labels] > 0)) if labels.any() else None,
        "replaced_share": float(labels.mean()),
        "judged_tokens": len(labels),
    }


def _roc_auc(scores, labels):
    """The area under the ROC curve; None unless both labels occur."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, scores)) if 0 < labels.sum() < len(labels) else None


def _check_generator(bert, generator, length):
    require_head(bert.heads, "replaced", bert.name)
    require_head(generator.heads, "mlm", generator.name)
    if not generator.tokenizer.cuts_alike(bert.tokenizer):
        raise ValueError(
            f"{generator.name} and {bert.name} have different vocabularies or cut text otherwise: the second could "
            "not read what the first writes."
        )
    if length > generator.max_length:
        raise ValueError(
            f"The generator {generator.name} reads at most {generator.max_length} tokens, and the sequences have "
            f"{length}: give a smaller length, or another generator."
        )


def _balanced(pairs, limit):
    """Equal numbers of true and random pairs, evenly spread, in order; all pairs if one kind is missing."""
    kinds = [[i for i, pair in enumerate(pairs) if pair.not_next == kind] for kind in (False, True)]
    kinds = [indices for indices in kinds if indices]
    if not kinds:
        return []
    count = min(map(len, kinds))
    if limit is not None:
        count = min(count, limit // len(kinds))
    chosen = [indices[i * len(indices) // count] for indices in kinds for i in range(count)]
    return [pairs[i] for i in sorted(chosen)]


def _inputs(batch, rows):
    """The model inputs of some sequences, without columns that hold only padding."""
    tokens = batch["padding_mask"][rows].sum(axis=1).max()
    return {name: batch[name][rows, :tokens] for name in INPUTS}


def _score(request, batch):
    """(rank of each masked token from 0, its negative log-likelihood, whether each pair was classified correctly, the
    place of each masked token in its sequence)."""
    outputs = ("mlm_logits", "nsp_logits") if "nsp" in request.bert.heads else ("mlm_logits",)
    ranks: list[int] = []
    losses: list[float] = []
    hits: list[bool] = []
    places: list[int] = []
    for rows in request.row_batches(batch):
        # At least one position, also if these sequences have no masked token.
        masks = max(1, int(batch["mask_weights"][rows].sum(axis=1).max()))
        inputs = {**_inputs(batch, rows), "mask_positions": batch["mask_positions"][rows, :masks]}
        results = request.bert.runtime.run(inputs, outputs)
        for logits, row in zip(results["mlm_logits"], rows):
            real = int(batch["mask_weights"][row].sum())
            _rank(logits[:real], batch["mask_labels"][row, :real], ranks, losses)
            places.extend(batch["mask_positions"][row, :real])
        if "nsp_logits" in results:
            hits.extend(results["nsp_logits"].argmax(axis=1) == batch["nsp_labels"][rows])
    return np.array(ranks), np.array(losses), np.array(hits), np.array(places)


def _rank(logits, labels, ranks, losses):
    """Appends the rank and the loss of each label; logits [masks, V]. NaN ranks before every label."""
    for scores, label in zip(logits, labels):
        ranks.append(int(np.count_nonzero(~(scores <= scores[label]))))
        peak = scores.max()
        losses.append(float(np.log(np.exp(scores - peak).sum(dtype=np.float64)) + peak - scores[label]))
