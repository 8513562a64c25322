"""How well a model does at its pre-training task on text it has not seen.

B batch, T tokens, P masks a sequence, V vocabulary.
"""

import dataclasses
import time

import numpy as np

from bert_tf.errors import require_head
from bert_tf.pretraining.data.corpus import MemoryCorpus, tokenize_documents
from bert_tf.pretraining.data.documents import TextError, find_files, read_documents
from bert_tf.pretraining.data.packing import (
    document_pairs,
    full_sentences,
    pack_pairs,
    sentence_order_pairs,
)
from bert_tf.pretraining.objectives.masking import MaskSettings, mask_batch

#: 15% of the positions, every one of them replaced by [MASK]: no position is given away by its own token.
MASKS = MaskSettings(rate=0.15, mask_share=1.0, random_share=0.0)


def evaluate_mlm(
    bert,
    files,
    length=128,
    seed=0,
    limit=None,
    batch_size=32,
    progress=None,
    alone=False,
    generator=None,
    text_field="text",
    language="en",
):
    """How often the pre-training heads of a model are right on text files. The same arguments give the same figures.

    Args:
        bert: a `Bert` with an MLM head or a replaced-token head.
        files: paths or patterns of text, one paragraph a line, a blank line between documents; or of JSON lines.
        length: T, tokens of a sequence with its special ones; pairs are packed to it as in pre-training.
        seed: of the pairs, masks and replacements.
        limit: at most so many sequences of each kind, spread evenly over the text; None for all.
        batch_size: sequences in one forward pass; does not change the figures.
        progress: called as progress(done, total) in sequences, of one kind after the other.
        alone: one masked token a sequence, in sequences of one segment: what readers of any kind can be asked alike, as
            one that reads one way has never learnt from a text with masks in it.
        generator: a `Bert` with an MLM head and the same vocabulary, which draws the replaced tokens; None to draw them
            from the text's own.
        text_field: where JSON lines have their text. language: of the sentence splitter, a code like "en".
    Returns:
        dict of, with an MLM head,
        "top1", "top5": share of the masked tokens that are the likeliest, or among the five likeliest;
        "pseudo_perplexity": exp of the mean negative log-likelihood of the masked tokens. Unlike Salazar et
            al. 2020, who mask one token at a time, 15% are masked at once;
        "nsp_accuracy": on as many true as random second segments; None if the model has no NSP head or there
            are none of a kind: the text has one document, or only such of one sentence;
        and "sequences", "pairs", "masked_tokens". With a sentence-order head,
        "sop_accuracy": on "order_pairs" pairs of neighbouring stretches, as many in order as swapped; None if there
            are none of a kind. With a replaced-token head,
        "replaced_accuracy", "replaced_auc", "replaced_found": share of the tokens judged right, area under the ROC
            curve (0.5 by chance), and share of the replaced tokens taken for such, where "replaced_share" of
            "judged_tokens" are: to take none for replaced is right in all the others;
        and what they were measured on: "documents", "length", "seed", "seconds".
    Raises:
        MissingHead: none of these heads. TextError: no such file, or no text to make a sequence of.
        ValueError: a length or limit out of range, or a generator of another vocabulary.
    """
    if "replaced" not in bert.heads:
        require_head(bert.heads, "mlm", bert.name)
    if not 8 <= length <= bert.max_length:
        raise ValueError(f"The length must be 8 to {bert.max_length} tokens for {bert.name}, not {length}.")
    if batch_size < 1 or (limit is not None and limit < 2):
        raise ValueError(f"Give a batch size of at least 1 and a limit of at least 2, not {batch_size} and {limit}.")
    if generator is not None:
        _check_generator(bert, generator)
    began = time.perf_counter()
    documents = read_documents(find_files([files] if isinstance(files, str) else files), text_field)
    corpus = MemoryCorpus(tokenize_documents(documents, bert.tokenizer, language))
    if not len(corpus):
        raise TextError(f"No text in {files}.")
    asked = _Asked(bert, corpus, length, limit, batch_size, progress)
    report = {}
    if "mlm" in bert.heads:
        report.update(_masked_words(asked, np.random.default_rng(seed), alone, files))
    if "sop" in bert.heads:
        report.update(_sentence_order(asked, np.random.default_rng((seed, 1))))
    if "replaced" in bert.heads:
        report.update(_replaced_tokens(asked, np.random.default_rng((seed, 2)), generator, files))
    return {
        **report,
        "documents": len(corpus),
        "length": length,
        "seed": seed,
        "seconds": round(time.perf_counter() - began, 1),
    }


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What is measured: a `Bert`, on a `MemoryCorpus`, and how; see `evaluate_mlm`."""

    bert: object
    corpus: MemoryCorpus
    length: int
    limit: int | None
    batch_size: int
    progress: object

    def pairs(self, of_document, rng):
        """All pairs that `document_pairs` or `sentence_order_pairs` makes of the documents."""
        between = self.bert.tokenizer.separators_between
        return [
            pair
            for number in range(len(self.corpus))
            for pair in of_document(self.corpus, number, rng, self.length, between=between)
        ]

    def packed(self, pairs):
        return pack_pairs(pairs, self.bert.tokenizer, self.length)

    def in_parts(self, batch):
        """Yields row numbers of `batch_size` sequences of like lengths, which waste no work on padding; the figures
        are means and know no order."""
        order = np.argsort(batch["padding_mask"].sum(axis=1), kind="stable")
        for first in range(0, len(order), self.batch_size):
            rows = order[first : first + self.batch_size]
            yield rows
            if self.progress:
                self.progress(first + len(rows), len(order))


def _masked_words(asked, rng, alone, files):
    corpus, tokenizer = asked.corpus, asked.bert.tokenizer
    if alone:
        pairs = list(full_sentences(corpus, range(len(corpus)), tokenizer.sep_id, asked.length))
    else:
        pairs = asked.pairs(document_pairs, rng)
    chosen = _balanced(pairs, asked.limit)
    if not chosen:
        raise TextError(f"{files} holds too little text to make a pair of sentences of.")
    masks = dataclasses.replace(MASKS, most=1) if alone else MASKS
    batch = mask_batch(asked.packed(chosen), tokenizer, rng, masks)
    if not batch["mask_weights"].any():
        raise TextError(f"{files} holds no word that {asked.bert.name} knows.")
    ranks, losses, nsp_hits = _score(asked, batch)
    has_nsp = "nsp" in asked.bert.heads and len({pair.not_next for pair in chosen}) == 2
    return {
        "top1": float(np.mean(ranks < 1)),
        "top5": float(np.mean(ranks < 5)),
        "pseudo_perplexity": float(np.exp(np.mean(losses))),
        "nsp_accuracy": float(np.mean(nsp_hits)) if has_nsp else None,
        "sequences": len(chosen),
        "pairs": len(pairs),
        "masked_tokens": len(ranks),
    }


def _sentence_order(asked, rng):
    chosen = _balanced(asked.pairs(sentence_order_pairs, rng), asked.limit)
    if len({pair.not_next for pair in chosen}) < 2:
        return {"sop_accuracy": None, "order_pairs": 0}
    batch, hits = asked.packed(chosen), []
    for rows in asked.in_parts(batch):
        logits = asked.bert.runtime.run(_inputs(batch, rows), ("sop_logits",))["sop_logits"]
        hits.extend(logits.argmax(axis=1) == batch["nsp_labels"][rows])
    return {"sop_accuracy": float(np.mean(hits)), "order_pairs": len(chosen)}


def _replaced_tokens(asked, rng, generator, files):
    """15% of the tokens drawn anew; a draw of the very token that stood there counts as original, as in training."""
    corpus, tokenizer = asked.corpus, asked.bert.tokenizer
    pairs = list(full_sentences(corpus, range(len(corpus)), tokenizer.sep_id, asked.length))
    if asked.limit is not None and len(pairs) > asked.limit:
        pairs = [pairs[i * len(pairs) // asked.limit] for i in range(asked.limit)]
    if not pairs:
        raise TextError(f"{files} holds no text.")
    whole = asked.packed(pairs)
    batch = mask_batch(whole, tokenizer, rng, MASKS)
    known = batch["mask_labels"][batch["mask_weights"] == 1]
    if not len(known):
        raise TextError(f"{files} holds no word that {asked.bert.name} knows.")
    own = rng.choice(known, batch["mask_labels"].shape)
    scores, labels = [], []
    for rows in asked.in_parts(batch):
        inputs = _inputs(batch, rows)
        real = batch["mask_weights"][rows] == 1
        places = np.nonzero(real)[0], batch["mask_positions"][rows][real]
        if generator is None:
            drawn = own[rows][real]
        else:
            most = max(1, int(real.sum(axis=1).max()))
            asking = {**inputs, "mask_positions": batch["mask_positions"][rows, :most]}
            logits = generator.runtime.run(asking, ("mlm_logits",))["mlm_logits"][real[:, :most]]
            # The greatest of logits and Gumbel noise is a draw from their softmax.
            drawn = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
        inputs["token_ids"] = inputs["token_ids"].copy()
        inputs["token_ids"][places] = drawn
        judged = asked.bert.runtime.run(inputs, ("replaced_logits",))["replaced_logits"]
        inside = inputs["padding_mask"] == 1
        scores.append(judged[inside])
        labels.append((inputs["token_ids"] != whole["token_ids"][rows, : inside.shape[1]])[inside])
    scores, labels = np.concatenate(scores), np.concatenate(labels)
    return {
        "replaced_accuracy": float(np.mean((scores > 0) == labels)),
        "replaced_auc": _area(scores, labels),
        "replaced_found": float(np.mean(scores[labels] > 0)) if labels.any() else None,
        "replaced_share": float(labels.mean()),
        "judged_tokens": len(labels),
    }


def _area(scores, labels):
    """Area under the ROC curve; None without both kinds."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(labels, scores)) if 0 < labels.sum() < len(labels) else None


def _check_generator(bert, generator):
    require_head(bert.heads, "replaced", bert.name)
    require_head(generator.heads, "mlm", generator.name)
    if generator.tokenizer.vocab != bert.tokenizer.vocab:
        raise ValueError(
            f"{generator.name} and {bert.name} have different vocabularies: the second could not read "
            "what the first writes."
        )


def _balanced(pairs, limit):
    """As many true as random pairs, evenly spread, in order; all if one kind is missing."""
    kinds = [[i for i, pair in enumerate(pairs) if pair.not_next == kind] for kind in (False, True)]
    kinds = [kind for kind in kinds if kind]
    if not kinds:
        return []
    each = min(map(len, kinds))
    if limit is not None:
        each = min(each, limit // len(kinds))
    picked = [kind[i * len(kind) // each] for kind in kinds for i in range(each)]
    return [pairs[i] for i in sorted(picked)]


def _inputs(batch, rows):
    """The inputs of some sequences, without columns of padding alone."""
    tokens = batch["padding_mask"][rows].sum(axis=1).max()
    return {name: batch[name][rows, :tokens] for name in ("token_ids", "segment_ids", "padding_mask")}


def _score(asked, batch):
    """(each masked token's rank from 0, its negative log-likelihood, whether each pair's label was found)."""
    outputs = ("mlm_logits", "nsp_logits") if "nsp" in asked.bert.heads else ("mlm_logits",)
    ranks, losses, hits = [], [], []
    for rows in asked.in_parts(batch):
        # One place at least is asked for, also where no token of these is known.
        masks = max(1, int(batch["mask_weights"][rows].sum(axis=1).max()))
        inputs = {**_inputs(batch, rows), "mask_positions": batch["mask_positions"][rows, :masks]}
        results = asked.bert.runtime.run(inputs, outputs)
        for logits, labels, weights in zip(
            results["mlm_logits"], batch["mask_labels"][rows], batch["mask_weights"][rows]
        ):
            real = int(weights.sum())
            _rank(logits[:real], labels[:real], ranks, losses)
        if "nsp_logits" in results:
            hits.extend(results["nsp_logits"].argmax(axis=1) == batch["nsp_labels"][rows])
    return np.array(ranks), np.array(losses), np.array(hits)


def _rank(logits, labels, ranks, losses):
    """Append the rank and loss of each label; logits [masks, V]."""
    for scores, label in zip(logits, labels):
        ranks.append(int(np.count_nonzero(scores > scores[label])))
        peak = scores.max()
        losses.append(float(np.log(np.exp(scores - peak).sum(dtype=np.float64)) + peak - scores[label]))
