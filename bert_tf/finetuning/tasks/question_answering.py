"""Extractive question answering: the answer as a span of the passage, or that there is none.

A passage longer than the model is read in overlapping windows, each behind the question; spans come from the
passage alone and begin where their window shows most around them; "no answer" is the span of [CLS].

T tokens, n pieces of a passage. Source: Devlin et al. 2019, sections 4.2 and 4.3, and `run_squad.py`.
"""

from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bert_tf.errors import DataError, TaskError
from bert_tf.finetuning.data.document_stride import best_window, merge, stride_windows
from bert_tf.finetuning.data.encoded_examples import EncodedExamples
from bert_tf.finetuning.data.squad import Question, read_squad, split_by_passage
from bert_tf.finetuning.metrics.best_spans import best_spans
from bert_tf.finetuning.metrics.squad_metric import best_threshold, question_scores, squad_scores
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.task import ErrorAnalysis, Task

_SPECIAL = 3
_DEFAULTS = {
    "stride": 128,
    "question_length": 64,
    "answer_length": 30,
    "n_best": 5,
    "no_answer": False,
    "threshold": 0.0,
}


@dataclass(frozen=True)
class _Place:
    """Where a row's passage window lies: `offset` is the token its first piece is at; `offsets` are the
    characters of every piece of the passage."""

    window: tuple
    offset: int
    offsets: tuple


class QuestionAnswering(Task):
    """The family `answer`; its examples are `squad_data.Question`s."""

    task = "answer"
    length = 384  # of Google's run_squad.py

    def add_training_arguments(self, parser):
        parser.add_argument(
            "--stride",
            type=int,
            default=_DEFAULTS["stride"],
            metavar="N",
            help="pieces by which the window moves over a long passage",
        )
        parser.add_argument(
            "--question-length",
            type=int,
            default=_DEFAULTS["question_length"],
            metavar="N",
            help="pieces a question is cut to",
        )
        parser.add_argument(
            "--answer-length",
            type=int,
            default=_DEFAULTS["answer_length"],
            metavar="N",
            help="pieces of the longest answer",
        )

    def read(self, path, options, settings=None, labelled=True):
        yield from read_squad(path)

    def example(self, record, settings):
        if isinstance(record, Question):
            return record
        if not isinstance(record, dict):
            raise DataError('Give a "question" and a "passage" in one object.')
        for name in ("question", "passage"):
            if not isinstance(record.get(name), str) or not record[name].strip():
                raise DataError(f'Give a "question" and a "passage" as text; {name!r} is missing or empty.')
        return Question(
            str(record.get("id", "")),
            record["question"],
            record["passage"],
            (),
            curves=bool(record.get("curves", False)),
        )

    def records(self, path, options=Namespace()):
        if getattr(options, "format", None) or Path(path).suffix.lower() != ".json":
            return super().records(path, options)
        return enumerate(read_squad(path), 1)

    def split(self, examples, share, seed=0):
        return split_by_passage(examples, share, seed)

    def settings(self, options, examples):
        if not any(example.answers for example in examples):
            raise DataError("No question to learn from has an answer; there is nothing to learn.")
        chosen = {
            "stride": options.stride,
            "question_length": options.question_length,
            "answer_length": options.answer_length,
            "no_answer": any(not example.answers for example in examples),
        }
        for name in ("stride", "question_length", "answer_length"):
            if chosen[name] < 1:
                raise TaskError(f"--{name.replace('_', '-')} is {chosen[name]}; it must be 1 or more.")
        if options.length < chosen["question_length"] + _SPECIAL + 8:
            raise TaskError(
                f"--length is {options.length}; with questions of up to "
                f"{chosen['question_length']} pieces it must be at least "
                f"{chosen['question_length'] + _SPECIAL + 8}."
            )
        return TaskSettings(
            "answer", max_length=options.length, pair=True, metric=options.metric or "f1", extra={**_DEFAULTS, **chosen}
        )

    def encode(self, examples, tokenizer, settings, training=False):
        extra = {**_DEFAULTS, **settings.extra}
        passages, notes, owner, targets = {}, [], [], []
        special = tokenizer.pack_pair([], [], settings.max_length).length
        sequences = {"token_ids": [], "segment_ids": []}
        for number, example in enumerate(examples):
            if example.passage not in passages:
                passages[example.passage] = tokenizer.tokenize(example.passage)
            passage = passages[example.passage]
            question = tokenizer.tokenize(example.question).ids
            question = question[: min(extra["question_length"], settings.max_length // 2)]
            room = settings.max_length - len(question) - special
            answer = _answer_pieces(example, passage.offsets) if training else None
            for window in stride_windows(len(passage.ids), room, min(extra["stride"], (room + 1) // 2)):
                packed = tokenizer.pack_pair(question, passage.ids[slice(*window)], settings.max_length)
                sequences["token_ids"].append(packed.token_ids)
                sequences["segment_ids"].append(packed.segment_ids)
                owner.append(number)
                # Behind the question and what parts the two, before the last separator.
                place = _Place(window, packed.length - 1 - (window.end - window.start), passage.offsets)
                notes.append(place)
                if training:
                    targets.append(_target(example, answer, place))
        values = {}
        if training:
            starts, ends, weights = zip(*targets)
            values = {
                "starts": np.array(starts, np.int32),
                "ends": np.array(ends, np.int32),
                "weights": np.array(weights, np.float32),
            }
        return EncodedExamples(sequences, values, np.array(owner), tokenizer.pad_id, notes)

    def head(self, settings, config):
        from bert_tf.layers.spans import SpanHead

        return SpanHead(config.hidden_size, config.initializer_range, name="head")

    def objective(self, settings):
        from bert_tf.finetuning.tasks.token_losses import SpanCrossEntropy

        return SpanCrossEntropy()

    def decode(self, outputs, rows, examples, settings):
        extra = {**_DEFAULTS, **settings.extra}
        predictions, row = [], 0
        owners = np.asarray(rows.owner)
        for number, example in enumerate(examples):
            first = row
            while row < len(owners) and owners[row] == number:
                row += 1
            predictions.append(_answer(example, rows.notes[first:row], outputs[first:row], extra))
        return predictions

    def lines(self, prediction):
        place = f" ({prediction['start']} to {prediction['end']})" if prediction["answer"] else ""
        first = f"{prediction['answer'] or 'No answer'}{place}, {prediction['probability']:.1%}"
        return [first, *(f"    {one['probability']:6.1%}  {one['text']}" for one in prediction["n_best"])]

    def tune(self, examples, outputs, rows, settings):
        if not settings.extra.get("no_answer"):
            return settings
        predictions = self.decode(outputs, rows, examples, settings)
        keys = range(len(examples))
        threshold, _ = best_threshold(
            {key: predictions[key]["best"]["text"] for key in keys},
            {key: predictions[key]["margin"] for key in keys},
            {key: examples[key].answer_texts for key in keys},
        )
        return settings.replace(extra={**settings.extra, "threshold": threshold})

    def score(self, examples, predictions, settings):
        return squad_scores(
            {key: prediction["answer"] for key, prediction in enumerate(predictions)},
            {key: example.answer_texts for key, example in enumerate(examples)},
        )

    def metrics(self, settings, examples):
        parts = ("answerable_exact_match", "answerable_f1", "unanswerable_accuracy")
        some_without = any(not example.answers for example in examples)
        return ("exact_match", "f1", *(parts if some_without else ()))

    def findings(self, examples, predictions, settings):
        worst = []
        for example, prediction in zip(examples, predictions):
            exact, overlap = question_scores(prediction["answer"], example.answer_texts)
            if overlap < 1:
                worst.append(
                    {
                        "probability": prediction["probability"],
                        "f1": overlap,
                        "question": example.question,
                        "true": " | ".join(dict.fromkeys(example.answer_texts)) or "(no answer)",
                        "predicted": prediction["answer"] or "(no answer)",
                        "id": example.key,
                    }
                )
        worst.sort(key=lambda row: (row["f1"], -row["probability"]))
        return ErrorAnalysis(worst=worst, worst_errors_title="The worst errors")


def _answer_pieces(example, offsets):
    """(first, last) piece that holds a character of the first answer, or None. A piece that the answer's edge
    cuts belongs to it."""
    if not example.answers:
        return None
    start, text = example.answers[0]
    inside = [piece for piece, (first, last) in enumerate(offsets) if last > start and first < start + len(text)]
    return (inside[0], inside[-1]) if inside else None


def _target(example, answer, place):
    """(start token, end token, weight) of a row; [CLS] where the window does not hold the whole answer, as in
    the original. An answer that the tokenizer leaves nothing of weighs nothing."""
    if answer is None:
        return 0, 0, 0.0 if example.answers else 1.0
    start, end = place.window
    if not (start <= answer[0] and answer[1] < end):
        return 0, 0, 1.0
    return place.offset + answer[0] - start, place.offset + answer[1] - start, 1.0


def _answer(example, places, outputs, extra):
    spans = [place.window for place in places]
    offsets = places[0].offsets
    chosen = best_window(spans, len(offsets))
    found, empty = [], []
    for index, (place, output) in enumerate(zip(places, outputs)):
        start, end = place.window
        inside = slice(place.offset, place.offset + end - start)
        for score, first, last in best_spans(
            output["start_logits"][inside],
            output["end_logits"][inside],
            extra["answer_length"],
            extra["n_best"],
            chosen[start:end] == index,
        ):
            found.append((score, offsets[start + first][0], offsets[start + last][1]))
        empty.append(float(output["start_logits"][0]) + float(output["end_logits"][0]))
    # The same characters can come from two windows; the better score is met first.
    spans_by_score = {}
    for score, first, last in sorted(found, key=lambda span: (-span[0], span[1], span[2])):
        spans_by_score.setdefault((first, last), score)
    return _prediction(
        example,
        list(spans_by_score.items())[: extra["n_best"]],
        min(empty),
        extra,
        _curves(places, outputs) if example.curves else {},
    )


def _prediction(example, spans, empty, extra, curves):
    scores = np.array([score for _, score in spans] + ([empty] if extra["no_answer"] else []), np.float64)
    if not len(scores):
        scores = np.zeros(1)
    chances = np.exp(scores - scores.max())
    chances = [float(chance) for chance in chances / chances.sum()]
    n_best = [
        {"text": example.passage[first:last], "start": first, "end": last, "score": score, "probability": chance}
        for ((first, last), score), chance in zip(spans, chances)
    ]
    best = n_best[0] if n_best else {"text": "", "start": 0, "end": 0, "score": empty, "probability": 0.0}
    margin = empty - best["score"]
    answered = bool(n_best) and not (extra["no_answer"] and margin > extra["threshold"])
    return {
        "id": example.key,
        "question": example.question,
        "answer": best["text"] if answered else "",
        "start": best["start"] if answered else None,
        "end": best["end"] if answered else None,
        "probability": best["probability"] if answered else chances[-1],
        "margin": margin,
        "best": best,
        "no_answer_probability": chances[-1] if extra["no_answer"] else None,
        "n_best": n_best,
        **curves,
    }


def _curves(places, outputs):
    """The probability of each piece of the passage to begin and to end the answer, over the whole passage."""
    offsets = places[0].offsets
    found = {"pieces": [list(span) for span in offsets]}
    for side in ("start", "end"):
        logits = merge(
            [place.window for place in places],
            [output[f"{side}_logits"] for output in outputs],
            len(offsets),
            places[0].offset,
        ).astype(np.float64)
        chances = np.exp(logits - logits.max(initial=-np.inf))
        found[f"{side}_probabilities"] = [float(chance) for chance in chances / max(chances.sum(), 1e-300)]
    return found


TASK = QuestionAnswering()
