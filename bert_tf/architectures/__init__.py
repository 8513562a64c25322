"""BERT and the models built from the same layers, each a record of what it changes. Imports no TensorFlow.

Every file of this folder that holds an `Architecture` is a member; no list names it.
"""

from importlib import import_module
from pkgutil import iter_modules

from bert_tf.architectures.architecture import Architecture
from bert_tf.architectures.bert import BERT


def _records() -> dict[str, Architecture]:
    """All records of this folder by model_type, in their order."""
    records: dict[str, Architecture] = {}
    for file in iter_modules(__path__):
        for value in vars(import_module(f"{__name__}.{file.name}")).values():
            if isinstance(value, Architecture) and records.setdefault(value.model_type, value) is not value:
                raise ValueError(f"Two architectures have the model_type {value.model_type!r}: {file.name}.py has one.")
    return dict(sorted(records.items(), key=lambda item: (item[1].order, item[1].title)))


#: model_type -> `Architecture`
ARCHITECTURES = _records()

__all__ = ["ARCHITECTURES", "BERT", "Architecture"]
