"""The forward pass of BERT and the related architectures as an OpenVINO graph over the weights of a model.

B batch, T tokens, P predicted positions, H hidden size, E embedding size, N heads, D head size, V vocabulary,
L layers.

OpenVINO packs the weights again for each graph that it compiles, so a few graphs serve the many sets of outputs. The
graph "plain", for large batches, returns the first `rows[output]` rows of a hidden state: B if it is requested and 0 if
not. An output without rows costs almost nothing. In small batches such a slice costs more than it saves.

Matrices in eight bits stay in eight bits: the graph has them as int8 constants, multiplied by the scales of their rows,
and OpenVINO computes the products from them. In float32 these products equal those of the float32 matrices.
"""

import functools
import importlib
import math
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

import numpy as np
import openvino as ov
import openvino.opset13 as op

from bert_tf.architectures import BERT
from bert_tf.checkpoints.stored_tensor import Weight
from bert_tf.config import BertConfig
from bert_tf.layers.hook_points import MASKED_SCORE
from bert_tf.model_outputs import INPUTS, OUTPUTS
from bert_tf.parameters import OUTPUT_TABLE, parameter_spec
from bert_tf.runtime.graphs.eight_bits import SplitInput, outlier_channels
from bert_tf.runtime.weights import GraphWeight, RunnableModel, graph_weights

ACTIVATIONS = {
    "gelu": lambda x: op.gelu(x, "erf"),
    "gelu_new": lambda x: op.gelu(x, "tanh"),
    "relu": op.relu,
    "gelu_10": lambda x: op.clamp(op.gelu(x, "erf"), -10.0, 10.0),
    "quick_gelu": lambda x: op.multiply(x, op.sigmoid(op.multiply(x, real(1.702)))),
    "silu": lambda x: op.multiply(x, op.sigmoid(x)),
    "tanh": op.tanh,
}
#: A value of the graph.
Node: TypeAlias = Any
#: OpenVINO rounds the input of a product to eight bits only if its eight-bit matrix has no zero point. This one changes
#: a weight by a millionth of the step between two of its values.
_ZERO_POINT = 1e-6

_GROUP = 128  # ids among which `_top` looks first for the highest logit of all

VECTORS = ("queries", "keys", "values")
#: The dense layers that compute them.
PROJECTIONS = ("query", "key", "value")
#: The outputs of which "plain" can return no rows: a request without positions has no logits of the MLM head, and that
#: graph has no maps.
FLAGS = tuple(output for output in OUTPUTS if output not in ("mlm_logits", "mlm_logits_all", "attentions"))
KINDS = ("plain", "blocks", "maps", "vectors")


def build(
    model: RunnableModel, kind: str, eight_bits: bool = False, rounds_inputs: bool = True, mlm_apart: bool = False
) -> tuple[ov.Model, dict[str, list[int]]]:
    """Build a graph.

    The inputs of the graph are token_ids, segment_ids and padding_mask, int32 [B, T]; mask_positions, int32 [B, P],
    with P = 0 for no logits; and rows, int64, one number for each of `FLAGS`.

    Args:
        model: `BertModel` or `StoredModel`. The graph shares the memory of its weights.
        kind: str. One of `KINDS`: "plain" never stores a complete attention map, "blocks" is "plain" for long texts
            of a model with local attention, whose local layers compute the scores near the diagonal alone, "maps"
            always returns all maps, "vectors" also returns the queries, keys and values.
        eight_bits: bool. Whether to quantize the matrices of the encoder and of the MLM head that the model has in
            float.
        rounds_inputs: bool. Whether the graph is compiled so that the inputs of products with these matrices are
            rounded to eight bits too.
        mlm_apart: bool. Whether the graph ends before the MLM head: instead of "mlm_logits" it returns "mlm_states",
            the inputs [B, P, H] of `build_mlm_head`.

    Returns:
        The `ov.Model`, and a dict of output name -> indices of its results.
    """
    return graph_class(model)(model, kind, eight_bits, rounds_inputs, mlm_apart).finish()


def build_mlm_head(model: RunnableModel) -> ov.Model:
    """Build the graph of the MLM head alone: hidden states [P, H] -> logits [P, V]."""
    states = op.parameter([-1, model.bert_config.hidden_size], np.float32)
    return ov.Model([graph_class(model)(model, "maps", False).mlm_logits(states)], [states], "mlm_head")


def build_mlm_reading(model: RunnableModel, eight_bits: bool = False, rounds_inputs: bool = True) -> ov.Model:
    """Build the graph of `Runtime.read_mlm`: the MLM head and a summary of its distributions.

    The inputs are hidden states float32 [P, S, H], answers int32 [P] and the number K, int32; the results are those of
    `Runtime.read_mlm`. The other arguments are those of `build`.
    """
    graph = graph_class(model)(model, "maps", eight_bits, rounds_inputs)
    states = op.parameter([-1, -1, model.bert_config.hidden_size], np.float32)
    answers, top_k = op.parameter([-1], np.int32), op.parameter([], np.int32)
    shape = op.slice(op.shape_of(states, "i64"), ints(0), ints(2), ints(1))  # P, S
    logits = graph.mlm_logits(op.reshape(states, ints(-1, model.bert_config.hidden_size), False))  # [P S, V]
    best, ids = _top(logits, top_k, model.bert_config.vocab_size)
    # Subtract the highest logit: nothing overflows, and the entropy is not a difference of large numbers.
    highest = op.slice(best, ints(0), ints(1), ints(1), ints(1))
    logits, best = op.subtract(logits, highest), op.subtract(best, highest)
    powers = op.exp(logits)
    total = op.reduce_sum(powers, ints(1), True)
    entropies = op.subtract(op.log(total), op.divide(op.reduce_sum(op.multiply(powers, logits), ints(1), True), total))
    last = op.gather(op.reshape(op.gather(ids, integer(0), integer(1)), shape, False), integer(-1), integer(1))  # [P]
    chosen = op.unsqueeze(op.select(op.less(answers, integer(0, np.int32)), last, answers), ints(1))
    chosen = op.reshape(op.broadcast(chosen, shape), ints(-1, 1), False)  # [P S, 1]
    answer_logits = op.gather_elements(logits, chosen, 1)
    # A sum of float32 ones is exact up to 2^24.
    above = op.reduce_sum(op.convert(op.greater(logits, answer_logits), np.float32), ints(1), True)
    ranks = op.add(op.convert(above, np.int32), integer(1, np.int32))
    lists = op.concat([shape, op.unsqueeze(op.convert(top_k, np.int64), ints(0))], 0)  # P, S, K
    results = [op.reshape(value, lists, False) for value in (ids, op.divide(op.exp(best), total))]
    results += [
        op.reshape(value, shape, False) for value in (entropies, ranks, op.divide(op.exp(answer_logits), total))
    ]
    return ov.Model(results, [states, answers, top_k], "mlm_reading")


def _top(logits: Node, top_k: Node, vocabulary: int) -> tuple[Node, Node]:
    """The `top_k` highest of each row of logits [R, V], in descending order, and their ids; equal ones by their ids.

    OpenVINO's `TopK` takes V K steps a row. Here it looks among the highest logits of groups of ids, and then only in
    the K groups with the highest ones, in which all that it looks for stands.
    """
    groups = -(-vocabulary // _GROUP)
    padded = op.pad(logits, ints(0, 0), ints(0, groups * _GROUP - vocabulary), "constant", real(-np.inf))
    grouped = op.reshape(padded, ints(0, groups, _GROUP), True)
    count = op.minimum(top_k, integer(groups, np.int32))
    # Sorted by their numbers, so that equal logits stay in the order of their ids.
    chosen = op.topk(op.reduce_max(grouped, ints(2), False), count, -1, "max", "index", "i32", True).output(1)  # [R, K]
    ids = op.add(
        op.multiply(op.unsqueeze(chosen, ints(2)), integer(_GROUP, np.int32)),
        op.constant(np.arange(_GROUP, dtype=np.int32)),
    )
    candidates, ids = (
        op.reshape(value, ints(0, -1), True) for value in (op.gather(grouped, chosen, integer(1), 1), ids)
    )
    top = op.topk(candidates, top_k, -1, "max", "value", "i32", True)
    return top.output(0), op.gather_elements(ids, top.output(1), 1)


#: The Keras layer of an architecture -> the dotted path of the class that builds its graph.
GRAPHS = {
    BERT.layer_class: f"{__name__}.Graph",
    "bert_tf.layers.causal.CausalEncoderLayer": "bert_tf.runtime.graphs.causal.CausalGraph",
    "bert_tf.layers.causal.BiLMEncoderLayer": "bert_tf.runtime.graphs.causal.BiLMGraph",
    "bert_tf.layers.modern.ModernEncoderLayer": "bert_tf.runtime.graphs.modern.ModernGraph",
    "bert_tf.layers.deberta.encoder.DisentangledEncoderLayer": "bert_tf.runtime.graphs.deberta.DisentangledGraph",
}


def graph_class(model: RunnableModel) -> type["Graph"]:
    """The class that builds the graph of a model."""
    module, name = GRAPHS[model.bert_config.architecture.layer_class].rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


class Graph:
    """The graph of BERT. A subclass replaces `layer` for another encoder layer.

    Attributes:
        weights_are_inputs: bool. Whether the weights are inputs of the graph, not constants, so that nothing can be
            computed from them beforehand.
    """

    weights_are_inputs = False

    def __init__(
        self,
        model: RunnableModel,
        kind: str,
        eight_bits: bool,
        rounds_inputs: bool = True,
        mlm_apart: bool = False,
    ) -> None:
        self.names = {parameter.name for parameter in parameter_spec(model.bert_config, model.bert_heads)}
        self.runnable, self.config, self.heads = model, model.bert_config, model.bert_heads
        self.eight_bits, self.rounds_inputs = eight_bits, eight_bits and rounds_inputs
        self.mlm_apart = mlm_apart
        self.in_blocks = kind == "blocks"
        self.kind = "plain" if self.in_blocks else kind
        self.weights = graph_weights(model)
        self.constants: dict[Any, Any] = {}
        self.shared: dict[Any, Any] = {}
        self.flags: dict[str, Node] = {}
        self.rows = op.parameter([len(FLAGS)], np.int64, name="rows")
        self.results: dict[str, list[Any]] = {}

    def finish(self) -> tuple[ov.Model, dict[str, list[int]]]:
        inputs = [op.parameter([-1, -1], np.int32, name=name) for name in (*INPUTS, "mask_positions")]
        x = self.encode(*inputs[:3])
        self.add_heads(x, inputs[3])
        nodes: list[Any] = []
        result_indices = {}
        for name, results in self.results.items():
            result_indices[name] = list(range(len(nodes), len(nodes) + len(results)))
            nodes += results
        return ov.Model(nodes, [*inputs, self.rows], "bert"), result_indices

    def encode(self, token_ids: Node, segment_ids: Node, padding_mask: Node) -> Node:
        x = self.embeddings(token_ids, segment_ids)
        self.add_result("embeddings", x)
        self.add_result("hidden_states", x)
        is_padding = op.subtract(real(1), op.convert(padding_mask, np.float32))
        bias = op.unsqueeze(op.multiply(is_padding, real(MASKED_SCORE)), ints(1, 2))  # [B, 1, 1, T]
        for index in range(self.config.num_hidden_layers):
            x = self.layer(index, x, bias)
            self.add_result("hidden_states", x)
        self.add_result("sequence_output", x)
        return x

    def embeddings(self, token_ids: Node, segment_ids: Node) -> Node:
        """Hidden state 0 [B, T, H] of ids [B, T]; the sum before its normalization is a result."""
        total = self.sum_embeddings("bert.embeddings", token_ids, segment_ids)
        self.add_result("embeddings_sum", total)
        x = self.norm("bert.embeddings.LayerNorm", total)
        return self.dense("bert.embeddings_project", x) if self.config.has_embedding_projection else x

    def sum_embeddings(self, name: str, token_ids: Node, segment_ids: Node) -> Node:
        """[B, T] ids -> [B, T, E]"""
        total = self.rows_of(f"{name}.word_embeddings.weight", token_ids)
        if self.config.type_vocab_size:
            # With one segment the ids are ignored.
            rows = segment_ids if self.config.type_vocab_size > 1 else integer(0)
            total = op.add(total, self.rows_of(f"{name}.token_type_embeddings.weight", rows))
        if not self.config.architecture.has_position_table:
            return total
        first = ints(self.config.position_offset)
        length = op.gather(op.shape_of(token_ids, "i64"), ints(1), ints(0))
        table = self.vector(f"{name}.position_embeddings.weight")
        return op.add(total, op.slice(table, first, op.add(first, length), ints(1), ints(0)))

    @staticmethod
    def layer_structure(config: BertConfig, index: int) -> Hashable:
        """What layer number `index`, from 0, computes apart from its weights; equal where only these differ."""
        return None

    def layer(self, index: int, x: Node, bias: Node) -> Node:
        """The output [B, T, H] of layer number `index`, from 0, for its input and the additive mask [B, 1, 1, T]."""
        return self.encoder_layer(f"bert.encoder.layer.{self.config.layer_groups[index]}", x, bias)

    def encoder_layer(self, name: str, x: Node, bias: Node) -> Node:
        """The output of the layer whose weights have names that begin with `name`; see `layer`."""
        x = self.at("resid_pre", x)
        attended = self.dense(f"{name}.attention.output.dense", self.attention(f"{name}.attention.self", x, bias))
        x = self.norm(f"{name}.attention.output.LayerNorm", op.add(x, self.at("attn_out", attended)))
        x = self.at("resid_mid", x)
        units = self.at("mlp_pre", self.dense(f"{name}.intermediate.dense", self.without_outliers(x)))
        units = self.at("mlp_post", ACTIVATIONS[self.config.hidden_act](units))
        # No later layer evens out the error of the last one.
        is_last = name.startswith(f"bert.encoder.layer.{self.config.layer_groups[-1]}")
        added = self.at("mlp_out", self.dense(f"{name}.output.dense", units, rounds_input=not is_last))
        return self.at("resid_post", self.norm(f"{name}.output.LayerNorm", op.add(x, added)))

    def at(self, point: str, value: Node) -> Node:
        """The value at one of `HOOK_POINTS`; a subclass may read or replace it."""
        return value

    def attention(self, name: str, x: Node, bias: Node) -> Node:
        """[B, T, H] -> [B, T, H]"""
        return self.attend(*self.vectors(name, x), bias)

    def vectors(self, name: str, x: Node) -> tuple[Node, Node, Node]:
        """The queries, keys and values [B, N, T, D] for x [B, T, H]."""
        x = self.without_outliers(x)
        return self.at_vectors(*(self.split_heads(self.dense(f"{name}.{part}", x)) for part in PROJECTIONS))

    def at_vectors(self, query: Node, key: Node, value: Node) -> tuple[Node, Node, Node]:
        """The queries, keys and values at their hook points; in the graph "vectors" they are results."""
        vectors = self.at("q", query), self.at("k", key), self.at("v", value)
        if self.kind == "vectors":
            for output, vector in zip(VECTORS, vectors):
                self.add_result(output, vector)
        return vectors

    def once(self, key: Any, make: Callable[..., Any], *arguments: Any) -> Node:
        """A node that several layers use, made for the first of them."""
        if key not in self.shared:
            self.shared[key] = make(*arguments)
        return self.shared[key]

    @property
    def score_scale(self) -> float:
        """The factor of the products that an attention score sums."""
        return 1 / math.sqrt(self.config.architecture.score_terms * self.config.head_size)

    def attend(self, query: Node, key: Node, value: Node, bias: Node) -> Node:
        """Queries, keys and values [B, N, T, D] and an additive mask -> [B, T, H]"""
        if self.kind == "plain":
            factor = real(self.score_scale)
            context = op.scaled_dot_product_attention(query, key, value, bias, factor)  # [B, N, T, D]
        else:
            products = op.multiply(op.matmul(query, key, False, True), real(self.score_scale))
            maps = self.at("pattern", op.softmax(self.at("scores", op.add(products, bias)), -1))
            self.results.setdefault("attentions", []).append(maps)  # [B, N, T, T]
            context = self.at("z", op.matmul(maps, value, False, False))
        return self.join_heads(context)

    def join_heads(self, context: Node) -> Node:
        """[B, N, T, D] -> [B, T, H]; in parallel stacks, the heads and the width of one."""
        width = self.config.hidden_size // self.config.architecture.stacks
        return op.reshape(op.transpose(context, ints(0, 2, 1, 3)), ints(0, 0, width), True)

    def add_heads(self, x: Node, positions: Node | None) -> None:
        """Add the outputs of the heads for the last hidden state; without positions, the MLM head's at all tokens."""
        if "pooler" in self.heads:
            rows = self.flag("pooled_output")
            for head in self.heads & {"nsp", "sop"}:
                rows = op.maximum(rows, self.flag(f"{head}_logits"))
            first = op.squeeze(
                op.slice(op.slice(x, ints(0), rows, ints(1), ints(0)), ints(0), ints(1), ints(1), ints(1)),
                ints(1),
            )
            pooled = op.tanh(self.dense("bert.pooler.dense", first))
            self.results["pooled_output"] = [pooled]
        if "nsp" in self.heads:
            self.results["nsp_logits"] = [self.dense("cls.seq_relationship", pooled)]
        if "sop" in self.heads:
            self.results["sop_logits"] = [self.dense("sop_classifier.classifier", pooled)]
        if "replaced" in self.heads:
            name = "discriminator_predictions"
            states = op.slice(x, ints(0), self.flag("replaced_logits"), ints(1), ints(0))
            if self.config.architecture.replaced_head_adds_first:
                first = op.slice(states, ints(0), ints(1), ints(1), ints(1))
                states = self.norm(f"{name}.LayerNorm", op.add(states, first))
            states = ACTIVATIONS[self.config.hidden_act](self.dense(f"{name}.dense", states))
            scores = self.dense(f"{name}.dense_prediction", states)  # [B, T, 1]
            self.results["replaced_logits"] = [op.squeeze(scores, ints(2))]
        if "mlm" in self.heads:
            states = self.read(x, positions)
            if self.mlm_apart:
                self.results["mlm_states"] = [states]
            else:
                self.results["mlm_logits"] = [self.mlm_logits(states)]

    def read(self, x: Node, positions: Node | None) -> Node:
        """The hidden states [B, P, H] from which the MLM head predicts the tokens at `positions` [B, P].

        Without positions, the states [B, T, H] for all tokens.
        """
        return x if positions is None else op.gather(x, positions, integer(1), batch_dims=1)

    def mlm_logits(self, states: Node) -> Node:
        """[..., H] -> [..., V]"""
        name = "cls.predictions"
        states = ACTIVATIONS[self.config.mlm_act](self.dense(f"{name}.transform.dense", states))
        states = self.norm(f"{name}.transform.LayerNorm", states)
        table = OUTPUT_TABLE if not self.config.tie_word_embeddings else "bert.embeddings.word_embeddings.weight"
        return op.add(self.product(states, table), self.vector(f"{name}.bias"))

    def add_result(self, output: str, node: Node) -> None:
        """Append `node` to the results of this output."""
        if self.kind == "plain":
            node = op.slice(node, ints(0), self.flag(output), ints(1), ints(0))
        self.results.setdefault(output, []).append(node)

    def flag(self, output: str) -> Node:
        # One node for all results of an output: each node costs a few microseconds per run.
        if output not in self.flags:
            self.flags[output] = op.gather(self.rows, ints(FLAGS.index(output)), ints(0))
        return self.flags[output]

    def split_heads(self, x: Node) -> Node:
        """[B, T, H] -> [B, N, T, D]; in parallel stacks, the width and the heads of one."""
        heads = self.config.num_attention_heads // self.config.architecture.stacks
        split = op.reshape(x, ints(0, 0, heads, self.config.head_size), True)
        return op.transpose(split, ints(0, 2, 1, 3))

    @functools.cached_property
    def outliers(self) -> np.ndarray:
        """The channels of the hidden states that products in eight bits compute apart."""
        return outlier_channels(self.names, lambda name: self.weights(name).weight.float32())

    def without_outliers(self, x: Node) -> Node | SplitInput:
        """A hidden state [..., H] as the input of products; in eight bits the outliers are apart."""
        if not self.rounds_inputs or not len(self.outliers):
            return x
        is_rest = np.ones(self.config.hidden_size // self.config.architecture.stacks, np.float32)
        is_rest[self.outliers] = 0
        return SplitInput(op.multiply(x, constant(is_rest)), op.gather(x, ints(*self.outliers), integer(-1)))

    def dense(self, name: str, x: Node | SplitInput, rounds_input: bool = True) -> Node:
        matrix = f"{name}.weight"
        if not isinstance(x, SplitInput):
            return self.with_bias(name, self.product(x, matrix, rounds_input))
        apart = op.matmul(x.outliers, self.outlier_columns(matrix), False, True)
        return self.with_bias(name, op.add(self.product(x.rest, matrix, rounds_input), apart))

    def norm(self, name: str, x: Node) -> Node:
        normal = op.mvn(x, ints(-1), True, self.config.layer_norm_eps, "inside_sqrt")
        return self.with_bias(name, op.multiply(normal, self.vector(f"{name}.weight")))

    def with_bias(self, name: str, x: Node) -> Node:
        """Add the bias of a layer that has one."""
        return op.add(x, self.vector(f"{name}.bias")) if f"{name}.bias" in self.names else x

    def product(self, x: Node, name: str, rounds_input: bool = True, part: tuple[int, int] = (0, 1)) -> Node:
        """[..., H_in] times a matrix -> [..., H_out].

        Args:
            x: node.
            name: str. The name of the matrix.
            rounds_input: bool. Whether int8 rounds `x` to eight bits.
            part: tuple of int. The number of a part of the outputs, and into how many equal parts they are cut.
        """
        # One node for all products with the matrix, so that OpenVINO packs it once.
        key = (name, part)
        if key not in self.constants:
            stored = self.weights(name)
            weight, is_out_in = _part(stored, *part), stored.is_out_in
            if self.eight_bits and weight.scales is None:
                weight = Weight(weight.values if is_out_in else weight.values.T).quantized()
                is_out_in = True
            if weight.scales is None:
                node = constant(weight.float32())
            else:
                integers = op.convert(constant(weight.values), np.float32)
                if self.rounds_inputs and not rounds_input:
                    integers = op.subtract(
                        integers, constant(np.full((len(weight.values), 1), _ZERO_POINT, np.float32))
                    )
                node = op.multiply(integers, constant(weight.scales[:, None]))
            self.constants[key] = node, is_out_in
        node, is_out_in = self.constants[key]
        return op.matmul(x, node, False, is_out_in)

    def outlier_columns(self, name: str) -> Node:
        """The columns [H_out, C] of a matrix by which the outliers are multiplied, in float."""
        key = (name, "outliers")
        if key not in self.constants:
            stored = self.weights(name)
            values = stored.weight.values
            columns = values[:, self.outliers] if stored.is_out_in else values[self.outliers].T
            self.constants[key] = constant(Weight(columns, stored.weight.scales).float32())
        return self.constants[key]

    def rows_of(self, name: str, ids: Node) -> Node:
        """Rows of a table: ids [...] -> [..., E]"""
        weight = self.weights(name).weight
        rows = op.gather(constant(weight.values), ids, integer(0))
        if weight.scales is None:
            return rows if weight.values.dtype == np.float32 else op.convert(rows, np.float32)
        return op.multiply(op.convert(rows, np.float32), op.gather(constant(weight.scales[:, None]), ids, integer(0)))

    def vector(self, name: str) -> Node:
        """A small weight as a float32 constant."""
        if name not in self.constants:
            self.constants[name] = constant(self.weights(name).weight.float32())
        return self.constants[name]


def _part(stored: GraphWeight, index: int, count: int) -> Weight:
    """Part number `index` of a matrix whose outputs are cut into `count` equal parts."""
    weight = stored.weight
    if count == 1:
        return weight
    size = weight.values.shape[0 if stored.is_out_in else 1] // count
    outputs = slice(index * size, (index + 1) * size)
    if not stored.is_out_in:
        return Weight(weight.values[:, outputs])
    return Weight(weight.values[outputs], None if weight.scales is None else weight.scales[outputs])


class _Writable:
    """The memory of a read-only array, marked as writable: OpenVINO shares only such arrays, although it only reads."""

    def __init__(self, array):
        self.array = array
        address, _ = array.__array_interface__["data"]
        self.__array_interface__ = {**array.__array_interface__, "data": (address, False)}


def constant(array: Any) -> Node:
    """A constant over the memory of an array."""
    if array.dtype.name == "bfloat16":  # a constant over a tensor does not keep the array alive: its model does
        return op.constant(tensor(array), shared_memory=True)
    return op.constant(writable(np.ascontiguousarray(array)), shared_memory=True)


def tensor(array: Any) -> ov.Tensor:
    """A tensor over the memory of an array; one of bfloat16, which NumPy lacks, is named by its type."""
    if array.dtype.name == "bfloat16":
        bits = writable(np.ascontiguousarray(array).view(np.uint16))
        return ov.Tensor(bits, ov.Shape(array.shape), ov.Type.bf16)
    return ov.Tensor(writable(np.ascontiguousarray(array)), shared_memory=True)


def writable(array: np.ndarray) -> np.ndarray:
    """The array, marked as writable so that OpenVINO shares its memory; it only reads it."""
    return array if array.flags.writeable else np.asarray(_Writable(array))


def ints(*values: int) -> Node:
    return op.constant(np.array(values, np.int64))


def integer(value: Any, dtype: Any = np.int64) -> Node:
    return op.constant(np.array(value, dtype))


def real(value: Any) -> Node:
    return op.constant(np.array(value, np.float32))
