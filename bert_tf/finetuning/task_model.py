"""A fine-tuned model to be asked: the encoder by the runtime, the head on top, predictions a family decodes.

B batch, T tokens, C choices.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from bert_tf import checkpoints
from bert_tf.finetuning.task_folder import load_head
from bert_tf.finetuning.task_network import network_over
from bert_tf.finetuning.task_settings import read_settings
from bert_tf.finetuning.tasks.registry import family
from bert_tf.read_ahead import read_ahead_windows


class TaskModel:
    """The task of a loaded `Bert`; safe from several threads.

    Attributes:
        settings: `TaskSettings`. family: its `Family`. network: the `TaskNetwork` over the model's layers.
    """

    def __init__(self, settings, network, tokenizer, runtime):
        self.settings, self.network, self.family = settings, network, family(settings.task)
        self._tokenizer, self._runtime = tokenizer, runtime

    def predict(self, inputs, batch_size=32):
        """Predictions for a list of inputs.

        Args:
            inputs: what the family reads: for "classify" texts or (text_a, text_b) pairs; or JSON-able
                records, or its own examples. batch_size: rows in one pass.

        Returns: list of dicts, in the order of the inputs; see the family's `decode`.

        Raises: DataError, TextError: an input that cannot be read.
        """
        return list(self.predict_many(inputs, batch_size))

    def predict_many(self, inputs, batch_size=32, errors="raise"):
        """The same for any number of inputs in constant memory: a generator of predictions, in order.

        Args:
            inputs: as in `predict`; one that is an exception (a bad line of a file) is handed on in its
            place. batch_size: rows in one pass; with 1 each is answered before the next one is read.
            errors: "raise", or "return" for the exception of an input that cannot be read in place of its answer.
        """
        for window in read_ahead_windows(inputs, batch_size):
            answers = self._examples(window, errors)
            places = [place for place, one in enumerate(answers) if not isinstance(one, Exception)]
            examples = [answers[place] for place in places]
            if examples:
                rows = self.family.encode(examples, self._tokenizer, self.settings)
                outputs = self.outputs(rows, batch_size)
                found = self.family.decode(outputs, rows, examples, self.settings)
                for place, prediction in zip(places, found, strict=True):
                    answers[place] = prediction
            yield from answers

    def _examples(self, inputs, errors):
        """The family's examples, each known to be encodable, or the exception of what is none."""
        found = []
        for one in inputs:
            try:
                if isinstance(one, Exception):
                    raise one
                example = self.family.example(one, self.settings)
                if errors == "return":
                    # Half a surrogate pair, say, is told only by the tokenizer, which refuses the whole
                    # window.
                    self.family.encode([example], self._tokenizer, self.settings)
                found.append(example)
            except ValueError as error:
                if errors == "raise":
                    raise
                found.append(error)
        return found

    def outputs(self, rows, batch_size=32):
        """The head's outputs: list of a dict of arrays a row of `Rows`."""
        return run_rows(rows, batch_size, self._forward)

    def _forward(self, batch):
        shape = batch["token_ids"].shape
        arrays = {name: batch[name].reshape(-1, shape[-1]) for name in ("token_ids", "segment_ids", "padding_mask")}
        # A row of padding alone (a batch is never filled up here, but a choice may be missing) has no token.
        pooled = self.family.needs_pooler(self.settings)
        wanted = ("sequence_output", *(("pooled_output",) if pooled else ()))
        found = self._runtime.run(arrays, wanted)
        results = self.network.head(
            found["sequence_output"], found.get("pooled_output"), arrays["padding_mask"], training=False
        )
        return {name: np.asarray(value).reshape(*shape[:-1], *value.shape[1:]) for name, value in results.items()}


def run_rows(rows, batch_size, forward):
    """Runs all rows in batches of like length.

    Args:
        rows: `Rows`. batch_size: B at most. forward: dict of arrays [B, ...] -> dict of arrays [B, ...].

    Returns: list of a dict of arrays a row, in the rows' order.
    """
    outputs = [None] * len(rows)
    order = np.argsort(rows.lengths, kind="stable")
    for first in range(0, len(order), batch_size):
        indices = order[first : first + batch_size]
        results = forward(rows.batch(indices))
        for place, index in enumerate(indices):
            outputs[index] = {name: value[place] for name, value in results.items()}
    return outputs


def load_task(folder, model, tokenizer, runtime):
    """The `TaskModel` of a folder, over its loaded `BertModel`; None for a folder without a task.

    Raises: CheckpointError, TaskError.
    """
    settings = read_settings(folder)
    if settings is None:
        return None
    network = network_over(model, family(settings.task), settings)
    load_head(Path(folder), network)
    return TaskModel(settings, network, tokenizer, runtime)


@dataclass(frozen=True)
class LoadedModel:
    """All that a model's folder holds, ready to run.

    Attributes:
        path: of the folder. config: `BertConfig`. tokenizer: `Tokenizer`. model: `BertModel`. runtime: `Runtime`
            over it. task: `TaskModel`, or None for a model that was not fine-tuned.
    """

    path: Path
    config: Any
    tokenizer: Any
    model: Any
    runtime: Any
    task: Optional[TaskModel]


def load_model(name_or_folder, precision="float32"):
    """Reads a model with its task, if it has one.

    Args: name_or_folder: of a model. precision: as `Runtime` takes it.

    Returns: `LoadedModel`.

    Raises: OSError or ValueError with one sentence: no such model, a damaged file, an unknown precision.
    """
    from bert_tf.runtime import Runtime

    path = checkpoints.find(name_or_folder)
    config, tokenizer, model = checkpoints.read(path)
    runtime = Runtime(model, precision=precision)
    return LoadedModel(path, config, tokenizer, model, runtime, load_task(path, model, tokenizer, runtime))
