"""Readers of words with labels: CoNLL columns, CoNLL-U and JSON lines.

CoNLL columns and JSON lines may do without labels where only predictions are wanted.
"""

import json
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, chain
from pathlib import Path

from bert_tf.errors import DataError
from bert_tf.finetuning.data.tables import numbered_lines
from bert_tf.finetuning.data.word_splitter import word_spans
from bert_tf.finetuning.labels import is_entity_scheme, to_bio
from bert_tf.tokenizers.conllu import ConlluError, read_rows

#: CoNLL-U columns a label can be read from.
CONLLU_COLUMNS = {"upos": 3, "xpos": 4, "deprel": 7}
_DOCUMENT_LINE, _DOCUMENT_COMMENT = "-DOCSTART-", "# newdoc"
#: Formats with a word a line.
WORD_FORMATS = ("conll", "conllu")
_KINDS = {".conllu": "conllu", ".jsonl": "jsonl", ".json": "jsonl"}
_MAX_COLUMNS = 4


@dataclass(frozen=True)
class LabelledSentence:
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
            object.__setattr__(
                self, "spans", tuple((end - 1 - len(word), end - 1) for word, end in zip(self.words, ends))
            )


def words_of_text(text):
    """The words of a running text, without labels; see `words.word_spans`."""
    spans = tuple(word_spans(text))
    return LabelledSentence(tuple(text[start:end] for start, end in spans), None, text=text, spans=spans)


def read_labelled_words(path, column=None, words_field="words", labels_field="labels", labelled=True, documents=False):
    """Sentences of a file; its ending tells the format: .conllu, .jsonl (or .json), else CoNLL columns.

    Args:
        path: the file, UTF-8, with or without a byte-order mark, LF or CRLF.
        column: CoNLL-U: "upos" (the default), "xpos" or "deprel". CoNLL: number of the label column from 1;
            default: the last one.
        words_field, labels_field: names in JSON lines.
        labelled: False to do without labels: one column, CoNLL-U with "_", JSON lines without the field.
        documents: join the sentences of a document, as far as the file has -DOCSTART- or "# newdoc" lines, so
            that each is read with its neighbours.
    Returns:
        list of `LabelledSentence`.
    Raises:
        DataError: naming file and line: a row of another form, or no sentence at all. OSError.
    """
    sentences = []
    for _, sentence in labelled_words_or_errors(path, None, column, words_field, labels_field, labelled, documents):
        if isinstance(sentence, DataError):
            raise sentence
        sentences.append(sentence)
    return _in_bio(sentences) if labelled else sentences


def labelled_words_or_errors(
    path, kind=None, column=None, words_field="words", labels_field="labels", labelled=True, documents=False
):
    """Yields (number of its first line, sentence) of a file of any size, with the DataError of a sentence that
    cannot be read in its place. Entity labels are as they stand in the file.

    Args:
        path: the file, "-" for standard input. kind: "conllu", "jsonl" or "conll"; None to go by the ending.
        column, words_field, labels_field, labelled, documents: as in `read_labelled_words`.
    Raises:
        DataError: no sentence at all, no such column; OSError.
    """
    kind = kind or _KINDS.get(Path(path).suffix.lower(), "conll")
    if kind == "jsonl":
        parse = partial(_json_sentence, path, words_field, labels_field if labelled else None)
        blocks = ((False, [row]) for row in numbered_lines(path))
    else:
        make = _conllu_reader if kind == "conllu" else _column_reader
        parse, blocks = make(path, column, labelled), _blocks(numbered_lines(path))
    found = _sentences(blocks, parse)
    none = True
    for number, sentence in _joined(found) if documents else ((number, one) for _, number, one in found):
        none = False
        yield number, sentence
    if none:
        raise DataError(f"{path} holds no sentence: it needs one word and its label a line.")


def _blocks(lines):
    """(whether a document begins with it, [(number, line), ...]) of the lines between blank ones."""
    begins, rows = False, []
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
    """(whether a document begins with it, first line, `LabelledSentence` or DataError) of the blocks with words."""
    begins = False
    for starts, rows in blocks:
        begins = begins or starts
        try:
            for _, line in rows:
                if isinstance(line, DataError):
                    raise line
            found = parse([(number, line.rstrip("\r\n")) for number, line in rows])
        except DataError as error:
            found = error
        if found is not None:
            yield begins, rows[0][0], found
            begins = False


def _joined(sentences):
    """(first line, the sentences of a document as one `LabelledSentence`); those before the first mark stay alone."""
    marked, number, several = False, 0, []
    for begins, line, one in sentences:
        if several and (begins or not marked):
            yield number, _one(several)
            several = []
        marked = marked or begins
        if isinstance(one, DataError):
            yield line, one
            continue
        number = number if several else line
        several.append(one)
    if several:
        yield number, _one(several)


def _one(sentences):
    if len(sentences) == 1:
        return sentences[0]
    labels = None
    if sentences[0].labels is not None:
        labels = tuple(chain.from_iterable(one.labels for one in sentences))
    return LabelledSentence(tuple(chain.from_iterable(one.words for one in sentences)), labels, sentences[0].source)


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
        if labelled and "_" in labels:
            raise DataError(f"{path}, line {words[labels.index('_')].line}: the column {column} is empty ('_').")
        return LabelledSentence(tuple(word.form for word in words), labels, f"{path}, line {words[0].line}")

    return sentence


def _column_reader(path, column, labelled):
    """Of rows of 2 to 4 columns (without labels 1 to 4), all of one width, parted by tabs or blanks."""
    column, least = (_column_number(column), 2) if labelled else (None, 1)
    separator, width = None, None

    def fields_of(number, line):
        nonlocal separator, width
        if width is None:
            separator = "\t" if "\t" in line else None
        fields = line.split(separator)
        if not least <= (width or len(fields)) <= _MAX_COLUMNS:
            raise DataError(
                f"{path}, line {number}: {len(fields)} columns; a word and its label make 2, and "
                f"up to {_MAX_COLUMNS} are read."
            )
        width = width or len(fields)
        if len(fields) != width:
            raise DataError(
                f"{path}, line {number}: {len(fields)} columns, but the lines before have "
                f"{width}; give every line the same columns."
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
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}); write one object a line.") from None
    if not isinstance(row, dict):
        raise DataError(f"{where}: a {type(row).__name__}; write one object a line.")
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
    if not is_entity_scheme(label for sentence in sentences for label in sentence.labels):
        return sentences
    return [replace(sentence, labels=tuple(to_bio(sentence.labels))) for sentence in sentences]
