"""Token classification: a label for every word (entities, parts of speech).

The first piece of a word has its label; the other pieces are ignored or continue the label. Long sentences and
documents are read in overlapping windows, and each word is classified in the window with the most context around it.

T tokens, W words, K labels. Source: Devlin et al. 2019, section 5.3 (first piece, maximal document context).
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from bert_tf.finetuning.labels import entities, is_entity_scheme, label_list, to_bio
from bert_tf.finetuning.metrics.crf_decoding import marginals, viterbi
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.head_formulas import dense
from bert_tf.finetuning.tasks.task import ErrorAnalysis, Task, without_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable, Hashable, Iterator, Sequence

    import keras

    from bert_tf.config import BertConfig
    from bert_tf.finetuning.data.tables import BlankLines
    from bert_tf.finetuning.tasks.head_formulas import Tensors
    from bert_tf.tokenizers.base import BaseTokenizer


PIECES = ("first", "all")
_SPECIAL = 2
#: Endings of prediction files that are tables or JSON lines; other files have one word per line, as for training.
_TABLES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", ".json")


class TokenClassification(Task):
    """The task `tag`; its examples are `labelled_sentences.LabelledSentence`."""

    task = "tag"

    def add_reading_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--column",
            metavar="NAME",
            help=f"label column: in CoNLL-U {', '.join(CONLLU_COLUMNS)} (default upos), "
            "in CoNLL its number from 1 (default: the last)",
        )
        parser.add_argument(
            "--words-field", default="words", metavar="NAME", help="field of the words in JSON lines (default words)"
        )
        parser.add_argument(
            "--labels-field",
            default="labels",
            metavar="NAME",
            help="field of the labels in JSON lines (default labels)",
        )
        parser.add_argument(
            "--documents",
            action="store_true",
            help="join the sentences between -DOCSTART- lines (CoNLL-U: # newdoc) into one text, so that "
            "each sentence is read in its context",
        )

    def add_training_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--crf", action="store_true", help="a linear-chain CRF over the labels")
        parser.add_argument(
            "--pieces",
            default="first",
            help="pieces with the label of the word: first (default), or all (B-X continued by I-X)",
        )
        parser.add_argument(
            "--stride",
            type=int,
            metavar="N",
            help="step of the window over a long sentence, in pieces (default: half the window)",
        )
        parser.add_argument(
            "--class-weights", metavar="W", help='"balanced", or LABEL=WEIGHT,…: the weight of the words of a label'
        )

    def read(
        self, path: str | Path, options: Namespace, settings: TaskSettings | None = None, labelled: bool = True
    ) -> Iterator[Any]:
        yield from read_labelled_words(
            path, options.column, options.words_field, options.labels_field, labelled, options.documents
        )

    def example(self, record: Any, settings: TaskSettings) -> Any:
        if isinstance(record, LabelledSentence):
            return record
        record = record if isinstance(record, dict) else {"text": record}
        words, text = record.get("words"), record.get("text")
        if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
            return LabelledSentence(tuple(words), None)
        if words is not None:
            raise DataError(f'"words" is {words!r:.40}: give a list of strings that is not empty.')
        if text is None:
            raise DataError(
                'Give a "text", or "words" as a list of strings; both are missing or null '
                f"(found: {', '.join(record) or 'nothing':.160})."
            )
        if not isinstance(text, str):
            raise DataError(f'"text" is {text!r:.40}, which is no text: give a string with at least one word.')
        sentence = words_of_text(text)
        if not sentence.words:
            raise DataError("The text is empty; give at least one word.")
        return sentence

    def records(
        self, path: str | Path, options: Namespace = Namespace(), blank: BlankLines | None = None
    ) -> Iterator[tuple[int, Any]]:
        kind = getattr(options, "format", None)
        if kind not in WORD_FORMATS and (kind or Path(path).suffix.lower() in _TABLES or str(path) == "-"):
            return super().records(path, options, blank)
        return labelled_words_or_errors(path, kind, labelled=False, documents=getattr(options, "documents", False))

    def asked(self, record: Any, options: Namespace) -> Any:
        field = options.words_field
        if field and isinstance(record, dict):
            return (
                {**record, "words": record[field]}
                if field in record
                else DataError(f"There is no field {field!r}; the fields are {', '.join(record):.160}.")
            )
        return record

    def inputs(self, example: Any) -> Hashable:
        return example.words

    def labels(self, example: Any) -> Sequence[str]:
        return example.labels

    def check(self, examples: Sequence[Any], settings: TaskSettings) -> None:
        # Single labels that training never saw count as wrong; without any that it saw, it is another column or task.
        labels = {label for one in examples for label in one.labels}
        if labels and labels.isdisjoint(settings.labels):
            raise DataError(
                f"{examples[0].source}: none of the file's labels ({', '.join(sorted(labels)):.80}) is one of the "
                f"model's: {', '.join(settings.labels):.160}."
            )

    def settings(self, options: Namespace, examples: Sequence[Any]) -> TaskSettings:
        if options.pieces not in PIECES:
            raise TaskError(f"--pieces is {options.pieces!r}; choose from {', '.join(PIECES)}.")
        if options.crf and options.pieces == "all":
            raise TaskError("--crf scores words, so --pieces must be first with it.")
        stride = (options.length - _SPECIAL) // 2 if options.stride is None else options.stride
        stride_windows(0, options.length - _SPECIAL, stride)
        labels = label_list(example.labels for example in examples)
        if len(labels) < 2:
            raise DataError(f"All words are labelled {labels[0]!r}; training needs at least two labels.")
        return TaskSettings(
            "tag",
            labels,
            max_length=options.length,
            metric=options.metric or ("f1" if is_entity_scheme(labels) else "accuracy"),
            extra={"crf": options.crf, "pieces": options.pieces, "stride": stride},
        )

    def training_settings(self, options: Namespace, examples: Sequence[Any], settings: TaskSettings) -> TaskSettings:
        if not options.class_weights:
            return settings
        if options.crf:
            raise TaskError("--class-weights weighs words and --crf learns whole sequences: leave one of them out.")
        counts = Counter(chain.from_iterable(example.labels for example in examples))
        weights = class_weights(options.class_weights, {label: counts[label] for label in settings.labels})
        return settings.replace(extra={**settings.extra, "class_weights": weights})

    def encode(
        self, examples: Sequence[Any], tokenizer: BaseTokenizer, settings: TaskSettings, training: bool = False
    ) -> EncodedExamples:
        window_length = settings.max_length - _SPECIAL
        stride = settings.extra.get("stride", max(1, window_length // 2))
        pieces = _piece_lookup(examples, tokenizer)
        sequences: dict[str, list] = {"token_ids": [], "segment_ids": []}
        if training:
            sequences |= {"labels": [], "label_weights": []}
        owner, notes = [], []
        for number, example in enumerate(examples):
            split = [pieces[word] for word in _spaced(example.words)]
            starts = np.cumsum([0, *map(len, split)])
            ids = np.concatenate([*split, np.zeros(0, np.int32)]).astype(np.int32)
            if training:
                labels, weights = _targets(example.labels, starts, settings)
            for span in stride_windows(len(ids), window_length, stride):
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

    def head(self, settings: TaskSettings, config: BertConfig) -> keras.layers.Layer:
        from bert_tf.layers.tagging import TaggingHead

        return TaggingHead(
            len(settings.labels),
            config.hidden_size,
            config.hidden_dropout_prob,
            config.initializer_range,
            settings.extra.get("crf", False),
            **self.prediction(config),
            name="head",
        )

    def head_shapes(self, settings: TaskSettings, config: BertConfig) -> dict[str, tuple[int, ...]]:
        labels = len(settings.labels)
        shapes = self.shapes_around(settings, config, labels)
        return {**shapes, "crf.transitions": (labels, labels + 2)} if settings.extra.get("crf") else shapes

    def head_outputs(
        self,
        tensors: Tensors,
        settings: TaskSettings,
        last_layer: str,
        sequence: np.ndarray,
        pooled: np.ndarray | None,
        padding_mask: np.ndarray,
    ) -> dict[str, np.ndarray]:
        logits = dense(tensors, "classifier", sequence)
        if not settings.extra.get("crf"):
            return {"logits": logits}
        # The folder holds the transitions transposed.
        transitions = tensors["crf.transitions"].T
        return {"logits": logits, "transitions": np.broadcast_to(transitions, (len(logits), *transitions.shape))}

    def objective(self, settings: TaskSettings) -> Callable[..., dict[str, Any]]:
        from bert_tf.finetuning.tasks.token_losses import CRFLoss, TokenCrossEntropy

        return CRFLoss() if settings.extra.get("crf") else TokenCrossEntropy()

    def decode(
        self,
        outputs: Sequence[dict[str, np.ndarray]],
        rows: EncodedExamples,
        examples: Sequence[Any],
        settings: TaskSettings,
    ) -> list[dict[str, Any]]:
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
            word_logits = merge(spans, logits, int(starts[-1]))[starts[:-1]]
            predictions.append(_prediction(example, word_logits, transitions, settings.labels, with_entities))
        return predictions

    def lines(self, prediction: dict[str, Any]) -> list[str] | None:
        if "entities" in prediction:
            lines = [
                f"{entity['type']}  {entity['text']}  "
                f"({entity['start']} to {entity['end']}, {entity['probability']:.1%})"
                for entity in prediction["entities"]
            ]
            return lines or ["No entities."]
        width = max(map(len, prediction["words"]))
        return [
            f"{word:<{width}}  {label}  {probability:.1%}"
            for word, label, probability in zip(prediction["words"], prediction["labels"], prediction["probabilities"])
        ]

    def score(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> dict[str, Any]:
        from bert_tf.finetuning.metrics.token_metrics import tag_scores

        return tag_scores(
            [example.labels for example in examples],
            _comparable(predictions, settings)[1],
            is_entity_scheme(settings.labels),
        )

    def metrics(self, settings: TaskSettings, examples: Sequence[Any]) -> tuple[str, ...]:
        entities_only = ("precision", "recall") if is_entity_scheme(settings.labels) else ()
        return ("accuracy", "f1", *entities_only)

    def findings(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> ErrorAnalysis:
        from bert_tf.finetuning.metrics.token_metrics import confusion, per_label

        true = [example.labels for example in examples]
        labels, predicted = _comparable(predictions, settings)
        worst = [
            {
                "probability": probability,
                "word": word,
                "true": label,
                "predicted": predicted_label,
                "sentence": example.text,
                "source": without_folder(example.source),
            }
            for example, prediction, predicted_labels in zip(examples, predictions, predicted)
            for word, label, predicted_label, probability in zip(
                example.words, example.labels, predicted_labels, prediction["probabilities"]
            )
            if label != predicted_label
        ]
        worst.sort(key=lambda row: -row["probability"])
        return ErrorAnalysis(
            confusion(true, predicted, labels),
            per_label(true, predicted, is_entity_scheme(settings.labels)),
            worst,
        )


def _comparable(predictions, settings):
    """(the labels of the model, those of each prediction), in BIO as those of the examples.

    A model of Transformers can have another scheme: BIOES, or IOB1, which has no "B-" for a type whose entities never
    touch.
    """
    predicted = [prediction["labels"] for prediction in predictions]
    if not is_entity_scheme(settings.labels):
        return settings.labels, predicted
    labels = label_list([settings.labels])
    begins = {label for label in labels if label.startswith("B-")}
    if begins <= set(settings.labels) <= set(labels):
        return settings.labels, predicted
    return labels, [to_bio(one) for one in predicted]


def _piece_lookup(examples, tokenizer):
    """A dict from the distinct words of `_spaced` to their piece ids; a word without pieces (a control character) is
    [UNK]."""
    words = list(dict.fromkeys(chain.from_iterable(_spaced(example.words) for example in examples)))
    unknown = np.array([tokenizer.unk_id], np.int32)
    return {word: ids if len(ids) else unknown for word, ids in zip(words, tokenizer.batch_ids(words))}


def _spaced(words):
    """The words, all but the first with the space before them, which belongs to the pieces of byte-level tokenizers."""
    return [f" {word}" if index else word for index, word in enumerate(words)]


def _targets(labels, starts, settings):
    """(label numbers, weights) of every piece; pieces with a label that the model does not have get weight 0."""
    index = {label: number for number, label in enumerate(settings.labels)}
    numbers, weights = np.zeros(starts[-1], np.int32), np.zeros(starts[-1], np.float32)
    all_pieces, label_weights = settings.extra.get("pieces") == "all", settings.extra.get("class_weights", {})
    for label, start, end in zip(labels, starts, starts[1:]):
        if label not in index:
            continue
        weight = label_weights.get(label, 1)
        numbers[start], weights[start] = index[label], weight
        if all_pieces:
            inner = f"I-{label[2:]}" if is_entity_scheme([label]) else label
            numbers[start + 1 : end], weights[start + 1 : end] = index.get(inner, index[label]), weight
    return numbers, weights


def _prediction(example, logits, transitions, labels, with_entities):
    if transitions is None:
        exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True), dtype=np.float64)
        probabilities, best = exponentials / exponentials.sum(axis=-1, keepdims=True), logits.argmax(axis=-1)
    else:
        probabilities, best = marginals(logits, transitions), viterbi(logits, transitions)
    names = [labels[label] for label in best]
    best_probabilities = [float(probability) for probability in probabilities[np.arange(len(best)), best]]
    prediction = {
        "text": example.text,
        "words": list(example.words),
        "spans": [list(span) for span in example.spans],
        "labels": names,
        "probabilities": best_probabilities,
    }
    if with_entities:
        prediction["entities"] = [
            {
                "type": kind,
                "start": example.spans[first][0],
                "end": example.spans[end - 1][1],
                "text": example.text[example.spans[first][0] : example.spans[end - 1][1]],
                "probability": min(best_probabilities[first:end]),
            }
            for kind, first, end in entities(names)
        ]
    return prediction


TASK = TokenClassification()
