"""Inference with a fine-tuned model: the runtime runs the encoder, the head runs on top, the task decodes the outputs.

Shapes: B batch, T tokens, C choices.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from bert_tf import checkpoints
from bert_tf.finetuning.task_folder import load_head
from bert_tf.finetuning.task_network import network_over
from bert_tf.finetuning.task_settings import read_settings
from bert_tf.finetuning.tasks.registry import family
from bert_tf.read_ahead import read_ahead_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bert_tf.finetuning.data.encoded_examples import EncodedExamples
    from bert_tf.finetuning.task_network import TaskNetwork
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.models import BertModel
    from bert_tf.runtime import Runtime
    from bert_tf.tokenizers.base import BaseTokenizer


class TaskModel:
    """The task of a loaded `Bert`. It is thread-safe.

    Args:
        settings: `TaskSettings`.
        network: the `TaskNetwork` over the model's layers.
        tokenizer: a `Tokenizer`.
        runtime: the `Runtime` of the encoder.

    Attributes:
        settings: `TaskSettings`.
        family: the `Task` of the settings.
        network: the `TaskNetwork` over the model's layers.
    """

    def __init__(
        self, settings: TaskSettings, network: TaskNetwork, tokenizer: BaseTokenizer, runtime: Runtime
    ) -> None:
        self.settings, self.network, self.family = settings, network, family(settings.task)
        self._tokenizer, self._runtime = tokenizer, runtime

    def predict(self, inputs: Iterable[Any], batch_size: int = 32) -> list[dict[str, Any]]:
        """Predicts for a list of inputs.

        Args:
            inputs: iterable. The inputs of the task: for "classify" texts or (text_a, text_b) pairs; or JSON records,
                or examples of the task.
            batch_size: int. Rows in one forward pass.

        Returns: list of dicts, in the order of the inputs; see `decode` of the task.

        Raises: DataError or TextError if an input cannot be read.
        """
        return list(self.predict_many(inputs, batch_size))

    def predict_many(self, inputs: Iterable[Any], batch_size: int = 32, errors: str = "raise") -> Iterator[Any]:
        """Predicts for any number of inputs in constant memory.

        Args:
            inputs: iterable, as in `predict`. An exception among the inputs (a bad line of a file) is treated as the
                error of this input.
            batch_size: int. Rows in one forward pass; with 1 each prediction is made before the next input is read.
            errors: str. "raise", or "return" to yield the exception of an input that cannot be read.

        Yields: dicts, in the order of the inputs.
        """
        for window in read_ahead_windows(inputs, batch_size):
            results = self._examples(window, errors)
            indices = [index for index, result in enumerate(results) if not isinstance(result, Exception)]
            examples = [results[index] for index in indices]
            if examples:
                rows = self.family.encode(examples, self._tokenizer, self.settings)
                outputs = self.outputs(rows, batch_size)
                predictions = self.family.decode(outputs, rows, examples, self.settings)
                for index, prediction in zip(indices, predictions, strict=True):
                    results[index] = prediction
            yield from results

    def _examples(self, inputs, errors):
        """The example of each input, checked to be encodable, or the exception of a bad input."""
        examples = []
        for item in inputs:
            try:
                if isinstance(item, Exception):
                    raise item
                example = self.family.example(item, self.settings)
                if errors == "return":
                    # Only the tokenizer detects some errors (half a surrogate pair), and it refuses the whole window.
                    self.family.encode([example], self._tokenizer, self.settings)
                examples.append(example)
            except ValueError as error:
                if errors == "raise":
                    raise
                examples.append(error)
        return examples

    def outputs(self, rows: EncodedExamples, batch_size: int = 32) -> list[dict[str, np.ndarray]]:
        """The outputs of the head for `Rows`: list with a dict of arrays for each row."""
        return run_rows(rows, batch_size, self._forward)

    def _forward(self, batch):
        shape = batch["token_ids"].shape
        arrays = {name: batch[name].reshape(-1, shape[-1]) for name in ("token_ids", "segment_ids", "padding_mask")}
        # A row may be padding only, if an example has fewer choices than others.
        pooled = self.family.needs_pooler(self.settings)
        output_names = ("sequence_output", *(("pooled_output",) if pooled else ()))
        encoded = self._runtime.run(arrays, output_names)
        results = self.network.head(
            encoded["sequence_output"], encoded.get("pooled_output"), arrays["padding_mask"], training=False
        )
        return {name: np.asarray(value).reshape(*shape[:-1], *value.shape[1:]) for name, value in results.items()}


def run_rows(
    rows: EncodedExamples, batch_size: int, forward: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]
) -> list[dict[str, np.ndarray]]:
    """Runs all rows in batches of similar lengths.

    Args:
        rows: `Rows`.
        batch_size: int. The largest B.
        forward: callable dict of arrays [B, ...] -> dict of arrays [B, ...].

    Returns: list with a dict of arrays for each row, in the order of the rows.
    """
    outputs: list[dict[str, np.ndarray]] = [{}] * len(rows)
    order = np.argsort(rows.lengths, kind="stable")
    for first in range(0, len(order), batch_size):
        indices = order[first : first + batch_size]
        results = forward(rows.batch(indices))
        for position, index in enumerate(indices):
            outputs[index] = {name: value[position] for name, value in results.items()}
    return outputs


def load_task(folder: str | Path, model: BertModel, tokenizer: BaseTokenizer, runtime: Runtime) -> TaskModel | None:
    """Loads the task of a model folder.

    Args:
        folder: str or Path. The model folder.
        model: the loaded `BertModel` of the folder.
        tokenizer: the `Tokenizer` of the folder.
        runtime: the `Runtime` of the model.

    Returns: `TaskModel`, or None if the folder has no task.

    Raises: CheckpointError or TaskError if the settings or the head cannot be read.
    """
    settings = read_settings(folder)
    if settings is None:
        return None
    network = network_over(model, family(settings.task), settings)
    load_head(Path(folder), network)
    return TaskModel(settings, network, tokenizer, runtime)


@dataclass(frozen=True)
class LoadedModel:
    """The content of a model folder, ready to run.

    Attributes:
        path: Path. The folder.
        config: `BertConfig`.
        tokenizer: `Tokenizer`.
        model: `BertModel`.
        runtime: the `Runtime` of the model.
        task: `TaskModel`, or None for a model that was not fine-tuned.
    """

    path: Path
    config: Any
    tokenizer: Any
    model: Any
    runtime: Any
    task: Optional[TaskModel]


def load_model(name_or_folder: str | Path, precision: str = "float32") -> LoadedModel:
    """Loads a model, with its task if it has one.

    Args:
        name_or_folder: str or Path. The name or folder of a model.
        precision: str. The precision of the `Runtime`.

    Returns: `LoadedModel`.

    Raises: OSError or ValueError with one sentence, on an unknown model, a damaged file or an unknown precision.
    """
    from bert_tf.runtime import Runtime

    path = checkpoints.find(name_or_folder)
    config, tokenizer, model = checkpoints.read(path)
    runtime = Runtime(model, precision=precision)
    return LoadedModel(path, config, tokenizer, model, runtime, load_task(path, model, tokenizer, runtime))
