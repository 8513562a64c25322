"""Functions that run one forward pass of BERT in this project and in other libraries, for inference.py; each runs in a
separate process.

A peer is a function (config, folder, maps, batch) -> dict mode -> callable. The callable runs the batch
(int64 ids, segments, mask, each [B, T]) and leaves last hidden state, pooled output and, with `maps`, every
attention map [B, N, T, T] as NumPy arrays. `folder` stores exported graphs between runs, because exporting is
slow.
"""

import functools
import os
import warnings

import numpy as np

warnings.filterwarnings("ignore")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
NAMES = ("token_ids", "segment_ids", "padding_mask")


def _outputs(config):
    """The outputs to compute: the pooled output where the architecture has a pooler."""
    return ("sequence_output", "pooled_output")[: 1 + ("pooler" in config.architecture.heads)]


@functools.cache
def _our_runtime(config, precision, engine):
    from bert_tf.runtime import Runtime

    return Runtime(_our_model(config), precision, engine)


@functools.cache
def _our_model(config):
    from bert_tf.models import build_encoder

    return build_encoder(config, _outputs(config))


def ours(config, folder, maps, batch, precision="float32", engine="auto"):
    runtime = _our_runtime(config, precision, engine)
    inputs = dict(zip(NAMES, (array.astype(np.int32) for array in batch)))
    outputs = _outputs(config) + ("attentions",) * maps
    return {runtime.engine: lambda: runtime.run(inputs, outputs)}


@functools.cache
def _our_stored_model(config):
    """The same weights as an eight-bit file has them."""
    from bert_tf.checkpoints.saving import tensor_values
    from bert_tf.checkpoints.stored_model import StoredModel
    from bert_tf.checkpoints.stored_tensor import Weight

    model = _our_model(config)
    weights = {name: Weight(value) for name, value in tensor_values(model)}
    rows = {name: weight.quantized() if weight.values.ndim == 2 else weight for name, weight in weights.items()}
    return StoredModel(config, model.bert_heads, rows)


@functools.cache
def _our_stored_runtime(config):
    from bert_tf.runtime import Runtime

    return Runtime(_our_stored_model(config))


def ours_stored(config, folder, maps, batch):
    runtime = _our_stored_runtime(config)
    inputs = dict(zip(NAMES, (array.astype(np.int32) for array in batch)))
    outputs = _outputs(config) + ("attentions",) * maps
    return {runtime.engine: lambda: runtime.run(inputs, outputs)}


def ours_tensorflow(*arguments):
    return ours(*arguments, engine="tensorflow")


def ours_bfloat16(*arguments):
    return ours(*arguments, precision="bfloat16")


def ours_int8(*arguments):
    return ours(*arguments, precision="int8")


@functools.cache
def _kerashub_model(config, maps):
    import keras_hub

    if maps:
        return _with_maps(_kerashub_model(config, False))
    return keras_hub.models.BertBackbone(
        vocabulary_size=config.vocab_size,
        num_layers=config.num_hidden_layers,
        num_heads=config.num_attention_heads,
        hidden_dim=config.hidden_size,
        intermediate_dim=config.intermediate_size,
        max_sequence_length=512,
    )


def _with_maps(backbone):
    """Calls the same layers one after the other and also returns their attention scores."""
    import keras

    embedded = keras.Model(backbone.input, backbone.get_layer("embeddings_dropout").output)

    def forward(values, training=False):
        x, scores = embedded(values, training=training), []
        for index in range(backbone.num_layers):
            layer = backbone.get_layer(f"transformer_layer_{index}")
            x, scores_of_layer = layer(x, padding_mask=values["padding_mask"], return_attention_scores=True)
            scores.append(scores_of_layer)
        return {
            "sequence_output": x,
            "pooled_output": backbone.get_layer("pooled_dense")(x[:, 0]),
            "scores": scores,
        }

    return forward


def kerashub(config, folder, maps, batch):
    import tensorflow as tf

    model = _kerashub_model(config, maps)
    inputs = {name: tf.constant(array.astype(np.int32)) for name, array in zip(NAMES, batch)}
    arrays = {name: value.numpy() for name, value in inputs.items()}

    def forward(values):
        return model(values, training=False)

    graph, jit = tf.function(forward), tf.function(forward, jit_compile=True)

    def taken(function):
        return lambda: tf.nest.map_structure(lambda value: value.numpy(), function(inputs))

    modes = {"graph": taken(graph), "jit": taken(jit), "eager": taken(forward)}
    if not maps:
        modes["predict"] = lambda: model.predict(arrays, batch_size=len(batch[0]), verbose=0)
    return modes


@functools.cache
def _torch_model(config, attention):
    import torch
    from transformers import AutoConfig, AutoModel

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    settings = AutoConfig.for_model(**config.to_hf_dict(), attn_implementation=attention)
    return AutoModel.from_config(settings).eval()


def torch_transformers(config, folder, maps, batch):
    import torch

    inputs = _their_inputs(config, map(torch.from_numpy, batch))

    def call(attention):
        model = _torch_model(config, attention)

        def run():
            with torch.inference_mode():
                outputs = model(**inputs, output_attentions=maps)
            return [one.numpy() for one in _their_outputs(outputs)]

        return run

    return {"eager": call("eager")} if maps else {"sdpa": call("sdpa"), "eager": call("eager")}


def _their_inputs(config, batch):
    """The batch by Transformers' names, without segments where the architecture has none."""
    inputs = dict(zip(("input_ids", "token_type_ids", "attention_mask"), batch))
    if not config.type_vocab_size:
        del inputs["token_type_ids"]
    return inputs


def _their_outputs(outputs):
    pooled = getattr(outputs, "pooler_output", None)
    return (outputs.last_hidden_state, *(() if pooled is None else (pooled,)), *(outputs.attentions or ()))


def _exportable(config, maps):
    """Transformers' model with positional inputs and a tuple as output, and an example input for tracing."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = _torch_model(config, "eager" if maps else "sdpa")

        def forward(self, token_ids, segment_ids, padding_mask):
            inputs = _their_inputs(config, (token_ids, segment_ids, padding_mask))
            return _their_outputs(self.model(**inputs, output_attentions=maps))

    return Wrapped().eval(), tuple(torch.ones(2, 16, dtype=torch.int64) for _ in NAMES)


def _exported(config, folder, maps, suffix):
    """The path of an exported graph; its name has all of the config that the benchmarks vary."""
    name = f"{config.model_type}-{config.size_name}-{config.vocab_size}-{'maps' if maps else 'plain'}"
    return folder / f"{name}.{suffix}"


def onnx_file(config, folder, maps):
    import torch

    path = _exported(config, folder, maps, "onnx")
    if not path.exists():
        model, example = _exportable(config, maps)
        torch.onnx.export(
            model,
            example,
            str(path),
            input_names=list(NAMES),
            dynamo=False,
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in NAMES},
        )
        _torch_model.cache_clear()
    return path


@functools.cache
def onnx_session(path):
    """The session of a file, in as many threads as the other peers have."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _onnx_call(path, batch):
    session, inputs = onnx_session(path), dict(zip(NAMES, batch))
    inputs = {one.name: inputs[one.name] for one in session.get_inputs()}
    return lambda: session.run(None, inputs)


def onnx_runtime(config, folder, maps, batch):
    path = onnx_file(config, folder, maps)
    modes = {"plain": _onnx_call(path, batch)}
    if not maps and config.model_type == "bert":
        modes["fused"] = _onnx_call(_fused_file(config, path), batch)
    return modes


def _fused_file(config, path):
    from onnxruntime.transformers.optimizer import optimize_model

    fused = path.with_suffix(".fused.onnx")
    if not fused.exists():
        optimize_model(
            str(path), model_type="bert", num_heads=config.num_attention_heads, hidden_size=config.hidden_size
        ).save_model_to_file(str(fused))
    return fused


def quantized_file(path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantized = path.with_suffix(".int8.onnx")
    if not quantized.exists():
        quantize_dynamic(str(path), str(quantized), weight_type=QuantType.QInt8)
    return quantized


def onnx_runtime_int8(config, folder, maps, batch):
    return {"dynamic": _onnx_call(quantized_file(onnx_file(config, folder, maps)), batch)}


@functools.cache
def _openvino_model(config, folder, maps, hint):
    import openvino as ov

    path = _exported(config, folder, maps, "xml")
    if not path.exists():
        model, example = _exportable(config, maps)
        ov.save_model(ov.convert_model(model, example_input=example), path, compress_to_fp16=False)
        _torch_model.cache_clear()
    return ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": hint, "PERFORMANCE_HINT": "LATENCY"})


def openvino(config, folder, maps, batch, hint="f32"):
    request = _openvino_model(config, folder, maps, hint).create_infer_request()
    # Its default: inputs shared, outputs copied, so that they outlive the next call.
    return {"latency": lambda: list(request.infer(list(batch), share_inputs=True).values())}


def openvino_bf16(*arguments):
    return openvino(*arguments, hint="bf16")


PEERS = {
    "ours": ours,
    "ours, TensorFlow engine": ours_tensorflow,
    "KerasHub": kerashub,
    "torch": torch_transformers,
    "ONNX Runtime": onnx_runtime,
    "OpenVINO": openvino,
}
#: The peers that run other architectures than BERT.
ANY_ARCHITECTURE = ("ours", "ours, TensorFlow engine", "torch", "ONNX Runtime", "OpenVINO")
REDUCED = {
    "ours, float32": ours,
    "ours, float32 of 8-bit rows": ours_stored,
    "ours, bfloat16": ours_bfloat16,
    "ours, int8": ours_int8,
    "ONNX Runtime int8": onnx_runtime_int8,
    "OpenVINO bf16": openvino_bf16,
}
