"""How well a model does at its pre-training task on text it has not seen.

B batch, T tokens, P masks a sequence, V vocabulary.
"""

import dataclasses
import time

import numpy as np

from bert_tf.checkpoints.errors import require_head
from bert_tf.pretrain.corpus import MemoryCorpus, tokenize_documents
from bert_tf.pretrain.documents import TextError, find_files, read_documents
from bert_tf.pretrain.instances import document_pairs, full_sentences, pack_pairs
from bert_tf.pretrain.masks import MaskSettings, mask_batch

#: 15% of the positions, every one of them replaced by [MASK]: no position is given away by its own token.
MASKS = MaskSettings(rate=0.15, mask_share=1.0, random_share=0.0)


def evaluate_mlm(bert, files, length=128, seed=0, limit=None, batch_size=32, progress=None, alone=False):
    """Masked-word and next-sentence accuracy on text files. The same arguments give the same figures.

    Args:
        bert: a `Bert` with an MLM head.
        files: paths or patterns of text, one paragraph a line, a blank line between documents.
        length: T, tokens of a sequence with its special ones; pairs are packed to it as in pre-training.
        seed: of the pairs and masks.
        limit: at most so many sequences, spread evenly over the text; None for all.
        batch_size: sequences in one forward pass; does not change the figures.
        progress: called as progress(done, total) in sequences.
        alone: one masked token a sequence, in sequences of one segment: what readers of any kind can be asked alike, as
            one that reads one way has never learnt from a text with masks in it.
    Returns:
        dict of
        "top1", "top5": share of the masked tokens that are the likeliest, or among the five likeliest;
        "pseudo_perplexity": exp of the mean negative log-likelihood of the masked tokens. Unlike Salazar et
            al. 2020, who mask one token at a time, 15% are masked at once;
        "nsp_accuracy": on as many true as random second segments; None if the model has no NSP head or the
            text only one document;
        and what they were measured on: "sequences", "pairs", "masked_tokens", "documents", "length", "seed",
        "seconds".
    Raises:
        MissingHead: no MLM head. TextError: no such file, or no text to make a sequence of.
        ValueError: a length or limit out of range.
    """
    require_head(bert.heads, "mlm", bert.name)
    if not 8 <= length <= bert.max_length:
        raise ValueError(f"The length must be 8 to {bert.max_length} tokens for {bert.name}, not {length}.")
    if batch_size < 1 or (limit is not None and limit < 2):
        raise ValueError(
            f"Give a batch size of at least 1 and a limit of at least 2, not {batch_size} and {limit}."
        )
    began = time.perf_counter()
    documents = read_documents(find_files([files] if isinstance(files, str) else files))
    corpus = MemoryCorpus(tokenize_documents(documents, bert.tokenizer))
    if not len(corpus):
        raise TextError(f"No text in {files}.")
    rng = np.random.default_rng(seed)
    if alone:
        pairs = list(full_sentences(corpus, range(len(corpus)), bert.tokenizer.sep_id, length))
    else:
        pairs = [pair for n in range(len(corpus)) for pair in document_pairs(corpus, n, rng, length)]
    chosen = _balanced(pairs, limit)
    if not chosen:
        raise TextError(f"{files} holds too little text to make a pair of sentences of.")
    masks = dataclasses.replace(MASKS, most=1) if alone else MASKS
    batch = mask_batch(pack_pairs(chosen, bert.tokenizer, length), bert.tokenizer, rng, masks)
    ranks, losses, nsp_hits = _score(bert, batch, batch_size, progress)
    has_nsp = "nsp" in bert.heads and batch["nsp_labels"].any()
    return {
        "top1": float(np.mean(ranks < 1)),
        "top5": float(np.mean(ranks < 5)),
        "pseudo_perplexity": float(np.exp(np.mean(losses))),
        "nsp_accuracy": float(np.mean(nsp_hits)) if has_nsp else None,
        "sequences": len(chosen),
        "pairs": len(pairs),
        "masked_tokens": len(ranks),
        "documents": len(corpus),
        "length": length,
        "seed": seed,
        "seconds": round(time.perf_counter() - began, 1),
    }


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


def _score(bert, batch, batch_size, progress):
    """(each masked token's rank from 0, its negative log-likelihood, whether each pair's label was found)."""
    lengths = batch["padding_mask"].sum(axis=1)
    # Like lengths together waste no work on padding; the figures are means and know no order.
    order = np.argsort(lengths, kind="stable")
    outputs = ("mlm_logits", "nsp_logits") if "nsp" in bert.heads else ("mlm_logits",)
    ranks, losses, hits = [], [], []
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        tokens = lengths[rows].max()
        masks = int(batch["mask_weights"][rows].sum(axis=1).max())
        inputs = {name: batch[name][rows, :tokens] for name in ("token_ids", "segment_ids", "padding_mask")}
        inputs["mask_positions"] = batch["mask_positions"][rows, :masks]
        results = bert.runtime.run(inputs, outputs)
        for logits, labels, weights in zip(
            results["mlm_logits"], batch["mask_labels"][rows], batch["mask_weights"][rows]
        ):
            real = int(weights.sum())
            _rank(logits[:real], labels[:real], ranks, losses)
        if "nsp_logits" in results:
            hits.extend(results["nsp_logits"].argmax(axis=1) == batch["nsp_labels"][rows])
        if progress:
            progress(first + len(rows), len(order))
    return np.array(ranks), np.array(losses), np.array(hits)


def _rank(logits, labels, ranks, losses):
    """Append the rank and loss of each label; logits [masks, V]."""
    for scores, label in zip(logits, labels):
        ranks.append(int(np.count_nonzero(scores > scores[label])))
        peak = scores.max()
        losses.append(float(np.log(np.exp(scores - peak).sum(dtype=np.float64)) + peak - scores[label]))
