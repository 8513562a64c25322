"""Writes a model for another program, runs what was written, and compares it with the model.

Formats: "onnx" (ONNX Runtime), "openvino", "saved-model" (TensorFlow) and "keras". The folder has the files of the
tokenizer and config.json beside the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.errors import CheckpointError
from bert_tf.files import atomic_folder, refuse_full_folder, system_errors, write_json
from bert_tf.model_outputs import INPUTS
from bert_tf.tokenizers import pad_batch

if TYPE_CHECKING:
    from bert_tf.inference.bert import Bert

#: The formats, and the dtypes in which each is written.
FORMATS = {
    "onnx": ("float32", "int8"),
    "openvino": ("float32", "int8"),
    "saved-model": ("float32", "int8"),
    "keras": ("float32", "int8"),
}
_TEXTS = (("The cat sat on the mat.", None), ("A dog ran.", None))
# Differences of float32: the order of sums. With matrices in eight bits the outputs keep their direction.
_TOLERANCE, _LEAST_COSINE = 1e-3, 0.99


@dataclass(frozen=True)
class Check:
    """The comparison of a written model with the model.

    Attributes:
        difference: float. The largest absolute difference of an output; not finite if an output is not.
        cosine: float. The smallest cosine of an output, over all its values.
        passes: bool. Whether the outputs are equal: up to 1e-3 in float32; in eight bits a cosine of 0.99 or more.
    """

    difference: float
    cosine: float
    passes: bool


def write(bert: Bert, target: Path, to: str, dtype: str = "float32") -> Path:
    """Write a model.

    Args:
        bert: `Bert`. The model, with its task if it has one.
        target: Path. The folder to write; it must be missing or empty.
        to: str. A key of `FORMATS`.
        dtype: str. "float32"; "int8" stores the matrices in eight bits with a scale for each row.

    Returns:
        Path of the folder.

    Raises:
        CheckpointError: the format or dtype is unknown, the folder is not empty, or a package is missing.
        OSError: a file cannot be written.
    """
    if to not in FORMATS:
        raise CheckpointError(f"There is no format {to!r}; choose from {', '.join(FORMATS)}.")
    if dtype not in FORMATS[to]:
        raise CheckpointError(f"The format {to!r} is written as {' or '.join(FORMATS[to])}, not {dtype}.")
    refuse_full_folder(target)
    with atomic_folder(target) as unfinished:
        _WRITERS[to](bert, unfinished, dtype)
        bert.tokenizer.save(unfinished, model_max_length=bert.max_length)
        write_json(unfinished / "config.json", _settings(bert))
    return target


def _settings(bert):
    task = {"task": bert.task.settings.to_dict()} if bert.task is not None else {}
    return {**bert.config.to_hf_dict(), **task}


def _write_openvino(bert, folder, dtype):
    import openvino as ov

    from bert_tf.inference.exported.openvino_model import export_graph

    graph = export_graph(bert, dtype == "int8")
    if dtype == "float32":
        # OpenVINO would round the inputs of products with matrices that the model stores in eight bits.
        graph.set_rt_info("0", ["runtime_options", "DYNAMIC_QUANTIZATION_GROUP_SIZE"])
    with system_errors(folder / "model.xml", RuntimeError):
        ov.save_model(graph, folder / "model.xml", compress_to_fp16=False)


def _write_onnx(bert, folder, dtype):
    from bert_tf.inference.exported.onnx_model import to_onnx
    from bert_tf.inference.exported.openvino_model import export_graph

    model = to_onnx(export_graph(bert, dtype == "int8"))
    import onnx  # here, so that the error message of `to_onnx` comes first

    # A file of this format holds at most 2 GB: larger weights are stored beside it.
    large = sum(len(tensor.raw_data) for tensor in model.graph.initializer) > 1_900_000_000
    with system_errors(folder / "model.onnx", OSError):
        onnx.save(model, folder / "model.onnx", save_as_external_data=large, location="model.onnx.data")


def _keras_model(bert, dtype):
    """A Keras model with the inputs `INPUTS` and a dict of tensors as outputs; in eight bits a copy of it."""
    from bert_tf.models import view
    from bert_tf.runtime.eight_bit_model import eight_bit_copy

    model = bert.task.network if bert.task is not None else view(bert.model, _output_names(bert.heads), name="bert")
    return eight_bit_copy(model) if dtype == "int8" else model


def _write_saved_model(bert, folder, dtype):
    import keras
    import tensorflow as tf

    model = _keras_model(bert, dtype)
    shapes = {name: keras.InputSpec(shape=tensor.shape, dtype=tensor.dtype) for name, tensor in model.input.items()}
    # Not `model.export`: it also tracks the model, and so writes every variable twice (Keras 3.15).
    archive = keras.export.ExportArchive()
    archive.add_endpoint("serve", lambda inputs: model(inputs, training=False), [shapes])
    with system_errors(folder, tf.errors.OpError):
        archive.write_out(str(folder), verbose=False)


def _write_keras(bert, folder, dtype):
    import keras

    model = _keras_model(bert, dtype)
    if bert.task is not None and dtype == "float32":
        # The network of a task is a plain functional model over registered layers in the file.
        model = keras.Model(inputs=model.input, outputs=model.output, name="bert")
    with system_errors(folder / "model.keras", OSError):
        model.save(folder / "model.keras")


_WRITERS: dict[str, Callable[[Any, Path, str], None]] = {
    "openvino": _write_openvino,
    "onnx": _write_onnx,
    "saved-model": _write_saved_model,
    "keras": _write_keras,
}


def check(bert: Bert, folder: Path, to: str, dtype: str = "float32") -> Check:
    """Run a written model on two texts and compare its outputs with the model's.

    Args:
        bert, folder, to, dtype: As for `write`.

    Returns:
        `Check`.

    Raises:
        CheckpointError: the package that runs the format is not installed.
    """
    batch = _batch(bert)
    try:
        outputs = _RUNNERS[to](folder, batch)
    except ImportError as error:
        raise CheckpointError(f"The check of {to!r} needs a package that cannot be imported ({error}).") from error
    outputs = {name.removesuffix("_all"): value for name, value in outputs.items()}
    return _compared(_outputs(bert, batch, bert.heads), outputs, batch, dtype)


def compare_loaded(bert: Bert, other: Bert, dtype: str = "float32") -> Check:
    """Compare a model with one that was written from it and read again, by the heads that both have."""
    batch = _batch(bert)
    heads = bert.heads & other.heads
    return _compared(_outputs(bert, batch, heads), _outputs(other, batch, heads), batch, dtype)


def _batch(bert):
    texts = bert.tokenizer.encode_batch(_TEXTS, max_length=min(bert.max_length, 32))
    batch = pad_batch(texts, pad_id=bert.tokenizer.pad_id)
    return {name: batch[name].astype(np.int32) for name in INPUTS}


def _compared(expected, actual, batch, dtype):
    differences, cosines = [0.0], [1.0]
    for name in expected:
        ours, theirs = _real(np.asarray(expected[name]), np.asarray(actual[name]), batch)
        ours, theirs = (value.astype(np.float64).reshape(-1) for value in (ours, theirs))
        differences.append(float(np.abs(ours - theirs).max()))
        length = np.linalg.norm(ours) * np.linalg.norm(theirs)
        cosines.append(float(ours @ theirs / length) if length else float(np.array_equal(ours, theirs)))
    # NumPy's maximum of a value that is no number is no number, so it passes no check.
    difference, cosine = float(np.max(differences)), float(np.min(cosines))
    return Check(difference, cosine, cosine >= _LEAST_COSINE if dtype != "float32" else difference <= _TOLERANCE)


def _real(ours, theirs, batch):
    """The values of tokens; those of padding depend on how attention to it is left out."""
    theirs = theirs.reshape(ours.shape)
    if ours.shape[:2] == batch["padding_mask"].shape:
        real = batch["padding_mask"] > 0
        return ours[real], theirs[real]
    return ours, theirs


def _outputs(bert, batch, heads):
    """The outputs of our own runtime: those of the head of a task, else of the encoder and of some of its heads."""
    if bert.task is not None:
        task = bert.task
        pooled = ("pooled_output",) if task.task_type.needs_pooler(task.settings) else ()
        encoded = bert.runtime.run(batch, ("sequence_output", *pooled))
        outputs = task.raw_outputs(encoded["sequence_output"], encoded.get("pooled_output"), batch["padding_mask"])
        return {name: value for name, value in outputs.items() if name != "transitions"}
    names = _output_names(heads)
    outputs = bert.runtime.run(batch, names)
    return {name.removesuffix("_all"): outputs[name] for name in names}


def _output_names(heads):
    named = {"pooler": "pooled_output", "mlm": "mlm_logits_all"}
    return ("sequence_output", *(named.get(head, f"{head}_logits") for head in sorted(heads)))


def _run_openvino(folder, batch):
    import openvino as ov

    compiled = ov.Core().compile_model(folder / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(batch)
    return {output.get_any_name(): results[output] for output in compiled.outputs}


def _run_onnx(folder, batch):
    try:
        import onnxruntime
    except ImportError as error:
        raise CheckpointError("Running ONNX needs the package onnxruntime: `pip install onnxruntime`.") from error
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    known = {value.name for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, {name: value for name, value in batch.items() if name in known})))


def _run_saved_model(folder, batch):
    import tensorflow as tf

    loaded = tf.saved_model.load(str(folder))
    return _flat(loaded.serve(_shaped(batch, loaded.signatures["serve"].structured_input_signature[1])))


def _run_served(folder, batch):
    """The SavedModel of a task for TF Serving, `finetuning.saved_model`."""
    import tensorflow as tf

    try:
        import tensorflow_text  # noqa: F401  the operations of its signature `text`
    except ImportError:
        pass
    function = tf.saved_model.load(str(folder)).signatures["serving_default"]
    inputs = _shaped(batch, function.structured_input_signature[1])
    return _flat(function(**{name: tf.constant(value) for name, value in inputs.items()}))


def _run_keras(folder, batch):
    import keras

    model = keras.models.load_model(folder / "model.keras")
    shapes = {name: tensor for name, tensor in model.input.items()}
    return _flat(model(_shaped(batch, shapes)))


def _shaped(batch: Mapping[str, np.ndarray], signature: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The batch as rows of one text where the model reads several, [B, T] -> [B, 1, T]."""
    rank = max(len(spec.shape) for spec in signature.values())
    return {name: value if rank == 2 else value[:, None] for name, value in batch.items()}


def _flat(outputs):
    return {name: np.asarray(value) for name, value in outputs.items()}


_RUNNERS: dict[str, Callable[[Path, Mapping[str, np.ndarray]], dict[str, Any]]] = {
    "openvino": _run_openvino,
    "onnx": _run_onnx,
    "saved-model": _run_saved_model,
    "served": _run_served,
    "keras": _run_keras,
}
