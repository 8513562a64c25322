"""A BERT's forward pass with hooks: functions that read or replace the values inside an encoder layer.

`run_with_cache` and `run_with_hooks` take texts, and functions at any hook point (`bert_tf.layers.hooks`). The other
methods take tensors; the analyses use these. Each kind of step is compiled once, for any batch size, length and layer:
the weights of a layer are arguments of the compiled function, which models of the same configuration share. A step
computes only the values that are asked for.

Dimension legend: B batch, T tokens, H hidden, E embedding (H in BERT), L layers, N heads, D head size, F intermediate,
V vocabulary, R rows, P places, S hidden states of a place, K answers.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from bert_tf.checkpoints.stored_model import engine_unused
from bert_tf.errors import InputError, check_scores, post_norm_needed
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.trace import HEAD_OUTPUTS, Trace
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.layers.hook_points import HOOK_POINTS, POINTS
from bert_tf.runtime.model_steps import ModelSteps

if TYPE_CHECKING:
    import keras

    from bert_tf.config import BertConfig
    from bert_tf.explain.attribution.target import Target
    from bert_tf.inference.bert import Bert

# Compiled steps of layers that models of the same configuration share while one of them is in memory.
_SHARED: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()

#: A function at a hook point: it takes an array and returns the array that replaces it, or None.
HookFunction = Callable[[np.ndarray], np.ndarray | None]


class HookedModel(ModelSteps):
    """The embeddings, each encoder layer with its hook points, and each head of a `Bert`, as separate functions.

    `Bert.hooked` makes one. Tensors are float32, and all inputs of a batch have the same length, without padding.
    Several threads may use one object at once.

    Args:
        bert: Bert. The model, whose weights are shared.

    Attributes:
        config: BertConfig. The configuration of the model.
        task: TaskModel or None. The task of a fine-tuned model.
        layers: dict. The Keras layers by name.
        hook_names: list of str. "layer_0.resid_pre" to "layer_{L-1}.resid_post".

    Example:
        >>> hooked = bert_tf.load().hooked()
        >>> trace, cache = hooked.run_with_cache("Shanghai is a city in [MASK].", names=["layer_3.resid_post"])
        >>> cache["layer_3.resid_post"].shape
    """

    def __init__(self, bert: Bert) -> None:
        self.config: BertConfig = bert.config
        self.task: Any = bert.task
        self.layers: dict[str, Any] = bert.model.bert_layers
        self.hook_names = [
            f"layer_{index}.{point.name}" for index in range(self.config.num_hidden_layers) for point in HOOK_POINTS
        ]
        # No reference to the Bert itself: the two would keep each other in memory.
        self._tokenizer, self._max_length = bert.tokenizer, bert.max_length
        self._name, self._heads = bert.name, bert.heads
        self._configuration = repr(bert.config)  # of the steps that models share
        self._functions: dict[Hashable, Callable] = {}
        self._lock = threading.Lock()

    def run_with_cache(
        self,
        text_a: str,
        text_b: str | None = None,
        mask: Any = (),
        names: str | Iterable[str] | None = None,
        hooks: Iterable[tuple[str, HookFunction]] = (),
        level: str = "token",
    ) -> tuple[Trace, dict[str, np.ndarray]]:
        """Run one input and keep the values inside its layers.

        Args:
            text_a, text_b, mask, level: as in `Bert.trace`.
            names: str or sequence of str. The hook names to keep; None for all.
            hooks: as in `run_with_hooks`. The cache holds the values after these functions.
        Returns:
            (`Trace`, dict from hook names such as "layer_3.resid_post" to float32 arrays). The arrays have a batch axis
            of 1 and the shapes of `HOOK_POINTS`: resid_post is [1, T, H].
        Raises:
            InputError: a hook name does not exist. Otherwise as `Bert.trace`.

        Example:
            >>> trace, cache = bert.hooked().run_with_cache("Shanghai is a city in [MASK].")
            >>> cache["layer_3.resid_post"].shape
        """
        names = [names] if isinstance(names, str) else names
        cache: dict[str, Any] = dict.fromkeys(self.hook_names if names is None else names)
        keep = [(name, lambda value, name=name: cache.__setitem__(name, value)) for name in cache]
        trace = self.run_with_hooks(text_a, text_b, mask, [*_pairs(hooks), *keep], level)
        return trace, cache

    def run_with_hooks(
        self,
        text_a: str,
        text_b: str | None = None,
        mask: Any = (),
        hooks: Iterable[tuple[str, HookFunction]] = (),
        level: str = "token",
    ) -> Trace:
        """Run one input with functions that read or replace the values inside its layers.

        Args:
            text_a, text_b, mask, level: as in `Bert.trace`.
            hooks: sequence of (hook name, function). A function takes a read-only float32 array with a batch axis of 1
                and the shape of `HOOK_POINTS`. It returns an array of the same shape, which replaces the value, or
                None, which leaves the value unchanged. Functions at one point are called one after the other.
        Returns:
            `Trace` of the model with these functions.
        Raises:
            InputError: a hook is no such pair, a hook name does not exist, or a function returns no numbers or another
                shape. Otherwise as `Bert.trace`. What a function itself raises is raised unchanged.

        Example:
            >>> def without_head_2(z):
            ...     z = z.copy()
            ...     z[:, 2] = 0
            ...     return z
            >>> trace = bert.hooked().run_with_hooks("It is a [MASK].", hooks=[("layer_0.z", without_head_2)])
        """
        began, hooks = time.perf_counter(), _pairs(hooks)
        for name, _ in hooks:
            if name not in self.hook_names:
                raise InputError(
                    f"There is no hook {name!r:.60}; hooks are named layer_N.POINT, with a layer from 0 to "
                    f"{self.config.num_hidden_layers - 1} and one of the points {', '.join(POINTS)}."
                )
        ready = prepare_input(self._tokenizer, self._max_length, text_a, text_b, mask, level)
        states, patterns = [self.embed(ready.token_ids[None], ready.segment_ids[None])], []
        for index in range(self.config.num_hidden_layers):
            layer_hooks = _by_point([hook for hook in hooks if hook[0].startswith(f"layer_{index}.")])
            try:
                x, values = self.layers[f"layer_{index}"](states[-1], _NO_MASK, outputs=("pattern",), hooks=layer_hooks)
            except _HookRaised as raised:
                raise raised.error from raised.error.__cause__
            states.append(x)
            patterns.append(values["pattern"])
        results = self._head_outputs(states[-1], ready.masks)
        results |= {"attentions": np.concatenate(patterns), "hidden_states": np.concatenate(states)}
        seconds = time.perf_counter() - began
        return Trace.from_results(ready, results, self._tokenizer, self._name, self._heads, seconds)

    def _head_outputs(self, x, masks):
        """The heads' outputs for a last hidden state [1, T, H], as `Trace.from_results` takes them (no batch axis)."""
        outputs, layers = {}, self.layers
        if "mlm" in self._heads:
            positions = np.array([masks], np.int32).reshape(1, len(masks))
            outputs["mlm_logits"] = layers["mlm"](x, layers["embeddings"].token_table, positions)
        if "pooler" in self._heads:
            outputs["pooled_output"] = layers["pooler"](x)
        for head in {"nsp", "sop"} & self._heads:
            outputs[f"{head}_logits"] = layers[head](outputs["pooled_output"])
        if "replaced" in self._heads:
            outputs["replaced_logits"] = layers["replaced"](x)
        return {name: outputs[name].numpy()[0] for _, name in HEAD_OUTPUTS if name in outputs}

    def check_post_norm(self, analysis: str, through_scores: bool = False) -> None:
        """Raise InputError unless the layers compute the steps of `EncoderLayer`, which some analyses go back through.

        Args:
            analysis: str. The analysis that the message names.
            through_scores: bool. Whether the analysis also follows the attention scores (`check_scores`).
        """
        for stack in self.layers["layer_0"].stacks():
            if type(stack).steps is not EncoderLayer.steps:
                raise post_norm_needed(analysis, self._name, type(stack).__name__)
        if through_scores:
            check_scores(self.config, self._name, analysis)

    def embed(self, token_ids: np.ndarray, segment_ids: np.ndarray) -> tf.Tensor:
        """Hidden state 0, float32 [B, T, H], for token and segment ids int32 [B, T]."""

        def step(token_ids, segment_ids):
            return self._embed(self._token_vectors(token_ids), segment_ids)

        function = self.compiled("embed", step, (_ids(), _ids()))
        return function(tf.constant(token_ids, tf.int32), tf.constant(segment_ids, tf.int32))

    def token_vectors(self, token_ids: np.ndarray) -> tf.Tensor:
        """Rows of the token embedding table, float32 [..., E], without segments, positions and normalisation."""
        return self._token_vectors(tf.constant(token_ids, tf.int32))

    def values(
        self,
        index: int,
        x: tf.Tensor,
        points: Iterable[str],
        bias: np.ndarray | None = None,
        replace: Mapping[str, tuple] | None = None,
    ) -> dict[str, tf.Tensor]:
        """The values inside layer `index`, computed from hidden state `index`, with some of them replaced.

        Args:
            index: int. The layer, from 0.
            x: tf.Tensor. Hidden state `index`, float32 [B, T, H].
            points: sequence of str. The `HOOK_POINTS` to return. What none of them needs is not computed.
            bias: np.ndarray. Added to the attention scores and broadcast to [B, N, T, T]; `MASKED_SCORE` blocks a link.
                None for no bias.
            replace: dict. From names of `HOOK_POINTS` to pairs (mask, values): a bool array that marks where the value
                is replaced, and the float32 array that replaces it. Both have as many axes as the value and broadcast
                to it. A mask of None replaces the value everywhere; what it was computed from is then not computed. Any
                batch axis may be 1.
        Returns:
            dict from the names to float32 tensors. They include the replacements.
        """
        replace = replace or {}
        pairs = {name: replace[name] for name in POINTS if name in replace}
        points, everywhere = tuple(points), tuple(name for name, (where, _) in pairs.items() if where is None)

        def step(part, x, bias, *others):
            arguments = iter(others)
            hooks = {
                name: _replacing(None if name in everywhere else next(arguments), next(arguments)) for name in pairs
            }
            return self._layer(part, tuple(arguments), x, bias, points, hooks)

        signature, others = [self._states(), _MAPS], []
        for name, pair in pairs.items():
            axes = (None,) * len(POINTS[name].shape)
            for dtype, part in zip((tf.bool, tf.float32), pair):
                if part is not None:
                    signature.append(tf.TensorSpec(axes, dtype))
                    others.append(tf.convert_to_tensor(part, dtype))
        function = self.of_layer(("layer", tuple(pairs), everywhere, points), step, tuple(signature), index)
        return function(x, _NO_MASK if bias is None else tf.constant(bias, tf.float32), *others)

    def unchanged(self, index: int, x: tf.Tensor) -> tf.Tensor:
        """The output of layer `index` for its input x [B, T, H] if its blocks add nothing and are not normalized."""
        return self.layers[f"layer_{index}"].finish(x)

    def read(self, x: tf.Tensor | np.ndarray) -> tf.Tensor | np.ndarray:
        """The vectors from which the MLM head predicts each place, from hidden states [B, T, H].

        That is the hidden state of the place itself or, in a causal model, of its neighbour.
        """
        return self.layers["mlm"].read(tf.convert_to_tensor(x)) if "mlm" in self.layers else x

    def mlm_log_probabilities(self, rows: tf.Tensor | np.ndarray) -> tf.Tensor:
        """The MLM head's log-probabilities, float32 [R, V], for any vectors [R, H] that `read` returns."""
        step = self.compiled("mlm", self._mlm, (_floats(None, self.config.hidden_size),))
        return step(tf.constant(rows, tf.float32) if isinstance(rows, np.ndarray) else rows)

    def nsp_log_probabilities(self, x: tf.Tensor) -> tf.Tensor:
        """Logarithms of P(IsNext) and P(NotNext), [B, 2], from a last hidden state [B, T, H]."""
        return self.compiled("nsp", lambda x: self._pair("nsp", x), (self._states(),))(x)

    def sop_log_probabilities(self, x: tf.Tensor) -> tf.Tensor:
        """Logarithms of P(in order) and P(swapped), [B, 2], from a last hidden state [B, T, H]."""
        return self.compiled("sop", lambda x: self._pair("sop", x), (self._states(),))(x)

    def replaced_log_probabilities(self, x: tf.Tensor) -> tf.Tensor:
        """Logarithms of P(original) and P(replaced) of each token, [B, T, 2], from a last hidden state [B, T, H]."""
        return self.compiled("replaced", self._replaced, (self._states(),))(x)

    def class_scores(self, x: tf.Tensor) -> tf.Tensor:
        """The output of a fine-tuned classifier, [B, K], from a last hidden state [B, T, H].

        It holds the log-probabilities of the classes, with several labels the log-probability of each label by itself,
        or the value of a regression.
        """
        return self.compiled("class", self._class, (self._states(),))(x)

    def gradient(
        self,
        vectors: tf.Tensor | np.ndarray,
        segment_ids: np.ndarray,
        target: Target,
        between: Callable[[], object] = lambda: None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """A target's log-probability and its gradient with respect to the token vectors.

        Args:
            vectors: np.ndarray. float32 [B, T, E], used in the place of `token_vectors`.
            segment_ids: np.ndarray. int32 [B, T].
            target: Target. The answer.
            between: callable(). Called after each layer, forwards and backwards: all layers of long texts take
                seconds, in which nobody else could use the model.
        Returns:
            (log-probabilities [B], gradients [B, T, E]), float32 arrays.
        """
        segment_ids = tf.constant(segment_ids, tf.int32)
        vectors = tf.constant(vectors, tf.float32)
        states = self._states_of_vectors(vectors, segment_ids, between)
        score, gradient = self._head_gradient("target", self._log_probability, states[-1], target)
        # Backwards one layer at a time. Each layer runs again, so no value inside a layer stays in memory.
        for index in reversed(range(self.config.num_hidden_layers)):
            gradient = self._back_through(index, states[index], gradient)
            between()
        back = self.compiled("sum back", self._sum_back, (*self._vectors(), self._states()))
        return score.numpy(), back(vectors, segment_ids, gradient).numpy()

    def score_of_vectors(
        self,
        vectors: tf.Tensor | np.ndarray,
        segment_ids: np.ndarray,
        target: Target,
        between: Callable[[], object] = lambda: None,
    ) -> np.ndarray:
        """A target's log-probability [B] as `gradient` returns it, without the gradient; the arguments are the same."""
        vectors, segment_ids = tf.constant(vectors, tf.float32), tf.constant(segment_ids, tf.int32)
        return self.score(self._states_of_vectors(vectors, segment_ids, between)[-1], target)

    def _states_of_vectors(self, vectors, segment_ids, between):
        """All hidden states for token vectors; `between` is called after each layer."""
        return self.states_from(self.compiled("sum", self._embed, self._vectors())(vectors, segment_ids), between)

    def _head_gradient(self, name, measure, x, target):
        """A measure of a target [B] and its gradient [B, T, H] with respect to the last hidden state.

        Args:
            name: str. The name of the measure, for `compiled`.
            measure: callable (head, hidden state, position, id of the answer) -> [B].
            x: [B, T, H]. The last hidden state.
            target: Target. The answer.
        """
        head = target.head

        def step(x, position, wanted):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(x)
                score = measure(head, x, position, wanted)
            return score, tf.convert_to_tensor(tape.gradient(score, x))

        function = self.compiled((name, head), step, (self._states(), _ids(0), _ids(0)))
        return function(x, tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32))

    def odds_gradient(self, x: tf.Tensor | np.ndarray, target: Target) -> tuple[np.ndarray, np.ndarray]:
        """A target's log-odds and their gradient at the last hidden state.

        The standard deviation of a layer normalisation within the head is held constant.

        Args:
            x: tf.Tensor. The last hidden state [B, T, H].
            target: Target. The answer.
        Returns:
            (log-odds [B], gradients [B, T, H]), float32 arrays. The log-odds are the log-probability of the target
            minus that of all other answers together; for a regression, its value.
        """
        odds, gradient = self._head_gradient("odds", partial(self._odds, norm=frozen_norm), x, target)
        return odds.numpy(), gradient.numpy()

    def odds_gradients(self, states: Sequence[tf.Tensor], target: Target) -> Iterator[tuple[int, np.ndarray]]:
        """Gradients of a target's log-odds at all hidden states; nothing is held constant.

        Args:
            states: list of tf.Tensor. L + 1 hidden states [B, T, H], as `states` returns them.
            target: Target. The answer.
        Returns:
            generator of (number of the state, gradients float32 [B, T, H]), from the last state to the first.
        """
        _, gradient = self._head_gradient("odds of all states", self._odds, states[-1], target)
        yield len(states) - 1, gradient.numpy()
        for index in reversed(range(len(states) - 1)):
            gradient = self._back_through(index, states[index], gradient)
            yield index, gradient.numpy()

    def _scores(self, head, x, position, norm=None):
        """A head's scores at a position, [B, K]; `norm` replaces the MLM head's normalisation, as in `_mlm`."""
        return {
            "mlm": lambda: self._mlm(tf.gather(self.read(x), position, axis=1), norm),
            "nsp": lambda: self._pair("nsp", x),
            "sop": lambda: self._pair("sop", x),
            "replaced": lambda: tf.gather(self._replaced(x), position, axis=1),
            "task": lambda: self._class(x),
        }[head]()

    def _log_probability(self, head, x, position, wanted):
        """Log-probability [B] of one of a head's K answers at a position, or a regression's value."""
        return tf.gather(self._scores(head, x, position), wanted, axis=1)

    def _odds(self, head, x, position, wanted, norm=None):
        """Log-odds [B] of one of a head's K answers at a position, or a regression's value; `norm` as in `_scores`."""
        if head == "task" and (self.task.settings.regression or self.task.settings.multi_label):
            # The logit is the log-odds of its sigmoid. It stays exact where the sigmoid is rounded to 1.
            return tf.gather(self._class_logits(x), wanted, axis=1)
        return log_odds(self._scores(head, x, position, norm), wanted)

    def _back_through(self, index, x, gradient):
        """The gradient [B, T, H] at the input x of layer `index`, from the gradient at its output."""
        return self.of_layer("back", self._back, (self._states(), self._states()), index)(x, gradient)

    def _back(self, part, x, gradient, *weights):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = self._layer(part, weights, x, _NO_MASK)["resid_post"]
        return tape.gradient(y, x, output_gradients=gradient)

    def _sum_back(self, vectors, segment_ids, gradient):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(vectors)
            y = self._embed(vectors, segment_ids)
        return tape.gradient(y, vectors, output_gradients=gradient)

    def _layer(self, part, weights, x, bias, points=("resid_post",), hooks=None):
        """Values inside an encoder layer: the structure of the Keras layer `part` with the weights `weights`."""
        (_, values), _ = part.stateless_call(*call_weights(part, weights), x, bias, outputs=points, hooks=hooks)
        return {name: tf.cast(value, tf.float32) for name, value in values.items()}

    def of_layer(self, name: Hashable, step: Callable, signature: tuple, index: int) -> Callable:
        """A compiled step (see `compiled`) that gets the weights of layer `index` as its last arguments, frozen or not.

        The first argument of the step is a Keras layer of the same structure; `call_weights` sorts the weights for it.
        """
        part = self.layers[f"layer_{index}"]
        weights = [tf.convert_to_tensor(variable.value) for variable in part.weights]
        specs = tuple(tf.TensorSpec(weight.shape, weight.dtype) for weight in weights)
        signature = (*signature, *specs)
        kind = (self._configuration, type(part), part.dtype_policy.name, part.structure)
        # The shapes tell a layer with LoRA from one without.
        function = self.compiled((name, part.structure, specs), partial(step, part), signature, (kind, name, signature))
        return lambda *arguments: function(*arguments, *weights)

    def _token_vectors(self, token_ids):
        return tf.cast(tf.gather(self.layers["embeddings"].token_table, token_ids), tf.float32)

    def _embed(self, vectors, segment_ids):
        part = self.layers["embeddings"]
        return tf.cast(part.project(part.norm(part.add_places(vectors, segment_ids))), tf.float32)

    def _mlm_logits(self, rows, norm=None):
        part = self.layers["mlm"]
        head_norm = part.norm
        replacement = None if norm is None else lambda x: norm(x, head_norm.gamma, head_norm.beta, head_norm.epsilon)
        return part.logits(rows[None], self.layers["embeddings"].token_table, replacement)[0]

    def _mlm(self, rows, norm=None):
        """Log-probabilities [R, V]. A `norm` such as `frozen_norm` replaces the head's normalisation."""
        return tf.nn.log_softmax(self._mlm_logits(rows, norm))

    def _pair(self, head, x):
        return tf.nn.log_softmax(self.layers[head](self.layers["pooler"](x)))

    def _replaced(self, x):
        logits = tf.cast(self.layers["replaced"](x), tf.float32)
        return tf.math.log_sigmoid(tf.stack([-logits, logits], axis=-1))

    def _class_logits(self, x):
        head, settings = self.task.network.head, self.task.settings
        pooled = self.layers["pooler"](x) if self.task.task_type.needs_pooler(settings) else None
        logits = head(x, pooled, tf.ones(tf.shape(x)[:2], tf.int32), training=False)["logits"]
        return tf.cast(logits, tf.float32)

    def _class(self, x):
        logits, settings = self._class_logits(x), self.task.settings
        if settings.regression:
            return logits
        return tf.math.log_sigmoid(logits) if settings.multi_label else tf.nn.log_softmax(logits)

    def _vectors(self):
        return _floats(None, None, self.config.embedding_width), _ids()

    def _states(self):
        return _floats(None, None, self.config.hidden_size)

    def compiled(self, name: Hashable, step: Callable, signature: tuple, shared: Hashable | None = None) -> Callable:
        """Compile a step for tensors of a signature, once for each name.

        Args:
            name: hashable. The key of the compiled function: a later call with this name gets the same function.
            step: callable. The function to compile.
            signature: tuple of tf.TensorSpec. The tensors that it takes.
            shared: hashable. The key of a function that holds no weights: all models that are in memory share it. None
                for a function of this model.
        Returns:
            The compiled function. Others may use the engine of the model while it runs (`engine_unused`).
        """
        if name not in self._functions:
            with engine_unused(), self._lock:  # Keras and TensorFlow cannot trace in several threads at once.
                if name not in self._functions:
                    function = _SHARED.get(shared)
                    if function is None:
                        traced = tf.function(step, input_signature=signature, autograph=False)
                        function = traced.get_concrete_function()
                    if shared is not None:
                        _SHARED[shared] = function
                    self._functions[name] = function
        return partial(_run_beside_engine, self._functions[name])


def _run_beside_engine(function, *arguments):
    with engine_unused():
        return function(*arguments)


def call_weights(part: keras.Layer, weights: Sequence[tf.Tensor]) -> tuple[list, list]:
    """The first two arguments of `stateless_call` of a layer, from the values of its `weights` in their order.

    Returns:
        (the values of the trainable variables, those of the others).
    """
    values = {id(variable): weight for variable, weight in zip(part.weights, weights)}
    # The state of a dropout layer is a variable, but no weight.
    trainable, others = (
        [values[id(variable)] if id(variable) in values else variable.value for variable in variables]
        for variables in (part.trainable_variables, part.non_trainable_variables)
    )
    return trainable, others


def frozen_norm(x: tf.Tensor, gamma: Any, beta: Any, epsilon: float) -> tf.Tensor:
    """Layer normalisation of x [..., H] with a standard deviation that has no gradient."""
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    scale = tf.stop_gradient(tf.math.rsqrt(variance + epsilon))
    return (x - mean) * scale * tf.convert_to_tensor(gamma) + tf.convert_to_tensor(beta)


def log_odds(logits: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
    """Log-odds [B] of answer number `wanted`, int32 [], from the logits or log-probabilities [B, K] of all."""
    others = tf.where(tf.range(tf.shape(logits)[1]) == wanted, -np.inf, logits)
    return tf.gather(logits, wanted, axis=1) - tf.reduce_logsumexp(others, axis=1)


class _HookRaised(BaseException):
    """Carries what a hook raises through the layer: Keras makes another exception of every `Exception` there."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _pairs(hooks):
    """The hooks as a list, if they are pairs (hook name, function)."""
    pairs = list(hooks) if isinstance(hooks, Iterable) and not isinstance(hooks, (str, Mapping)) else [hooks]
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not callable(pair[1]):
            raise InputError(f"hooks must be a list of pairs (hook name, function), but {pair!r:.60} is no such pair.")
    return pairs


def _by_point(hooks):
    """A dict from hook points to functions of a tensor, from one layer's pairs (hook name, function of an array)."""
    functions: dict[str, list[HookFunction]] = {}
    for name, function in hooks:
        functions.setdefault(name, []).append(function)

    def chained(name, chain):
        def hook(value):
            array = tf.cast(value, tf.float32).numpy()
            try:
                for function in chain:
                    array.flags.writeable = False
                    array = _replaced_by(function(array), array, name)
            except Exception as error:
                raise _HookRaised(error) from None
            return array

        return hook

    return {name.partition(".")[2]: chained(name, chain) for name, chain in functions.items()}


def _replaced_by(returned, array, name):
    """The array that replaces another at a hook point, from what the function there returns."""
    if returned is None:
        return array
    try:
        replacement = np.array(returned, array.dtype)
    except (TypeError, ValueError):
        raise InputError(f"The function at {name} returns {returned!r:.60}; it must return an array or None.") from None
    if replacement.shape != array.shape:
        raise InputError(
            f"The function at {name} returns an array of shape {replacement.shape}; it must be {array.shape}."
        )
    return replacement


def _replacing(mask, replacement):
    """A hook that replaces a value where a mask is true; everywhere if the mask is None."""

    def hook(value):
        replaced = tf.cast(replacement, value.dtype)
        replaced = replaced if mask is None else tf.where(mask, replaced, value)
        replaced.set_shape(value.shape)
        return replaced

    return hook


def _floats(*shape):
    return tf.TensorSpec(shape, tf.float32)


_MAPS = _floats(None, None, None, None)
_NO_MASK = np.zeros((1, 1, 1, 1), np.float32)


def _ids(axes=2):
    return tf.TensorSpec((None,) * axes, tf.int32)
