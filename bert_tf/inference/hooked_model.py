"""A BERT's forward pass with hooks: functions that read or replace what an encoder layer computes on its way.

`run_with_cache` and `run_with_hooks` take texts, and any function at any hook point (`bert_tf.layers.hooks`). What the
analyses use takes tensors: each kind of step is compiled once, for any batch, length and layer (a layer's weights are
an argument of it), and nothing is computed that is not asked for.

Dimension legend: B batch, T tokens, H hidden, E embedding (H in BERT), L layers, N heads, D head size, F intermediate,
V vocabulary, R rows.
"""

import threading
import time

import numpy as np
import tensorflow as tf

from bert_tf.errors import InputError
from bert_tf.inference.model_inputs import prepare_input
from bert_tf.inference.trace import HEAD_OUTPUTS, Trace
from bert_tf.layers.attention import MASKED_SCORE
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.layers.hooks import HOOK_POINTS, POINTS


class HookedModel:
    """Embeddings, each encoder layer with its hook points, and each head of a `Bert` as functions of their own.

    `Bert.hooked` gives it. Tensors are float32 and a batch is of one length, without padding. Safe from several
    threads.

    Args: bert: a `Bert`; its weights are shared.

    Attributes:
        config: the `BertConfig`. task: the `TaskModel` of a fine-tuned model, or None. layers: dict from names to the
            Keras layers. hook_names: list of str, "layer_0.resid_pre" to "layer_{L-1}.resid_post".
    """

    def __init__(self, bert):
        self.config, self.task, self.layers = bert.config, bert.task, bert.model.bert_layers
        self.hook_names = [
            f"layer_{index}.{point.name}" for index in range(self.config.num_hidden_layers) for point in HOOK_POINTS
        ]
        # Not the Bert itself: the two would keep each other in memory.
        self._tokenizer, self._max_length = bert.tokenizer, bert.max_length
        self._name, self._heads = bert.name, bert.heads
        self._functions, self._lock = {}, threading.Lock()

    def run_with_cache(self, text_a, text_b=None, mask=(), names=None, hooks=(), level="token"):
        """Run one input and keep what its layers compute.

        Args:
            text_a, text_b, mask, level: as `Bert.trace` takes them.
            names: hook names to keep; None for all.
            hooks: as `run_with_hooks` takes them; what is kept is what they made of it.
        Returns:
            (`Trace`, dict from hook names such as "layer_3.resid_post" to float32 arrays with a batch axis of 1, shaped
            as in `HOOK_POINTS`: resid_post is [1, T, H]).
        Raises:
            InputError: there is no such hook name. Otherwise as `Bert.trace`.

        Example:
            >>> trace, cache = bert.hooked().run_with_cache("Shanghai is a city in [MASK].")
            >>> cache["layer_3.resid_post"].shape
        """
        cache = dict.fromkeys(self.hook_names if names is None else names)
        keep = [(name, lambda value, name=name: cache.__setitem__(name, value)) for name in cache]
        trace = self.run_with_hooks(text_a, text_b, mask, [*hooks, *keep], level)
        return trace, cache

    def run_with_hooks(self, text_a, text_b=None, mask=(), hooks=(), level="token"):
        """Run one input with functions that read or replace what its layers compute.

        Args:
            text_a, text_b, mask, level: as `Bert.trace` takes them.
            hooks: (hook name, function) pairs. A function gets a read-only float32 array with a batch axis of 1, shaped
                as in `HOOK_POINTS`, and returns an array of the same shape to go on with, or None to leave it as it is.
                Functions at one point are called one after the other.
        Returns:
            `Trace` of what the model says so.
        Raises:
            InputError: there is no such hook name, or a function returns another shape. Otherwise as `Bert.trace`.

        Example:
            >>> def without_head_2(z):
            ...     z = z.copy()
            ...     z[:, 2] = 0
            ...     return z
            >>> trace = bert.hooked().run_with_hooks("It is a [MASK].", hooks=[("layer_0.z", without_head_2)])
        """
        began, hooks = time.perf_counter(), list(hooks)
        for name, _ in hooks:
            if name not in self.hook_names:
                raise InputError(
                    f"There is no hook {name!r:.60}; hooks are named layer_N.POINT, with a layer from 0 to "
                    f"{self.config.num_hidden_layers - 1} and a point out of {', '.join(POINTS)}."
                )
        ready = prepare_input(self._tokenizer, self._max_length, text_a, text_b, mask, level)
        states, patterns = [self.embed(ready.token_ids[None], ready.segment_ids[None])], []
        for index in range(self.config.num_hidden_layers):
            own = _by_point([(name, one) for name, one in hooks if name.startswith(f"layer_{index}.")])
            x, found = self.layers[f"layer_{index}"](states[-1], _NO_MASK, outputs=("pattern",), hooks=own)
            states.append(x)
            patterns.append(found["pattern"])
        results = self._head_outputs(states[-1], ready.masks)
        results |= {"attentions": np.concatenate(patterns), "hidden_states": np.concatenate(states)}
        seconds = time.perf_counter() - began
        return Trace.from_results(ready, results, self._tokenizer, self._name, self._heads, seconds)

    def _head_outputs(self, x, masks):
        """The heads' outputs on a last hidden state [1, T, H] without the batch axis, as `Trace.from_results` takes
        them."""
        found, layers = {}, self.layers
        if "mlm" in self._heads:
            positions = np.array([masks], np.int32).reshape(1, len(masks))
            found["mlm_logits"] = layers["mlm"](x, layers["embeddings"].token_table, positions)
        if "pooler" in self._heads:
            found["pooled_output"] = layers["pooler"](x)
        for head in {"nsp", "sop"} & self._heads:
            found[f"{head}_logits"] = layers[head](found["pooled_output"])
        if "replaced" in self._heads:
            found["replaced_logits"] = layers["replaced"](x)
        return {name: found[name].numpy()[0] for _, name in HEAD_OUTPUTS if name in found}

    def check_post_norm(self, analysis):
        """Raise InputError unless every layer computes what `EncoderLayer` does: an analysis follows these steps back.

        Args: analysis: its name in the message.
        """
        for stack in self.layers["layer_0"].stacks():
            if type(stack).steps is not EncoderLayer.steps:
                raise InputError(
                    f"{analysis} needs BERT's encoder layer, which normalises the sum after each block; "
                    f"{self._name} has {type(stack).__name__}. Ablation, patching and gradients work with any layer."
                )

    def embed(self, token_ids, segment_ids):
        """Hidden state 0, [B, T, H], of int32 [B, T] ids."""

        def step(token_ids, segment_ids):
            return self._embed(self._token_vectors(token_ids), segment_ids)

        function = self.compiled("embed", step, (_ids(), _ids()))
        return function(tf.constant(token_ids, tf.int32), tf.constant(segment_ids, tf.int32))

    def token_vectors(self, token_ids):
        """Rows of the token table, float32 [..., E], before segment, position and normalisation."""
        return self._token_vectors(tf.constant(token_ids, tf.int32))

    def layer(self, index, x, bias=None, replace=None):
        """Hidden state index + 1 from hidden state `index`; see `values`."""
        return self.values(index, x, ("resid_post",), bias, replace)["resid_post"]

    def values(self, index, x, points, bias=None, replace=None):
        """What layer `index` computes on its way from hidden state `index`, with some of it replaced.

        Args:
            x: [B, T, H].
            points: names out of `HOOK_POINTS` to return; what none of them needs is not computed.
            bias: added to the attention scores, broadcast to [B, N, T, T]; `MASKED_SCORE` blocks.
            replace: dict from names out of `HOOK_POINTS` to (bool, where; float32, what), both with as many axes as the
                value there and broadcast to it; None for everywhere, so that what led there is not computed. Any batch
                axis may be 1.
        Returns:
            dict from the names to float32 tensors, as they are after what was replaced.
        """
        pairs = {name: replace[name] for name in POINTS if name in (replace or {})}
        points, everywhere = tuple(points), tuple(name for name, (where, _) in pairs.items() if where is None)

        def step(x, bias, *others):
            given = iter(others)
            hooks = {name: _replacing(None if name in everywhere else next(given), next(given)) for name in pairs}
            return self._layer(tuple(given), x, bias, points, hooks)

        signature, others = [self._states(), _MAPS], []
        for name, pair in pairs.items():
            axes = (None,) * len(POINTS[name].shape)
            for dtype, part in zip((tf.bool, tf.float32), pair):
                if part is not None:
                    signature.append(tf.TensorSpec(axes, dtype))
                    others.append(tf.convert_to_tensor(part, dtype))
        function = self.of_layer(("layer", tuple(pairs), everywhere, points), step, tuple(signature), index)
        return function(x, _NO_MASK if bias is None else tf.constant(bias, tf.float32), *others)

    def states(self, token_ids, segment_ids):
        """All hidden states, list of L + 1 [B, T, H]."""
        states = [self.embed(token_ids, segment_ids)]
        for index in range(self.config.num_hidden_layers):
            states.append(self.layer(index, states[-1]))
        return states

    def finish(self, x, first):
        """The last hidden state from hidden state `first`."""
        for index in range(first, self.config.num_hidden_layers):
            x = self.layer(index, x)
        return x

    def read(self, x):
        """For each place of hidden states [B, T, H] the vector that the MLM head predicts it from: the state there or,
        in a causal model, its neighbour's."""
        return self.layers["mlm"].read(tf.convert_to_tensor(x)) if "mlm" in self.layers else x

    def mlm_log_probabilities(self, rows):
        """Logarithms of the MLM head's probabilities, [R, V], for any vectors [R, H] as `read` gives them."""
        step = self.compiled("mlm", self._mlm, (_floats(None, self.config.hidden_size),))
        return step(tf.constant(rows, tf.float32) if isinstance(rows, np.ndarray) else rows)

    def mlm_reading(self, states, answers, top_k):
        """What the MLM head says of the states of places, without the distributions themselves: over 30,000 tokens they
        are large.

        Args:
            states: float32 [P, S, H] as `read` gives them, S of each place. answers: int [P], a token each to look for
            in all its states; -1 for the likeliest of the last one. top_k: K, at most V.
        Returns:
            (ids int32 [P, S, K] and probabilities float32 [P, S, K] of the likeliest, in descending order, equals in
            the order of their ids; entropies float32 [P, S] in nats; ranks int32 [P, S] from 1 and probabilities
            float32 [P, S] of the answers), arrays.
        """
        signature = _floats(None, None, self.config.hidden_size), _ids(1), _ids(0)
        step = self.compiled("mlm reading", self._mlm_reading, signature)
        given = tf.constant(states, tf.float32), tf.constant(answers, tf.int32), tf.constant(top_k, tf.int32)
        return tuple(part.numpy() for part in step(*given))

    def nsp_log_probabilities(self, x):
        """Logarithms of P(IsNext) and P(NotNext), [B, 2], from a last hidden state [B, T, H]."""
        return self.compiled("nsp", lambda x: self._pair("nsp", x), (self._states(),))(x)

    def sop_log_probabilities(self, x):
        """Logarithms of P(in order) and P(swapped), [B, 2], from a last hidden state [B, T, H]."""
        return self.compiled("sop", lambda x: self._pair("sop", x), (self._states(),))(x)

    def replaced_log_probabilities(self, x):
        """Logarithms of P(original) and P(replaced) of each token, [B, T, 2], from a last hidden state [B, T, H]."""
        return self.compiled("replaced", self._replaced, (self._states(),))(x)

    def class_scores(self, x):
        """What a fine-tuned classifier says, [B, K], from a last hidden state [B, T, H]: logarithms of the
        classes' probabilities (several labels: of each label's own), or the value of a regression."""
        return self.compiled("class", self._class, (self._states(),))(x)

    def gradient(self, vectors, segment_ids, target):
        """A target's log-probability and its gradient by the token vectors.

        Args:
            vectors: float32 [B, T, E] in the place of `token_vectors`. segment_ids: int32 [B, T].
            target: a `Target`.
        Returns:
            (log-probabilities [B], gradients [B, T, E]), float32 arrays.
        """
        segment_ids = tf.constant(segment_ids, tf.int32)
        vectors = tf.constant(vectors, tf.float32)
        signature = (_floats(None, None, self.config.embedding_width), _ids())
        states = [self.compiled("sum", self._embed, signature)(vectors, segment_ids)]
        for index in range(self.config.num_hidden_layers):
            states.append(self.layer(index, states[-1]))
        score, gradient = self._target_gradient(states[-1], target)
        # Back through one layer at a time, each run again on its way: nothing within layers is kept in memory.
        for index in reversed(range(self.config.num_hidden_layers)):
            gradient = self.of_layer("back", self._back, (self._states(), self._states()), index)(
                states[index], gradient
            )
        back = self.compiled("sum back", self._sum_back, (*signature, self._states()))
        return score.numpy(), back(vectors, segment_ids, gradient).numpy()

    def score(self, x, target):
        """A target's log-probability, float32 [B], from a last hidden state [B, T, H]."""
        return self.answers(x, target)[:, target.id]

    def answers(self, x, target):
        """The log-probabilities of all that could be said where a target is, float32 [B, K], from a last hidden state
        [B, T, H]: of the vocabulary's tokens at its position, of both verdicts on a pair or token, of all classes."""
        if target.head == "mlm":
            return self.mlm_log_probabilities(self.read(x)[:, target.position]).numpy()
        if target.head == "replaced":
            return self.replaced_log_probabilities(x).numpy()[:, target.position]
        scores = {
            "nsp": self.nsp_log_probabilities,
            "sop": self.sop_log_probabilities,
            "task": self.class_scores,
        }
        return scores[target.head](x).numpy()

    def _target_gradient(self, x, target):
        """A target's log-probability [B] and its gradient [B, T, H] by the last hidden state."""
        head = target.head

        def step(x, position, wanted):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(x)
                score = tf.gather(self._scores(head, x, position), wanted, axis=1)
            return score, tf.convert_to_tensor(tape.gradient(score, x))

        function = self.compiled(("target", head), step, (self._states(), _ids(0), _ids(0)))
        return function(x, tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32))

    def odds_gradient(self, x, target):
        """A target's log-odds and their gradient at the last hidden state, the deviation of a normalisation within the
        head held as it is.

        Args:
            x: [B, T, H]. target: a `Target`.
        Returns:
            (log-odds [B], the difference of the log-probabilities of the target and of all else; of a regression its
            value; gradients [B, T, H]), float32 arrays.
        """
        head = target.head

        def step(x, position, wanted):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(x)
                score = self._odds(head, x, position, wanted, frozen_norm)
            return score, tf.convert_to_tensor(tape.gradient(score, x))

        function = self.compiled(("odds", head), step, (self._states(), _ids(0), _ids(0)))
        found = function(x, tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32))
        return tuple(part.numpy() for part in found)

    def odds_gradients(self, states, target):
        """Gradients of a target's log-odds at all hidden states, nothing held.

        Args:
            states: list of L + 1 [B, T, H], as `states` gives them. target: a `Target`.
        Returns:
            generator of (number of the state, gradients float32 [B, T, H]), from the last state to the first.
        """
        head = target.head

        def step(x, position, wanted):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(x)
                score = self._odds(head, x, position, wanted, None)
            return tf.convert_to_tensor(tape.gradient(score, x))

        function = self.compiled(("odds gradient", head), step, (self._states(), _ids(0), _ids(0)))
        places = tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32)
        gradient = function(states[-1], *places)
        yield len(states) - 1, gradient.numpy()
        for index in reversed(range(len(states) - 1)):
            gradient = self.of_layer("back", self._back, (self._states(), self._states()), index)(
                states[index], gradient
            )
            yield index, gradient.numpy()

    def _scores(self, head, x, position, norm=None):
        """What a head gives at a position, [B, K]; `norm`: in the place of the MLM head's, as `_mlm` takes it."""
        return {
            "mlm": lambda: self._mlm(tf.gather(self.read(x), position, axis=1), norm),
            "nsp": lambda: self._pair("nsp", x),
            "sop": lambda: self._pair("sop", x),
            "replaced": lambda: tf.gather(self._replaced(x), position, axis=1),
            "task": lambda: self._class(x),
        }[head]()

    def _odds(self, head, x, position, wanted, norm):
        """Log-odds [B] of one of the K answers of a head at a position, or the value of a regression; `norm` as of
        `_scores`."""
        if head == "task" and (self.task.settings.regression or self.task.settings.multi_label):
            # The logit is the log-odds of its sigmoid, also where that is rounded to 1.
            return tf.gather(self._class_logits(x), wanted, axis=1)
        scores = self._scores(head, x, position, norm)
        return log_odds(scores, wanted)

    def _back(self, x, gradient, *weights):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = self._layer(weights, x, _NO_MASK)["resid_post"]
        return tape.gradient(y, x, output_gradients=gradient)

    def _sum_back(self, vectors, segment_ids, gradient):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(vectors)
            y = self._embed(vectors, segment_ids)
        return tape.gradient(y, vectors, output_gradients=gradient)

    def _layer(self, weights, x, bias, points=("resid_post",), hooks=None):
        """Values of any encoder layer: the first one's structure, `weights` in the place of its own."""
        part = self.layers["layer_0"]
        state = [variable.value for variable in part.non_trainable_variables]
        (_, found), _ = part.stateless_call(weights, state, x, bias, outputs=points, hooks=hooks)
        return {name: tf.cast(value, tf.float32) for name, value in found.items()}

    def of_layer(self, name, step, signature, index):
        """A compiled step with the weights of layer `index` already given to it."""
        weights = [
            tf.convert_to_tensor(variable.value) for variable in self.layers[f"layer_{index}"].trainable_variables
        ]
        specs = tuple(tf.TensorSpec(weight.shape, weight.dtype) for weight in weights)
        function = self.compiled(name, step, (*signature, *specs))
        return lambda *arguments: function(*arguments, *weights)

    def _token_vectors(self, token_ids):
        return tf.cast(tf.gather(self.layers["embeddings"].token_table, token_ids), tf.float32)

    def _embed(self, vectors, segment_ids):
        part = self.layers["embeddings"]
        return tf.cast(part.project(part.norm(part.add_places(vectors, segment_ids))), tf.float32)

    def _mlm_logits(self, rows, norm=None):
        part = self.layers["mlm"]
        own = part.norm
        other = None if norm is None else lambda x: norm(x, own.gamma, own.beta, own.epsilon)
        return part.logits(rows[None], self.layers["embeddings"].token_table, other)[0]

    def _mlm(self, rows, norm=None):
        """Log-probabilities [R, V]; norm: as `frozen_norm`, in the place of the head's own."""
        return tf.nn.log_softmax(self._mlm_logits(rows, norm))

    def _mlm_reading(self, states, answers, top_k):
        shape = tf.shape(states)[:2]
        logits = tf.cast(self._mlm_logits(tf.reshape(states, (-1, self.config.hidden_size))), tf.float32)
        best, ids = tf.math.top_k(logits, top_k)
        # Of the likeliest as 0: nothing overflows, and the entropy is no difference of large numbers.
        highest = best[:, :1]
        logits = logits - highest
        weights = tf.exp(logits)
        total = tf.reduce_sum(weights, axis=1)
        entropies = tf.math.log(total) - tf.reduce_sum(weights * logits, axis=1) / total
        likeliest = tf.reshape(ids[:, 0], shape)[:, -1]
        answers = tf.repeat(tf.where(answers < 0, likeliest, answers), shape[1])[:, None]
        own = tf.gather(logits, answers, batch_dims=1)
        ranks = 1 + tf.cast(tf.reduce_sum(tf.cast(logits > own, tf.float32), axis=1), tf.int32)  # exact to 2^24
        found = ids, tf.exp(best - highest) / total[:, None], entropies, ranks, tf.exp(own[:, 0]) / total
        return tuple(tf.reshape(part, tf.concat([shape, tf.shape(part)[1:]], 0)) for part in found)

    def _pair(self, head, x):
        return tf.nn.log_softmax(self.layers[head](self.layers["pooler"](x)))

    def _replaced(self, x):
        logits = tf.cast(self.layers["replaced"](x), tf.float32)
        return tf.math.log_sigmoid(tf.stack([-logits, logits], axis=-1))

    def _class_logits(self, x):
        head, settings = self.task.network.head, self.task.settings
        pooled = self.layers["pooler"](x) if self.task.family.needs_pooler(settings) else None
        logits = head(x, pooled, tf.ones(tf.shape(x)[:2], tf.int32), training=False)["logits"]
        return tf.cast(logits, tf.float32)

    def _class(self, x):
        logits, settings = self._class_logits(x), self.task.settings
        if settings.regression:
            return logits
        return tf.math.log_sigmoid(logits) if settings.multi_label else tf.nn.log_softmax(logits)

    def _states(self):
        return _floats(None, None, self.config.hidden_size)

    def compiled(self, name, step, signature):
        """A step compiled for tensors of a signature: once, whatever else asks for one of this name (anything that
        compares)."""
        with self._lock:  # Keras' and TensorFlow's tracing are not safe from several threads.
            if name not in self._functions:
                function = tf.function(step, input_signature=signature, autograph=False)
                self._functions[name] = function.get_concrete_function()
            return self._functions[name]


def blocked(tokens, length, links=()):
    """The bias that keeps everybody from attending to some tokens, and some tokens from others.

    Args:
        tokens: positions nobody attends to. length: T. links: (from, to) pairs of positions.
    Returns:
        float32 [1, 1, T, T] of 0 and `MASKED_SCORE`.
    """
    bias = np.zeros((1, 1, length, length), np.float32)
    bias[..., list(tokens)] = MASKED_SCORE
    for looking, looked_at in links:
        bias[..., looking, looked_at] = MASKED_SCORE
    return bias


def frozen_norm(x, gamma, beta, epsilon):
    """Layer normalisation of x [..., H] whose standard deviation has no gradient."""
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    scale = tf.stop_gradient(tf.math.rsqrt(variance + epsilon))
    return (x - mean) * scale * tf.convert_to_tensor(gamma) + tf.convert_to_tensor(beta)


def log_odds(logits, wanted):
    """Log-odds [B] of one of K answers, int32 [], from their logits or log-probabilities [B, K]."""
    others = tf.where(tf.range(tf.shape(logits)[1]) == wanted, -np.inf, logits)
    return tf.gather(logits, wanted, axis=1) - tf.reduce_logsumexp(others, axis=1)


def _by_point(hooks):
    """(hook name, function of an array) pairs of one layer as a dict from points to functions of a tensor."""
    functions = {}
    for name, function in hooks:
        functions.setdefault(name, []).append(function)

    def at(name, own):
        def hook(value):
            array = tf.cast(value, tf.float32).numpy()
            for function in own:
                array.flags.writeable = False
                found = function(array)
                if found is None:
                    continue
                found = np.array(found, array.dtype)
                if found.shape != array.shape:
                    raise InputError(
                        f"The function at {name} returns an array of shape {found.shape}; it must be {array.shape}."
                    )
                array = found
            return array

        return hook

    return {name.partition(".")[2]: at(name, own) for name, own in functions.items()}


def _replacing(where, what):
    def hook(value):
        found = tf.cast(what, value.dtype)
        found = found if where is None else tf.where(where, found, value)
        found.set_shape(value.shape)
        return found

    return hook


def _floats(*shape):
    return tf.TensorSpec(shape, tf.float32)


_MAPS = _floats(None, None, None, None)
_NO_MASK = np.zeros((1, 1, 1, 1), np.float32)


def _ids(axes=2):
    return tf.TensorSpec((None,) * axes, tf.int32)
