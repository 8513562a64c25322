"""Words that are added to the vocabulary of a model, each with a row of its own in the tables of tokens.

A word that the model cut into pieces then is one token. Its row starts as the mean of its pieces' rows, so that it
means about what they meant before the training goes on (Hewitt 2021; Yao et al. 2021, section 3).

V tokens, E embedding size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bert_tf.checkpoints.stored_model import StoredModel
from bert_tf.checkpoints.stored_tensor import Weight
from bert_tf.errors import InputError, refuse_one_alone
from bert_tf.parameters import OUTPUT_TABLE

if TYPE_CHECKING:
    from bert_tf.config import BertConfig
    from bert_tf.tokenizers import BaseTokenizer

#: The tensors with a row or a value for each token.
_BY_TOKEN = ("bert.embeddings.word_embeddings.weight", "cls.predictions.bias", OUTPUT_TABLE)


def with_words(
    config: BertConfig, tokenizer: BaseTokenizer, stored: StoredModel, words: Iterable[str]
) -> tuple[BertConfig, BaseTokenizer, StoredModel]:
    """Return a model whose vocabulary has these words too, each a token that is never split.

    A row of the token table, of the output table and of the output bias starts as the mean of the word's pieces. A word
    that is one token already gets no other row. Rows that no token has (a padded table) are used first.

    Args:
        config: `BertConfig`. The settings.
        tokenizer: the tokenizer.
        stored: `StoredModel`. The weights; they are not changed.
        words: iterable of str. The words.

    Returns:
        (`BertConfig`, tokenizer, `StoredModel`), all new.

    Raises:
        InputError: `words` is one word alone; a word is no str, is empty, or has a space at its beginning or end; or
            there is no new word.
    """
    refuse_one_alone(words, "words")
    words = tuple(dict.fromkeys(words))
    for word in words:
        if not isinstance(word, str) or not word or word != word.strip():
            raise InputError(f"{word!r} cannot be added: a word has characters, and no space around it.")
    cut = {word: tokenizer.tokenize(word).ids for word in words}
    pieces = {
        word: ids if len(ids) else np.array([tokenizer.unk_id])
        for word, ids in cut.items()
        if len(ids) != 1 or ids[0] == tokenizer.unk_id
    }
    if not pieces:
        raise InputError("There is no word to add: each is one token of the vocabulary already, or none was given.")
    first, size = tokenizer.token_count, max(config.vocab_size, tokenizer.token_count + len(pieces))
    weights = dict(stored.weights)
    for name in _BY_TOKEN:
        if name in weights:
            old = weights[name].float32()
            new = np.zeros((size, *old.shape[1:]), np.float32)
            new[: len(old)] = old
            for row, ids in enumerate(pieces.values(), start=first):
                new[row] = old[ids].mean(axis=0)
            weights[name] = Weight(new)
    config = config.replace(vocab_size=size)
    return config, tokenizer.with_words(tuple(pieces)).with_rows(size), StoredModel(config, stored.bert_heads, weights)


def read_words(arguments: Sequence[str]) -> list[str]:
    """Return the words of a command line: each is a word, or a text file with one word a line."""
    words: list[str] = []
    for argument in arguments:
        path = Path(argument)
        lines = path.read_text(encoding="utf-8-sig").splitlines() if path.is_file() else [argument]
        words += [line.strip() for line in lines if line.strip()]
    return words
