"""BERT in Keras and TensorFlow: models, predictions, training, and analyses of a forward pass.

Importing this package is fast: TensorFlow is imported only when a model is built or loaded. For that, the names below
are imported at their first use.

    >>> import bert_tf
    >>> bert = bert_tf.load()                       # the embedded Base model
    >>> trace = bert.trace("Shanghai is a city in [MASK].")
    >>> bert.fill_mask(trace)[0].predictions[0].token
"""

from contextlib import suppress
from importlib import import_module
from typing import Any

from bert_tf.startup import after_import_of_keras, lean_openvino

__version__ = "0.2.0"

# Public name -> module that defines it. The module is imported at the first use of the name.
_HOMES = {
    "BertConfig": "bert_tf.config",
    "ConfigError": "bert_tf.config",
    "build_encoder": "bert_tf.models",
    "build_pretraining_model": "bert_tf.models",
    "named_variables": "bert_tf.models",
    "view": "bert_tf.models",
    "parameter_counts": "bert_tf.parameters",
    "parameter_spec": "bert_tf.parameters",
    "explorer_folder": "bert_tf.files",
    "sample_file": "bert_tf.files",
    "Tokenizer": "bert_tf.tokenizers",
    "download": "bert_tf.checkpoints",
    "find": "bert_tf.checkpoints",
    "list_models": "bert_tf.checkpoints",
    "read": "bert_tf.checkpoints",
    "save": "bert_tf.checkpoints",
    "Runtime": "bert_tf.runtime",
    "Bert": "bert_tf.inference.bert",
    "load": "bert_tf.inference.bert",
    "resize_vocabulary": "bert_tf.inference.bert",
    "Trace": "bert_tf.inference.trace",
    "compare": "bert_tf.explain",
    "fill_jointly": "bert_tf.inference.joint_filling",
    "fill_mask": "bert_tf.inference.predictions",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'bert_tf' has no attribute {name!r}")
    from bert_tf.explain.checked_calls import checked

    # The value is not stored in the globals of this module: that would hide a submodule of the same name, and the
    # lookup is fast.
    return checked(getattr(import_module(home), name), __name__)


def _register_classes() -> None:
    """Import the modules of the registered Keras classes, so that `keras.saving.load_model` finds them."""
    from bert_tf.architectures import ARCHITECTURES

    paths = {
        path for one in ARCHITECTURES.values() for path in (one.embeddings_class, one.layer_class, one.mlm_head_class)
    }
    modules = {path.rpartition(".")[0] for path in paths}
    models = {"bert_tf.models", "bert_tf.finetuning.task_network", "bert_tf.runtime.eight_bit_model"}
    for module in sorted(modules | models):
        with suppress(ImportError):  # one of them is importing Keras now, and registers its classes itself
            import_module(module)


after_import_of_keras(_register_classes)
lean_openvino()


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
