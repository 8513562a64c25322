"""Inference with a fine-tuned model: the runtime runs the encoder, the head runs on top, the task decodes the outputs.

Shapes: B batch, T tokens, C choices.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from bert_tf import checkpoints
from bert_tf.checkpoints.reading import read_stored
from bert_tf.errors import DataError, refuse_one_alone, report
from bert_tf.finetuning.stored_head import StoredNetwork
from bert_tf.finetuning.task_folder import read_head
from bert_tf.finetuning.task_settings import read_settings
from bert_tf.finetuning.tasks.registry import task_type
from bert_tf.model_outputs import INPUTS
from bert_tf.runtime.read_ahead import check_batch_size, read_ahead_windows, read_row
from bert_tf.runtime.weights import parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from bert_tf.checkpoints.stored_model import StoredModel
    from bert_tf.finetuning.data.encoded_examples import EncodedExamples
    from bert_tf.finetuning.task_network import TaskNetwork
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.models import BertModel
    from bert_tf.runtime import Runtime
    from bert_tf.tokenizers.base import BaseTokenizer


_PARTS = ("weight", "bias")
_TEXTS = 32  # in one forward pass, if each row has several; in a batch of more rows as many as rows


class TaskModel:
    """The task of a loaded `Bert`. It is thread-safe.

    Args:
        settings: `TaskSettings`.
        weights: `TaskNetwork` or `StoredNetwork`. The encoder and the head.
        tokenizer: a `Tokenizer`.
        runtime: the `Runtime` of the encoder.

    Attributes:
        settings: `TaskSettings`.
        task_type: the `Task` of the settings.
        weights: `TaskNetwork` or `StoredNetwork`.
    """

    def __init__(
        self,
        settings: TaskSettings,
        weights: TaskNetwork | StoredNetwork,
        tokenizer: BaseTokenizer,
        runtime: Runtime,
    ) -> None:
        self.settings, self.weights, self.task_type = settings, weights, task_type(settings.task)
        self._tokenizer, self._runtime = tokenizer, runtime

    @property
    def network(self) -> TaskNetwork:
        """The Keras network of the encoder and the head; built when it is first read."""
        return self.weights.network if isinstance(self.weights, StoredNetwork) else self.weights

    def with_runtime(self, runtime: Runtime) -> TaskModel:
        """The same task with another `Runtime` of its encoder; the weights are shared."""
        return TaskModel(self.settings, self.weights, self._tokenizer, runtime)

    def head_tensors(self) -> dict[str, np.ndarray]:
        """The tensors of the head by their names in the folder, float32; a matrix of a dense layer is [out, in]."""
        if isinstance(self.weights, StoredNetwork):
            return dict(self.weights.tensors)
        variables = self.weights.head.named_variables()
        return {name: np.ascontiguousarray(np.asarray(variable).T) for name, variable in variables.items()}

    def with_windows(self, windows: str | None, stride: int | None = None) -> TaskModel:
        """The same classifier, reading texts that are too long in windows; the weights are shared.

        Args:
            windows: str. How the logits of the windows are pooled, "mean" or "max"; None to cut the texts.
            stride: int. The step of the windows in pieces; None for that of the task's training, else half a window.
        """
        stride = self.settings.extra.get("stride") if stride is None else stride
        settings = self.settings.replace(extra={**self.settings.extra, "windows": windows, "stride": stride})
        return TaskModel(settings, self.weights, self._tokenizer, self._runtime)

    def sentence_vectors(self, sequence: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        """The vectors [B, H] of the head's pooling for hidden states [B, T, H] and a padding mask [B, T]."""
        if isinstance(self.weights, StoredNetwork):
            return self.weights.sentence_vectors(sequence, padding_mask)
        return np.asarray(self.weights.head.vector(sequence, None, padding_mask))

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

    def predict_many(
        self,
        inputs: Iterable[Any],
        batch_size: int = 32,
        errors: str = "raise",
        progress: Callable[[int], Any] | None = None,
    ) -> Iterator[Any]:
        """Predicts for any number of inputs in constant memory.

        Args:
            inputs: iterable, as in `predict`. An exception among the inputs (a bad line of a file) is treated as the
                error of this input.
            batch_size: int. Rows in one forward pass; with 1 each prediction is made before the next input is read.
            errors: str. "raise", or "return" to yield the exception of an input that cannot be read.
            progress: callable. It is called after each forward pass with the number of inputs that are done; those that
                are sorted by length together count by their share of tokens.

        Yields: dicts, in the order of the inputs.
        """
        refuse_one_alone(inputs, "inputs", DataError)
        check_batch_size(batch_size)
        done = 0
        for window in read_ahead_windows(inputs, batch_size):
            results = [read_row(item, self._example, errors) for item in window]
            indices, rows = self._encoded(results, errors)
            if rows is not None:
                examples = [results[index] for index in indices]
                tokens_read = progress and functools.partial(_report_inputs, progress, done, len(window))
                outputs = self.outputs(rows, batch_size, tokens_read)
                predictions = self.task_type.decode(outputs, rows, examples, self.settings)
                for index, prediction in zip(indices, predictions, strict=True):
                    results[index] = prediction
            done += len(window)
            yield from results

    def _example(self, item):
        """The example of an input."""
        return self.task_type.example(item, self.settings)

    def _encoded(self, results, errors):
        """The indices of the examples among `results`, which holds examples and exceptions, and their rows or None.

        With "return" for `errors`, an example that cannot be encoded is replaced by its exception in `results`.
        """

        def encode(examples):
            return self.task_type.encode(examples, self._tokenizer, self.settings)

        def checked(example):
            encode([example])
            return example

        indices = [index for index, result in enumerate(results) if not isinstance(result, Exception)]
        if not indices:
            return indices, None
        try:
            return indices, encode([results[index] for index in indices])
        except ValueError:
            if errors == "raise":
                raise
        # Only the tokenizer detects some errors (half a surrogate pair), and it refuses the whole window.
        results[:] = [read_row(result, checked, errors) for result in results]
        return self._encoded(results, "raise")

    def outputs(
        self, rows: EncodedExamples, batch_size: int = 32, progress: Callable[[int, int], Any] | None = None
    ) -> list[dict[str, np.ndarray]]:
        """The outputs of the head for `Rows`: list with a dict of arrays for each row; `progress` as in `run_rows`."""
        return run_rows(rows, batch_size, self._forward, progress)

    def head_outputs(self, sequence: np.ndarray) -> dict[str, np.ndarray]:
        """The outputs of the head for hidden states [B, T, H] of texts without padding, see `Task.head_outputs`."""
        pooled = None
        if self.task_type.needs_pooler(self.settings):
            weight, bias = (parameter(self._encoder, f"bert.pooler.dense.{part}").float32() for part in _PARTS)
            pooled = np.tanh(sequence[:, 0] @ weight.T + bias)
        return self.raw_outputs(sequence, pooled, np.ones(sequence.shape[:2], np.int32))

    def class_scores(self, sequence: np.ndarray) -> np.ndarray:
        """The output of a classifier from hidden states [B, T, H] of texts without padding, as float32 [B, K].

        It holds the log-probabilities of the classes, with several labels the log-probability of each label by itself,
        or the value of a regression.
        """
        logits = self.head_outputs(sequence)["logits"]
        if self.settings.regression:
            return logits
        if self.settings.multi_label:
            return -np.logaddexp(0, -logits)
        return logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)

    @property
    def _encoder(self):
        return self.weights.stored if isinstance(self.weights, StoredNetwork) else self.weights.bert

    def raw_outputs(
        self, sequence: np.ndarray, pooled: np.ndarray | None, padding_mask: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The outputs of the head for the encoder's outputs [B, T, H] and [B, H]; see `Task.head_outputs`."""
        if isinstance(self.weights, StoredNetwork):
            return self.weights.outputs(sequence, pooled, padding_mask)
        outputs = self.weights.head(sequence, pooled, padding_mask, training=False)
        return {name: np.asarray(value) for name, value in outputs.items()}

    def _forward(self, batch):
        shape = batch["token_ids"].shape
        if not self.task_type.several:
            return self._pass(batch)
        arrays = {name: batch[name].reshape(-1, shape[-1]) for name in INPUTS}
        # A text is padding only, if an example has fewer choices than others: its outputs stay 0.
        real = np.flatnonzero(arrays["padding_mask"].any(axis=-1))
        size = max(_TEXTS, len(batch["token_ids"]))  # an example may have thousands of choices
        results: dict[str, np.ndarray] = {}
        for indices in np.array_split(real, math.ceil(len(real) / size)):
            for name, value in self._pass({name: array[indices] for name, array in arrays.items()}).items():
                results.setdefault(name, np.zeros((len(arrays["token_ids"]), *value.shape[1:]), value.dtype))
                results[name][indices] = value
        return {name: value.reshape(*shape[:-1], *value.shape[1:]) for name, value in results.items()}

    def _pass(self, batch):
        """The outputs of the head for a batch of texts [B, T]."""
        arrays = {name: batch[name] for name in INPUTS}
        pooled = self.task_type.needs_pooler(self.settings)
        output_names = ("sequence_output", *(("pooled_output",) if pooled else ()))
        encoded = self._runtime.run(arrays, output_names)
        return self.raw_outputs(encoded["sequence_output"], encoded.get("pooled_output"), arrays["padding_mask"])


def _report_inputs(progress, done, count, tokens, all_tokens):
    """Report the inputs that are done: the first `done` and, of the next `count`, the share of their tokens."""
    progress(done + round(count * tokens / all_tokens))


def run_rows(
    rows: EncodedExamples,
    batch_size: int,
    forward: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]],
    progress: Callable[[int, int], Any] | None = None,
) -> list[dict[str, np.ndarray]]:
    """Runs all rows in batches of similar lengths.

    Args:
        rows: `Rows`.
        batch_size: int. The largest B.
        forward: callable dict of arrays [B, ...] -> dict of arrays [B, ...].
        progress: callable (tokens done, tokens in all) that is called after each batch; False stops, see `report`.

    Returns: list with a dict of arrays for each row, in the order of the rows.
    """
    outputs: list[dict[str, np.ndarray]] = [{}] * len(rows)
    order = np.argsort(rows.lengths, kind="stable")
    tokens = np.cumsum(rows.lengths[order])
    for first in range(0, len(order), batch_size):
        indices = order[first : first + batch_size]
        results = forward(rows.batch(indices))
        for position, index in enumerate(indices):
            outputs[index] = {name: value[position] for name, value in results.items()}
        report(progress, int(tokens[min(first + batch_size, len(order)) - 1]), int(tokens[-1]))
    return outputs


def load_task(folder: str | Path, stored: StoredModel, tokenizer: BaseTokenizer, runtime: Runtime) -> TaskModel | None:
    """Loads the task of a model folder.

    Args:
        folder: str or Path. The model folder.
        stored: the `StoredModel` of the folder.
        tokenizer: the `Tokenizer` of the folder.
        runtime: the `Runtime` of the model.

    Returns: `TaskModel`, or None if the folder has no task.

    Raises: CheckpointError or TaskError if the settings or the head cannot be read.
    """
    settings = read_settings(folder)
    if settings is None:
        return None
    task = task_type(settings.task)
    tensors = read_head(folder, task, settings, stored.bert_config)
    return TaskModel(settings, StoredNetwork(stored, tensors, task, settings), tokenizer, runtime)


@dataclass(frozen=True)
class LoadedModel:
    """The content of a model folder, ready to run.

    Attributes:
        path: Path. The folder.
        config: `BertConfig`.
        tokenizer: `Tokenizer`.
        weights: `StoredModel`.
        runtime: the `Runtime` of the model.
        task: `TaskModel`, or None for a model that was not fine-tuned.
    """

    path: Path
    config: Any
    tokenizer: Any
    weights: StoredModel
    runtime: Any
    task: Optional[TaskModel]

    @property
    def model(self) -> BertModel:
        """The Keras model; built when it is first read."""
        return self.weights.model


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
    config, tokenizer, stored = read_stored(path)
    runtime = Runtime(stored, precision=precision)
    return LoadedModel(path, config, tokenizer, stored, runtime, load_task(path, stored, tokenizer, runtime))
