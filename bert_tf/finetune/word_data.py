"""Readers of words with labels: CoNLL columns, CoNLL-U and JSON lines.

A label column is optional in none of them: these are files to train and to measure on.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from bert_tf.finetune.errors import DataError
from bert_tf.finetune.labels import is_entity_scheme, to_bio
from bert_tf.text.conllu import ConlluError, read_rows

#: CoNLL-U columns a label can be read from.
CONLLU_COLUMNS = {"upos": 3, "xpos": 4, "deprel": 7}
_MAX_COLUMNS = 4


@dataclass(frozen=True)
class LabelledWords:
    """One sentence.

    Attributes:
        words: W strings. labels: W strings; entity labels in BIO.
        source: the file and the line it begins at, for messages.
    """

    words: tuple
    labels: tuple
    source: str


def read_labelled_words(path, column=None, words_field="words", labels_field="labels"):
    """Sentences of a file; its ending tells the format: .conllu, .jsonl (or .json), else CoNLL columns.

    Args:
        path: the file, UTF-8, with or without a byte-order mark, LF or CRLF.
        column: CoNLL-U: "upos" (the default), "xpos" or "deprel". CoNLL: number of the label column from 1;
            default: the last one.
        words_field, labels_field: names in JSON lines.
    Returns:
        list of `LabelledWords`.
    Raises:
        DataError: naming file and line: a row of another form, or no sentence at all.
        FileNotFoundError: no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}: give the path of a file with labelled words.")
    ending = path.suffix.lower()
    lines = _lines(path)
    if ending == ".conllu":
        sentences = _read_conllu(path, lines, column)
    elif ending in (".jsonl", ".json"):
        sentences = _read_jsonl(path, lines, words_field, labels_field)
    else:
        sentences = _read_columns(path, lines, column)
    if not sentences:
        raise DataError(f"{path} holds no sentence: it needs one word and its label a line.")
    return _in_bio(sentences)


def _lines(path):
    try:
        # Only "\n" ends a line: str.splitlines would also cut at U+2028 and U+0085, which can stand in words.
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = path.read_bytes().count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: this is not UTF-8; save the file as UTF-8.") from None
    return [line.removesuffix("\r") for line in text.split("\n")]


def _read_conllu(path, lines, column):
    column = column or "upos"
    if column not in CONLLU_COLUMNS:
        raise DataError(f"There is no CoNLL-U column {column!r}; choose from {', '.join(CONLLU_COLUMNS)}.")
    sentences = []
    try:
        for rows in read_rows(lines):
            labels = []
            for row in rows:
                label = row.fields[CONLLU_COLUMNS[column]]
                if label == "_":
                    raise DataError(f"{path}, line {row.line}: the column {column} is empty ('_').")
                labels.append(label)
            sentences.append(LabelledWords(tuple(row.form for row in rows), tuple(labels),
                                           f"{path}, line {rows[0].line}"))
    except ConlluError as error:
        raise DataError(f"{path}: {error}") from None
    return sentences


def _read_columns(path, lines, column):
    """Rows of 2 to 4 columns, all of one width, parted by tabs or blanks; a blank line ends a sentence."""
    column = _column_number(column)
    separator, width, sentences, words, labels, first = None, None, [], [], [], 0
    for number, line in enumerate([*lines, ""], 1):
        if not line.strip() or line.startswith("-DOCSTART-"):
            if words:
                sentences.append(LabelledWords(tuple(words), tuple(labels), f"{path}, line {first}"))
            words, labels = [], []
            continue
        if width is None:
            separator = "\t" if "\t" in line else None
        fields = line.split(separator)
        width = width or len(fields)
        if not 2 <= width <= _MAX_COLUMNS:
            raise DataError(f"{path}, line {number}: {len(fields)} columns; a word and its label make 2, and "
                            f"up to {_MAX_COLUMNS} are read.")
        if len(fields) != width:
            raise DataError(f"{path}, line {number}: {len(fields)} columns, but the lines before have {width}.")
        if column is not None and column > width:
            raise DataError(f"{path} has {width} columns; there is no column {column} to read labels from.")
        word, label = fields[0].strip(), fields[-1 if column is None else column - 1].strip()
        if not word or not label:
            raise DataError(f"{path}, line {number}: the {'label' if word else 'word'} is empty.")
        if not words:
            first = number
        words.append(word)
        labels.append(label)
    return sentences


def _column_number(column):
    if column is None:
        return None
    if not str(column).isdecimal() or int(column) < 2:
        raise DataError(f"The label column is {column!r}; give its number, 2 or more (the word is column 1).")
    return int(column)


def _read_jsonl(path, lines, words_field, labels_field):
    sentences = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where}: not JSON ({error}); write one object a line.") from None
        if not isinstance(row, dict):
            raise DataError(f"{where}: a {type(row).__name__}; write one object a line.")
        for field in (words_field, labels_field):
            if field not in row:
                raise DataError(f"{where}: no {field!r} (found: {', '.join(row) or 'nothing'}).")
        words, labels = row[words_field], row[labels_field]
        for field, values in ((words_field, words), (labels_field, labels)):
            if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
                raise DataError(f"{where}: {field!r} must be a list of strings that are not empty.")
        if len(words) != len(labels):
            raise DataError(f"{where}: {len(words)} words, but {len(labels)} labels.")
        if words:
            sentences.append(LabelledWords(tuple(words), tuple(labels), where))
    return sentences


def _in_bio(sentences):
    if not is_entity_scheme(label for sentence in sentences for label in sentence.labels):
        return sentences
    return [LabelledWords(sentence.words, tuple(to_bio(sentence.labels)), sentence.source)
            for sentence in sentences]
