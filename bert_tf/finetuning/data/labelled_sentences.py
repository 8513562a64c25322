"""Readers of words with labels: CoNLL columns, CoNLL-U and JSON lines.

For prediction, the labels may be missing.
"""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.errors import DataError
from bert_tf.finetuning.data.tables import json_object, numbered_lines
from bert_tf.finetuning.data.word_splitter import word_spans
from bert_tf.finetuning.labels import OUTSIDE, composed, is_entity_scheme, to_bio
from bert_tf.tokenizers.conllu import ConlluError, read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator


#: CoNLL-U columns with labels: name -> index of the field.
CONLLU_COLUMNS = {"upos": 3, "xpos": 4, "deprel": 7}
_DOCUMENT_LINE, _DOCUMENT_COMMENT = "-DOCSTART-", "# newdoc"
#: Formats with one word per line.
WORD_FORMATS = ("conll", "conllu")
_KINDS = {".conllu": "conllu", ".jsonl": "jsonl", ".json": "jsonl"}
_MAX_COLUMNS = 4


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence (or document) with its labels.

    Attributes:
        words: tuple of W str.
        labels: tuple of W str or None. Entity labels are in BIO; all are stored in NFC; None without labels.
        source: str. The file and first line of the sentence, for messages.
        text: str. The running text; by default the words joined with spaces.
        spans: tuple of W pairs (first character, last character + 1). The position of each word in the text.

    Example:
        sentence = LabelledSentence(("Ada", "sings"), ("B-PER", "O"))
        sentence.spans  # ((0, 3), (4, 9))
    """

    words: tuple
    labels: tuple | None
    source: str = ""
    text: str | None = None
    spans: tuple | None = None

    def __post_init__(self):
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(map(composed, self.labels)))
        if self.text is None:
            ends = list(accumulate(len(word) + 1 for word in self.words))
            object.__setattr__(self, "text", " ".join(self.words))
            object.__setattr__(
                self, "spans", tuple((end - 1 - len(word), end - 1) for word, end in zip(self.words, ends))
            )


def words_of_text(text: str) -> LabelledSentence:
    """The words of a running text, a `LabelledSentence` without labels; see `word_splitter.word_spans`."""
    spans = tuple(word_spans(text))
    return LabelledSentence(tuple(text[start:end] for start, end in spans), None, text=text, spans=spans)


def read_labelled_words(
    path: str | Path,
    column: str | None = None,
    words_field: str = "words",
    labels_field: str = "labels",
    labelled: bool = True,
    documents: bool = False,
) -> list[LabelledSentence]:
    """Read the sentences of a file; its ending decides the format: .conllu, .jsonl (or .json), otherwise CoNLL columns.

    Args:
        path: str or Path. The file, UTF-8, with or without a byte-order mark, LF or CRLF.
        column: str or None. CoNLL-U: "upos" (the default), "xpos" or "deprel". CoNLL: number of the label column from
            1; by default the last.
        words_field, labels_field: str. The names of the fields in JSON lines.
        labelled: bool. False if the file may have no labels: one column, "_" in CoNLL-U, no field in JSON lines.
        documents: bool. Whether to join the sentences of a document, marked by -DOCSTART- or "# newdoc" lines, so that
            each sentence is read in its context.
    Returns:
        list of `LabelledSentence`.
    Raises:
        DataError: a row cannot be read, or there is no sentence; the message names file and line.
        OSError: the file cannot be read.
    """
    sentences = []
    for _, sentence in labelled_words_or_errors(path, None, column, words_field, labels_field, labelled, documents):
        if isinstance(sentence, DataError):
            raise sentence
        sentences.append(sentence)
    return _in_bio(sentences) if labelled else sentences


def labelled_words_or_errors(
    path: str | Path,
    kind: str | None = None,
    column: str | None = None,
    words_field: str = "words",
    labels_field: str = "labels",
    labelled: bool = True,
    documents: bool = False,
) -> Iterator[tuple[int, LabelledSentence | DataError]]:
    """Yield (number of the first line, sentence or error) for the sentences of a file of any size.

    A sentence that cannot be read yields its DataError. Entity labels are not converted to BIO.

    Args:
        path: str or Path. The file, "-" for standard input.
        kind: str or None. "conllu", "jsonl" or "conll"; None decides by the ending of the file.
        column, words_field, labels_field, labelled, documents: as in `read_labelled_words`.
    Raises:
        DataError: there is no sentence, or no such column.
        OSError: the file cannot be read.
    """
    kind = kind or _KINDS.get(Path(path).suffix.lower(), "conll")
    if kind == "jsonl":
        parse = partial(_json_sentence, path, words_field, labels_field if labelled else None)
        blocks = ((False, [row]) for row in numbered_lines(path))
    else:
        make_parser = _conllu_reader if kind == "conllu" else _column_reader
        parse, blocks = make_parser(path, column, labelled), _blocks(numbered_lines(path))
    sentences = _sentences(blocks, parse)
    is_empty = True
    for number, sentence in _joined(sentences) if documents else ((line, result) for _, line, result in sentences):
        is_empty = False
        yield number, sentence
    if is_empty:
        raise DataError(f"{path} holds no sentence: it needs lines with one word and its label each.")


def _blocks(lines):
    """Yield the blocks of lines between blank lines: (whether the block begins a document, [(number, line), ...])."""
    begins = False
    rows: list[tuple] = []
    for number, line in chain(lines, [(0, "")]):
        is_text = isinstance(line, str)
        if is_text and (not line.strip() or line.startswith(_DOCUMENT_LINE)):
            if rows:
                yield begins, rows
                begins, rows = False, []
            begins = begins or line.startswith(_DOCUMENT_LINE)
            continue
        begins = begins or is_text and line.startswith(_DOCUMENT_COMMENT)
        rows.append((number, line))


def _sentences(blocks, parse):
    """Yield (whether it begins a document, first line, `LabelledSentence` or DataError) for the blocks with words."""
    begins = False
    for starts, rows in blocks:
        begins = begins or starts
        try:
            for _, line in rows:
                if isinstance(line, DataError):
                    raise line
            result = parse([(number, line.rstrip("\r\n")) for number, line in rows])
        except DataError as error:
            result = error
        if result is not None:
            yield begins, rows[0][0], result
            begins = False


def _joined(sentences):
    """Yield (first line, the sentences of a document joined into one `LabelledSentence`).

    Sentences before the first document mark are not joined.
    """
    marked, number = False, 0
    document: list[LabelledSentence] = []
    for begins, line, result in sentences:
        if document and (begins or not marked):
            yield number, _joined_sentence(document)
            document = []
        marked = marked or begins
        if isinstance(result, DataError):
            yield line, result
            continue
        number = number if document else line
        document.append(result)
    if document:
        yield number, _joined_sentence(document)


def _joined_sentence(sentences):
    if len(sentences) == 1:
        return sentences[0]
    words = tuple(chain.from_iterable(sentence.words for sentence in sentences))
    labels = None
    if sentences[0].labels is not None:
        labels = tuple(chain.from_iterable(sentence.labels for sentence in sentences))
    return LabelledSentence(words, labels, sentences[0].source)


def _conllu_reader(path, column, labelled):
    column = column or "upos"
    if column not in CONLLU_COLUMNS:
        raise DataError(f"There is no CoNLL-U column {column!r}; choose from {', '.join(CONLLU_COLUMNS)}.")

    def sentence(rows):
        try:
            words = next(read_rows((line for _, line in rows), rows[0][0]), None)
        except ConlluError as error:
            raise DataError(f"{path}: {error}") from None
        if words is None:
            return None
        labels = tuple(word.fields[CONLLU_COLUMNS[column]] for word in words) if labelled else None
        if labels is not None and "_" in labels:
            raise DataError(f"{path}, line {words[labels.index('_')].line}: the column {column} is empty ('_').")
        return LabelledSentence(tuple(word.form for word in words), labels, f"{path}, line {words[0].line}")

    return sentence


def _column_reader(path, column, labelled):
    """The parser of rows with 2 to 4 columns (without labels 1 to 4), the same number in all rows.

    Columns are separated by tabs or spaces.
    """
    column, min_columns = (_column_number(column), 2) if labelled else (None, 1)
    separator, width = None, None

    def fields_of(number, line):
        nonlocal separator, width
        if width is None:
            separator = "\t" if "\t" in line else " +"
        # Other spaces, such as a no-break space, belong to a word.
        fields = re.split(separator, line if separator == "\t" else line.strip(" \r\n"))
        if not min_columns <= (width or len(fields)) <= _MAX_COLUMNS:
            raise DataError(
                f"{path}, line {number}: {len(fields)} columns; a word and its label make 2, and "
                f"at most {_MAX_COLUMNS} are read."
            )
        width = width or len(fields)
        if len(fields) != width:
            raise DataError(
                f"{path}, line {number}: {len(fields)} columns, but the lines before have "
                f"{width}; give every line the same number of columns."
            )
        if column is not None and column > width:
            raise DataError(f"{path} has {width} columns; there is no column {column} to read labels from.")
        return fields

    def sentence(rows):
        words, labels = [], []
        for number, line in rows:
            fields = fields_of(number, line)
            word, label = fields[0].strip(), fields[-1 if column is None else column - 1].strip()
            if not word or not label:
                raise DataError(f"{path}, line {number}: the {'label' if word else 'word'} is empty.")
            words.append(word)
            labels.append(label)
        return LabelledSentence(tuple(words), tuple(labels) if labelled else None, f"{path}, line {rows[0][0]}")

    return sentence


def _column_number(column):
    if column is None:
        return None
    if not str(column).isdecimal() or int(column) < 2:
        raise DataError(f"The label column is {column!r}; give its number, 2 or more (the word is column 1).")
    return int(column)


def _json_sentence(path, words_field, labels_field, rows):
    ((number, line),) = rows
    if not line.strip():
        return None
    where = f"{path}, line {number}"
    row = json_object(line, where)
    words = _strings(row, words_field, where)
    labels = None if labels_field is None else _strings(row, labels_field, where)
    if labels is not None and len(words) != len(labels):
        raise DataError(f"{where}: {len(words)} words, but {len(labels)} labels.")
    return LabelledSentence(tuple(words), labels and tuple(labels), where) if words else None


def _strings(row, field, where):
    if field not in row:
        raise DataError(f"{where}: no {field!r} (found: {', '.join(row) or 'nothing'}).")
    values = row[field]
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise DataError(f"{where}: {field!r} must be a list of strings that are not empty.")
    return values


def _in_bio(sentences):
    """The sentences with entity labels in BIO; others as they are.

    Raises: DataError if fewer than half of the labels besides "O" mark none: they would make it another task.
    """
    counts = collections.Counter(label for sentence in sentences for label in sentence.labels)
    if not is_entity_scheme(counts):
        others = {label for label in counts if label != OUTSIDE and not is_entity_scheme([label])}
        if OUTSIDE in counts and sum(counts[label] for label in others) < 0.5 * (counts.total() - counts[OUTSIDE]):
            sentence = next(sentence for sentence in sentences if others.intersection(sentence.labels))
            odd = next(label for label in sentence.labels if label in others)
            raise DataError(f"{sentence.source}: the label {odd!r} marks no entity, as the others do: correct it.")
        return sentences
    return [replace(sentence, labels=tuple(to_bio(sentence.labels))) for sentence in sentences]
