"""Token classification: a label for every word (entities, parts of speech).

The first piece of a word carries its label; the others are ignored, or continue it. Long sentences and
documents are read in overlapping windows, and each word is judged in the window that shows most around it.

T tokens, W words, K labels. Source: Devlin et al. 2019, section 5.3 (first piece, maximal document context).
"""

from argparse import Namespace
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.class_weights import class_weights
from bert_tf.finetuning.data.document_stride import merge, stride_windows
from bert_tf.finetuning.data.encoded_examples import EncodedExamples
from bert_tf.finetuning.data.labelled_sentences import (
    CONLLU_COLUMNS,
    WORD_FORMATS,
    LabelledSentence,
    labelled_words_or_errors,
    read_labelled_words,
    words_of_text,
)
from bert_tf.finetuning.labels import entities, is_entity_scheme, label_list
from bert_tf.finetuning.metrics.crf_decoding import marginals, viterbi
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.task import ErrorAnalysis, Task, without_folder

PIECES = ("first", "all")
_SPECIAL = 2
#: Endings of files to predict for that are tables or JSON lines; all others have a word a line, as for training.
_TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")


class TokenClassification(Task):
    """The family `tag`; its examples are `word_data.LabelledSentence`."""

    task = "tag"

    def add_reading_arguments(self, parser):
        parser.add_argument(
            "--column",
            metavar="NAME",
            help=f"label column: of CoNLL-U {', '.join(CONLLU_COLUMNS)} (default upos), "
            "of CoNLL its number from 1 (default: the last)",
        )
        parser.add_argument("--words-field", default="words", metavar="NAME", help="in JSON lines")
        parser.add_argument("--labels-field", default="labels", metavar="NAME", help="in JSON lines")
        parser.add_argument(
            "--documents",
            action="store_true",
            help="the sentences between -DOCSTART- lines (CoNLL-U: # newdoc) are one text, so that "
            "each is read with its neighbours",
        )

    def add_training_arguments(self, parser):
        parser.add_argument("--crf", action="store_true", help="a linear-chain CRF over the labels")
        parser.add_argument(
            "--pieces", default="first", help="pieces that learn a word's label: first, or all (B-X continued by I-X)"
        )
        parser.add_argument(
            "--stride",
            type=int,
            metavar="N",
            help="pieces by which the window moves over a long sentence (default: half)",
        )
        parser.add_argument(
            "--class-weights", metavar="W", help='"balanced", or LABEL=WEIGHT,…: how much the words of a label count'
        )

    def read(self, path, options, settings=None, labelled=True):
        yield from read_labelled_words(
            path, options.column, options.words_field, options.labels_field, labelled, options.documents
        )

    def example(self, record, settings):
        if isinstance(record, LabelledSentence):
            return record
        record = record if isinstance(record, dict) else {"text": record}
        words, text = record.get("words"), record.get("text")
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return LabelledSentence(tuple(words), None)
        if words is not None or not isinstance(text, str):
            raise DataError('Give a "text", or "words" as a list of strings that is not empty.')
        found = words_of_text(text)
        if not found.words:
            raise DataError("The text is empty; give at least one word.")
        return found

    def records(self, path, options=Namespace()):
        kind = getattr(options, "format", None)
        if kind not in WORD_FORMATS and (kind or Path(path).suffix.lower() in _TABLES or str(path) == "-"):
            return super().records(path, options)
        return labelled_words_or_errors(path, kind, labelled=False, documents=getattr(options, "documents", False))

    def asked(self, record, options):
        field = options.words_field
        if field and isinstance(record, dict):
            return (
                {**record, "words": record[field]}
                if field in record
                else DataError(f"There is no field {field!r}; the fields are {', '.join(record):.160}.")
            )
        return record

    def labels(self, example):
        return example.labels

    def settings(self, options, examples):
        if options.pieces not in PIECES:
            raise TaskError(f"--pieces is {options.pieces!r}; choose from {', '.join(PIECES)}.")
        if options.crf and options.pieces == "all":
            raise TaskError("--crf scores words, so --pieces must be first with it.")
        stride = (options.length - _SPECIAL) // 2 if options.stride is None else options.stride
        stride_windows(0, options.length - _SPECIAL, stride)
        labels = label_list(example.labels for example in examples)
        if len(labels) < 2:
            raise DataError(f"All words are labelled {labels[0]!r}; there is nothing to tell apart.")
        return TaskSettings(
            "tag",
            labels,
            max_length=options.length,
            metric=options.metric or ("f1" if is_entity_scheme(labels) else "accuracy"),
            extra={"crf": options.crf, "pieces": options.pieces, "stride": stride},
        )

    def training_settings(self, options, examples, settings):
        if not options.class_weights:
            return settings
        if options.crf:
            raise TaskError("--class-weights weighs words and --crf learns whole sequences: leave one of them out.")
        found = Counter(chain.from_iterable(example.labels for example in examples))
        weights = class_weights(options.class_weights, {label: found[label] for label in settings.labels})
        return settings.replace(extra={**settings.extra, "class_weights": weights})

    def encode(self, examples, tokenizer, settings, training=False):
        room = settings.max_length - _SPECIAL
        stride = settings.extra.get("stride", max(1, room // 2))
        pieces = _piece_lookup(examples, tokenizer)
        sequences = {"token_ids": [], "segment_ids": []}
        if training:
            sequences |= {"labels": [], "label_weights": []}
        owner, notes = [], []
        for number, example in enumerate(examples):
            split = [pieces[word] for word in _spaced(example.words)]
            starts = np.cumsum([0, *map(len, split)])
            ids = np.concatenate([*split, np.zeros(0, np.int32)]).astype(np.int32)
            if training:
                labels, weights = _targets(example.labels, starts, settings)
            for span in stride_windows(len(ids), room, stride):
                inside = slice(*span)
                packed = tokenizer.pack_pair(ids[inside], None, settings.max_length)
                sequences["token_ids"].append(packed.token_ids)
                sequences["segment_ids"].append(packed.segment_ids)
                if training:
                    sequences["labels"].append(np.pad(labels[inside], 1))
                    sequences["label_weights"].append(np.pad(weights[inside], 1))
                owner.append(number)
                notes.append((span, starts))
        return EncodedExamples(sequences, owner=np.array(owner), pad_id=tokenizer.pad_id, notes=notes)

    def head(self, settings, config):
        from bert_tf.layers.tagging import TaggingHead

        return TaggingHead(
            len(settings.labels),
            config.hidden_size,
            config.hidden_dropout_prob,
            config.initializer_range,
            settings.extra.get("crf", False),
            name="head",
        )

    def objective(self, settings):
        from bert_tf.finetuning.tasks.token_losses import CRFLoss, TokenCrossEntropy

        return CRFLoss() if settings.extra.get("crf") else TokenCrossEntropy()

    def decode(self, outputs, rows, examples, settings):
        predictions, row = [], 0
        owners = np.asarray(rows.owner)
        with_entities = is_entity_scheme(settings.labels)
        for number, example in enumerate(examples):
            spans, logits, transitions = [], [], None
            while row < len(owners) and owners[row] == number:
                span, starts = rows.notes[row]
                spans.append(span)
                logits.append(outputs[row]["logits"])
                transitions = outputs[row].get("transitions")
                row += 1
            of_words = merge(spans, logits, int(starts[-1]))[starts[:-1]]
            predictions.append(_prediction(example, of_words, transitions, settings.labels, with_entities))
        return predictions

    def lines(self, prediction):
        if "entities" in prediction:
            found = [
                f"{one['type']}  {one['text']}  ({one['start']} to {one['end']}, {one['probability']:.1%})"
                for one in prediction["entities"]
            ]
            return found or ["No entities."]
        width = max(map(len, prediction["words"]))
        return [
            f"{word:<{width}}  {label}  {chance:.1%}"
            for word, label, chance in zip(prediction["words"], prediction["labels"], prediction["probabilities"])
        ]

    def score(self, examples, predictions, settings):
        from bert_tf.finetuning.metrics.token_metrics import tag_scores

        return tag_scores(
            [example.labels for example in examples],
            [prediction["labels"] for prediction in predictions],
            is_entity_scheme(settings.labels),
        )

    def metrics(self, settings, examples):
        entities_only = ("precision", "recall") if is_entity_scheme(settings.labels) else ()
        return ("accuracy", "f1", *entities_only)

    def findings(self, examples, predictions, settings):
        from bert_tf.finetuning.metrics.token_metrics import confusion, per_label

        true = [example.labels for example in examples]
        found = [prediction["labels"] for prediction in predictions]
        worst = [
            {
                "probability": chance,
                "word": word,
                "true": label,
                "predicted": guess,
                "sentence": example.text,
                "source": without_folder(example.source),
            }
            for example, prediction in zip(examples, predictions)
            for word, label, guess, chance in zip(
                example.words, example.labels, prediction["labels"], prediction["probabilities"]
            )
            if label != guess
        ]
        worst.sort(key=lambda row: -row["probability"])
        return ErrorAnalysis(
            confusion(true, found, settings.labels), per_label(true, found, is_entity_scheme(settings.labels)), worst
        )


def _piece_lookup(examples, tokenizer):
    """The piece ids of each distinct word as `_spaced` gives it; one that leaves nothing (a lone control
    character) is [UNK]."""
    words = list(dict.fromkeys(chain.from_iterable(_spaced(example.words) for example in examples)))
    unknown = np.array([tokenizer.unk_id], np.int32)
    return {word: ids if len(ids) else unknown for word, ids in zip(words, tokenizer.batch_ids(words))}


def _spaced(words):
    """The words with the space before them, which is part of a byte-level tokenizer's pieces."""
    return [f" {word}" if place else word for place, word in enumerate(words)]


def _targets(labels, starts, settings):
    """(label numbers, weights) of every piece; labels the model does not know weigh nothing."""
    index = {label: number for number, label in enumerate(settings.labels)}
    numbers, weights = np.zeros(starts[-1], np.int32), np.zeros(starts[-1], np.float32)
    whole, weight_of = settings.extra.get("pieces") == "all", settings.extra.get("class_weights", {})
    for label, start, end in zip(labels, starts, starts[1:]):
        if label not in index:
            continue
        weight = weight_of.get(label, 1)
        numbers[start], weights[start] = index[label], weight
        if whole:
            inner = f"I-{label[2:]}" if is_entity_scheme([label]) else label
            numbers[start + 1 : end], weights[start + 1 : end] = index.get(inner, index[label]), weight
    return numbers, weights


def _prediction(example, logits, transitions, labels, with_entities):
    if transitions is None:
        shifted = np.exp(logits - logits.max(axis=-1, keepdims=True), dtype=np.float64)
        chances, chosen = shifted / shifted.sum(axis=-1, keepdims=True), logits.argmax(axis=-1)
    else:
        chances, chosen = marginals(logits, transitions), viterbi(logits, transitions)
    names = [labels[label] for label in chosen]
    sure = [float(chance) for chance in chances[np.arange(len(chosen)), chosen]]
    found = {
        "text": example.text,
        "words": list(example.words),
        "spans": [list(span) for span in example.spans],
        "labels": names,
        "probabilities": sure,
    }
    if with_entities:
        found["entities"] = [
            {
                "type": kind,
                "start": example.spans[first][0],
                "end": example.spans[end - 1][1],
                "text": example.text[example.spans[first][0] : example.spans[end - 1][1]],
                "probability": min(sure[first:end]),
            }
            for kind, first, end in entities(names)
        ]
    return found


TASK = TokenClassification()
