"""Readers of words with labels: CoNLL columns, CoNLL-U and JSON lines.

CoNLL columns and JSON lines may do without labels where only predictions are wanted.
"""

import json
from bisect import bisect
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from pathlib import Path

from bert_tf.finetune.errors import DataError
from bert_tf.finetune.labels import is_entity_scheme, to_bio
from bert_tf.finetune.words import word_spans
from bert_tf.text.conllu import ConlluError, read_rows

#: CoNLL-U columns a label can be read from.
CONLLU_COLUMNS = {"upos": 3, "xpos": 4, "deprel": 7}
_NEW_DOCUMENT = ("-DOCSTART-", "# newdoc")
_MAX_COLUMNS = 4


@dataclass(frozen=True)
class LabelledWords:
    """One sentence.

    Attributes:
        words: W strings. labels: W strings, entity labels in BIO; None where there are none.
        source: the file and the line it begins at, for messages.
        text: the running text the words are from. spans: (first character, last character + 1) of each word
            in it. Without them the words with a space between are the text.
    """

    words: tuple
    labels: tuple | None
    source: str = ""
    text: str | None = None
    spans: tuple | None = None

    def __post_init__(self):
        if self.text is None:
            ends = list(accumulate(len(word) + 1 for word in self.words))
            object.__setattr__(self, "text", " ".join(self.words))
            object.__setattr__(self, "spans", tuple((end - 1 - len(word), end - 1)
                                                    for word, end in zip(self.words, ends)))


def words_of_text(text):
    """The words of a running text, without labels; see `words.word_spans`."""
    spans = tuple(word_spans(text))
    return LabelledWords(tuple(text[start:end] for start, end in spans), None, text=text, spans=spans)


def read_labelled_words(path, column=None, words_field="words", labels_field="labels", labelled=True,
                         documents=False):
    """Sentences of a file; its ending tells the format: .conllu, .jsonl (or .json), else CoNLL columns.

    Args:
        path: the file, UTF-8, with or without a byte-order mark, LF or CRLF.
        column: CoNLL-U: "upos" (the default), "xpos" or "deprel". CoNLL: number of the label column from 1;
            default: the last one.
        words_field, labels_field: names in JSON lines.
        documents: join the sentences of a document, as far as the file has -DOCSTART- or "# newdoc" lines, so
            that each is read with its neighbours.
        labelled: False to do without labels: one column, CoNLL-U with "_", JSON lines without the field.
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
        sentences = _read_conllu(path, lines, column, labelled)
    elif ending in (".jsonl", ".json"):
        sentences = _read_jsonl(path, lines, words_field, labels_field if labelled else None)
    else:
        sentences = _read_columns(path, lines, column, labelled)
    if not sentences:
        raise DataError(f"{path} holds no sentence: it needs one word and its label a line.")
    sentences = _in_bio(sentences) if labelled else [replace(sentence, labels=None) for sentence in sentences]
    return _joined(sentences, lines) if documents else sentences


def _joined(sentences, lines):
    """The sentences between two lines that begin a document as one `LabelledWords` each."""
    starts = [number for number, line in enumerate(lines, 1) if line.startswith(_NEW_DOCUMENT)]
    if not starts:
        return sentences
    found = {}
    for sentence in sentences:
        line = int(sentence.source.rpartition(" ")[2])
        found.setdefault(bisect(starts, line), []).append(sentence)
    return [LabelledWords(tuple(chain.from_iterable(one.words for one in several)),
                          None if several[0].labels is None else tuple(chain.from_iterable(one.labels for one in several)),
                          several[0].source)
            for several in found.values()]


def _lines(path):
    try:
        # Only "\n" ends a line: str.splitlines would also cut at U+2028 and U+0085, which can stand in words.
        text = path.read_bytes().decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = path.read_bytes().count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: this is not UTF-8; save the file as UTF-8.") from None
    return [line.removesuffix("\r") for line in text.split("\n")]


def _read_conllu(path, lines, column, labelled):
    column = column or "upos"
    if column not in CONLLU_COLUMNS:
        raise DataError(f"There is no CoNLL-U column {column!r}; choose from {', '.join(CONLLU_COLUMNS)}.")
    sentences = []
    try:
        for rows in read_rows(lines):
            labels = []
            for row in rows:
                label = row.fields[CONLLU_COLUMNS[column]]
                if label == "_" and labelled:
                    raise DataError(f"{path}, line {row.line}: the column {column} is empty ('_').")
                labels.append(label)
            sentences.append(LabelledWords(tuple(row.form for row in rows), tuple(labels),
                                           f"{path}, line {rows[0].line}"))
    except ConlluError as error:
        raise DataError(f"{path}: {error}") from None
    return sentences


def _read_columns(path, lines, column, labelled):
    """Rows of 2 to 4 columns, all of one width, parted by tabs or blanks; a blank line ends a sentence."""
    column, least = (_column_number(column), 2) if labelled else (None, 1)
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
        if not least <= width <= _MAX_COLUMNS:
            raise DataError(f"{path}, line {number}: {len(fields)} columns; a word and its label make 2, and "
                            f"up to {_MAX_COLUMNS} are read.")
        if len(fields) != width:
            raise DataError(f"{path}, line {number}: {len(fields)} columns, but the lines before have "
                            f"{width}; give every line the same columns.")
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
        words = _strings(row, words_field, where)
        labels = None if labels_field is None else _strings(row, labels_field, where)
        if labels is not None and len(words) != len(labels):
            raise DataError(f"{where}: {len(words)} words, but {len(labels)} labels.")
        if words:
            sentences.append(LabelledWords(tuple(words), labels and tuple(labels), where))
    return sentences


def _strings(row, field, where):
    if field not in row:
        raise DataError(f"{where}: no {field!r} (found: {', '.join(row) or 'nothing'}).")
    values = row[field]
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise DataError(f"{where}: {field!r} must be a list of strings that are not empty.")
    return values


def _in_bio(sentences):
    if not is_entity_scheme(label for sentence in sentences for label in sentence.labels):
        return sentences
    return [replace(sentence, labels=tuple(to_bio(sentence.labels))) for sentence in sentences]
