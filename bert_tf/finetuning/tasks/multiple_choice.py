"""Multiple choice: selects the text that fits a context.

The model reads each choice as a pair with the context and gives it one score; a softmax over the choices of a question
gives the probabilities.

Shapes: C choices, t tokens. Source: Devlin et al. 2019, section 4.4 (SWAG).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import DataError
from bert_tf.finetuning.data.encoded_examples import EncodedExamples, stacked
from bert_tf.finetuning.data.multiple_choice_examples import (
    ChoiceColumns,
    MultipleChoiceExample,
    choices_of,
    read_choices,
)
from bert_tf.finetuning.task_settings import TaskSettings
from bert_tf.finetuning.tasks.head_formulas import dense
from bert_tf.finetuning.tasks.task import ErrorAnalysis, Task, without_folder

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Hashable, Iterator, Sequence
    from pathlib import Path

    import keras

    from bert_tf.config import BertConfig
    from bert_tf.finetuning.tasks.head_formulas import Tensors
    from bert_tf.tokenizers.base import BaseTokenizer


_DEFAULTS = ChoiceColumns()


def _columns(options):
    names = options.choice_columns.split(",") if options.choice_columns else ()
    return ChoiceColumns(
        options.context_column or _DEFAULTS.context,
        options.start_column or _DEFAULTS.start,
        tuple(name.strip() for name in names),
        getattr(options, "label_column", _DEFAULTS.label),
    )


class MultipleChoice(Task):
    """The task "choose"; its examples are `multiple_choice_examples.MultipleChoiceExample`."""

    task, several = "choose", True

    def add_reading_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--format", metavar="F", help="csv, tsv or jsonl (default: by the file's ending)")
        parser.add_argument(
            "--context-column",
            default="sent1",
            metavar="NAME",
            help="column of the context (default: sent1, as in SWAG)",
        )
        parser.add_argument(
            "--start-column",
            default="sent2",
            metavar="NAME",
            help="column of the common start of the choices, if there is one (default: sent2)",
        )
        parser.add_argument(
            "--choice-columns", metavar="A,B,…", help="columns of the choices (default: ending0, ending1, …)"
        )
        parser.add_argument(
            "--label-column",
            default="label",
            metavar="NAME",
            help="column of the right choice's number, from 0 (default: label)",
        )

    def read(
        self, path: str | Path, options: Namespace, settings: TaskSettings | None = None, labelled: bool = True
    ) -> Iterator[Any]:
        return read_choices(path, _columns(options), options.format, labelled)

    def example(self, record: Any, settings: TaskSettings) -> Any:
        if isinstance(record, MultipleChoiceExample):
            return record
        if not isinstance(record, dict) or not {"context", "sent1"} & set(record):
            raise DataError('Give a "context" and a list of "choices" in one object.')
        return choices_of(record, labelled=False)

    def asked(self, record: Any, options: Namespace) -> Any:
        if not isinstance(record, dict):
            return record
        try:
            return choices_of(record, _columns(options), labelled=False)
        except DataError as error:
            return error

    def settings(self, options: Namespace, examples: Sequence[Any]) -> TaskSettings:
        return TaskSettings(
            "choose",
            pair=True,
            max_length=options.length,
            metric=options.metric or "accuracy",
            extra={"choices": len(examples[0].choices)},
        )

    def inputs(self, example: Any) -> Hashable:
        return example.context, example.choices

    def check(self, examples: Sequence[Any], settings: TaskSettings) -> None:
        count = settings.extra.get("choices")
        for example in examples:
            if count and len(example.choices) != count:
                raise DataError(
                    f"{example.source}: {len(example.choices)} choices, but this training has {count} a question."
                )

    def encode(
        self, examples: Sequence[Any], tokenizer: BaseTokenizer, settings: TaskSettings, training: bool = False
    ) -> EncodedExamples:
        packed = iter(
            tokenizer.encode_batch(
                ((example.context, choice) for example in examples for choice in example.choices),
                max_length=settings.max_length,
            )
        )
        sequences = stacked([[next(packed) for _ in example.choices] for example in examples], tokenizer.pad_id)
        values = {}
        if training:
            values["labels"] = np.array([example.label for example in examples], np.int32)
        return EncodedExamples(sequences, values, pad_id=tokenizer.pad_id)

    def head(self, settings: TaskSettings, config: BertConfig) -> keras.layers.Layer:
        from bert_tf.layers.choosing import ChoiceHead

        return ChoiceHead(
            config.hidden_size,
            config.hidden_dropout_prob,
            config.initializer_range,
            **self.first_layer(settings, config),
            **self.prediction(config),
            name="head",
        )

    def head_shapes(self, settings: TaskSettings, config: BertConfig) -> dict[str, tuple[int, ...]]:
        return self.shapes_around(settings, config, 1)

    def head_outputs(
        self,
        tensors: Tensors,
        settings: TaskSettings,
        last_layer: str,
        sequence: np.ndarray,
        pooled: np.ndarray | None,
        padding_mask: np.ndarray,
    ) -> dict[str, np.ndarray]:
        assert pooled is not None, "this task reads the pooled output, or the head has a layer of its own"
        return {"logits": dense(tensors, last_layer, pooled)[..., 0]}

    def objective(self, settings: TaskSettings) -> Callable[..., dict[str, Any]]:
        from bert_tf.finetuning.tasks.token_losses import ChoiceCrossEntropy

        return ChoiceCrossEntropy()

    def decode(
        self,
        outputs: Sequence[dict[str, np.ndarray]],
        rows: EncodedExamples,
        examples: Sequence[Any],
        settings: TaskSettings,
    ) -> list[dict[str, Any]]:
        predictions = []
        for example, output in zip(examples, outputs):
            # Choices of padding, up to the number of another question of the batch, are left out.
            logits = np.asarray(output["logits"], np.float64)[: len(example.choices)]
            powers = np.exp(logits - logits.max())
            probabilities = [float(probability) for probability in powers / powers.sum()]
            best = int(logits.argmax())
            predictions.append(
                {
                    "choice": best,
                    "text": example.choices[best],
                    "probability": probabilities[best],
                    "probabilities": probabilities,
                }
            )
        return predictions

    def lines(self, prediction: dict[str, Any]) -> list[str] | None:
        return [
            prediction["text"],
            *(f"    {number}  {probability:.1%}" for number, probability in enumerate(prediction["probabilities"])),
        ]

    def score(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> dict[str, Any]:
        from sklearn.metrics import accuracy_score

        true = [example.label for example in examples]
        predicted = [prediction["choice"] for prediction in predictions]
        return {"accuracy": float(accuracy_score(true, predicted)), "questions": len(true)}

    def metrics(self, settings: TaskSettings, examples: Sequence[Any]) -> tuple[str, ...]:
        return ("accuracy",)

    def findings(
        self, examples: Sequence[Any], predictions: Sequence[dict[str, Any]], settings: TaskSettings
    ) -> ErrorAnalysis:
        worst = [
            {
                "probability": prediction["probability"],
                "context": example.context,
                "true": example.choices[example.label],
                "predicted": prediction["text"],
                "source": without_folder(example.source),
            }
            for example, prediction in zip(examples, predictions)
            if prediction["choice"] != example.label
        ]
        return ErrorAnalysis(worst=sorted(worst, key=lambda row: -row["probability"]))


TASK = MultipleChoice()
