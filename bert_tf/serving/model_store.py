"""The models of the service: loaded when first asked for, a bounded number at a time, each with its batches."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bert_tf.errors import InputError
from bert_tf.serving.batcher import Batcher
from bert_tf.serving.limits import ServiceLimits
from bert_tf.serving.problems import RequestProblem

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert


@dataclass(frozen=True)
class ServedModel:
    """A loaded model.

    Attributes:
        bert: `Bert`. predictions, answers: `Batcher`. Of masked words and pairs, and of the head of its task.
    """

    bert: Bert
    predictions: Batcher
    answers: Batcher

    def close(self) -> None:
        """End the threads of the model."""
        self.predictions.close()
        self.answers.close()


class ModelStore:
    """Finds models by their names, never by a path, and loads them.

    Args:
        default: str. The model of a request that names none.
        limits: `ServiceLimits`.
        precision: str. The precision of the computation, as in `Runtime`.
    """

    def __init__(self, default: str, limits: ServiceLimits, precision: str = "float32") -> None:
        self.default, self._limits, self._precision = default, limits, precision
        self._loaded: OrderedDict[str, ServedModel] = OrderedDict()
        self._lock = threading.Lock()

    def name_of(self, name: Any) -> str:
        """The name of an offered model; the default for None.

        Raises: RequestProblem if there is no such model, or it is not offered.
        """
        from bert_tf.checkpoints import find
        from bert_tf.errors import UnknownModel

        if name is None:
            name = self.default
        if not isinstance(name, str):
            raise RequestProblem(400, f"The name of a model is text, not {str(name)[:80]}.")
        try:
            found = find(name, allow_paths=False).name
        except UnknownModel as error:
            raise RequestProblem(404, str(error)) from None
        if self._limits.models and found not in self._limits.models:
            raise RequestProblem(404, f"{found} is not offered here; offered are {', '.join(self._limits.models)}.")
        return found

    def get(self, name: Any = None) -> ServedModel:
        """The loaded model of a name; loads it if it is not in memory.

        Raises: RequestProblem as `name_of`.
        """
        from bert_tf.inference.bert import load

        found = self.name_of(name)
        with self._lock:  # two requests for one model must not load it twice
            if found not in self._loaded:
                while len(self._loaded) >= self._limits.max_loaded:
                    self._loaded.popitem(last=False)[1].close()
                self._loaded[found] = self._served(load(found, precision=self._precision))
            self._loaded.move_to_end(found)
            return self._loaded[found]

    def loaded(self) -> list[str]:
        """The names of the models in memory."""
        return list(self._loaded)

    def _served(self, bert):
        size = self._limits.batch_size

        def predict(key, rows):
            top_k, targets = key
            return bert.predict_many(rows, size, top_k, errors="return", targets=targets)

        def answer(_, records):
            if bert.task is None:
                raise InputError(f"{bert.name} is not fine-tuned for a task; ask /predict instead.")
            return bert.task.predict_many(records, size, errors="return")

        return ServedModel(bert, Batcher(predict, size), Batcher(answer, size))
