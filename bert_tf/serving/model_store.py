"""The models of the service: loaded when first asked for, within a bound of bytes, each with its batches."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bert_tf.errors import InputError
from bert_tf.inference.loaded_models import LoadedModels, expected_bytes
from bert_tf.resources.memory_budget import MemoryBudget
from bert_tf.serving.batcher import Batcher
from bert_tf.serving.limits import ServiceLimits
from bert_tf.serving.problems import RequestProblem

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert


@dataclass(frozen=True)
class ServedModel:
    """A loaded model. Its threads end when neither the store nor a request refers to it any more.

    Attributes:
        bert: `Bert`. predictions, answers: `Batcher`. Of masked words and pairs, and of the head of its task.
    """

    bert: Bert
    predictions: Batcher
    answers: Batcher

    def __post_init__(self) -> None:
        for batcher in (self.predictions, self.answers):
            weakref.finalize(self, batcher.close)


class ModelStore:
    """Finds models by their names, never by a path, and loads them.

    Args:
        default: str. The model of a request that names none.
        limits: `ServiceLimits`.
        precision: str. The precision of the computation, as in `Runtime`.
    """

    def __init__(self, default: str, limits: ServiceLimits, precision: str = "float32") -> None:
        self.default, self._limits, self._precision = default, limits, precision
        self._budget = MemoryBudget(limits.max_megabytes * 1_000_000)
        # The model that was used last stays with all its graphs, also if it alone exceeds the bound.
        self._loaded = LoadedModels(self._budget, self._read, _expected, keep=1, bert_of=lambda served: served.bert)

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
            known_name = find(name, allow_paths=False).name
        except UnknownModel as error:  # which speaks of the command line
            sentence = f"There is no model called {name[:200]!r} here; GET /models lists them."
            raise RequestProblem(404, sentence) from error
        if self._limits.models and known_name not in self._limits.models:
            raise RequestProblem(
                404, f"{known_name} is not offered here; offered are {', '.join(self._limits.models)}."
            )
        return known_name

    def get(self, name: Any = None) -> ServedModel:
        """The loaded model of a name; loads it if it is not in memory.

        Raises: RequestProblem as `name_of`.
        """
        served = self._loaded.load(self.name_of(name), self._precision)
        self._budget.make_room()  # a model grows with the graphs that its engine compiles
        return served

    def get_loaded(self, name: Any = None) -> ServedModel | None:
        """The model of a name if it is in memory, else None; it does not wait while another model is loaded.

        Raises: RequestProblem as `name_of`.
        """
        served = self._loaded.get((self.name_of(name), self._precision))
        if served is not None:
            self._budget.make_room()
        return served

    def loaded(self) -> list[str]:
        """The names of the models in memory."""
        return self._loaded.names()

    def _read(self, name, precision):
        from bert_tf.inference.bert import load

        return self._served(load(name, precision=precision))

    def _served(self, bert):
        from bert_tf.inference.batch_predict import predict_together

        size = self._limits.batch_size

        def predict(key, rows):
            top_k, targets = key
            return predict_together(bert, rows, size, top_k, targets)

        def answer(_, records):
            if bert.task is None:
                raise InputError(f"{bert.name} is not fine-tuned for a task; ask /predict instead.")
            return enumerate(bert.task.predict_many(records, size, errors="return"))

        return ServedModel(bert, Batcher(predict, size), Batcher(answer, size))


def _expected(name):
    from bert_tf.checkpoints import find
    from bert_tf.checkpoints.library import read_config

    return expected_bytes(read_config(find(name, allow_paths=False)))
