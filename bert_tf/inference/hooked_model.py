"""A BERT's forward pass in steps that can be reached into: gates, blocked attention, replaced states,
gradients.

The steps are the model's own layers and weights. Each kind of step is compiled once, for any batch, length
and layer (a layer's weights are an argument of it); what is done between two steps costs nothing when it is
not done.

Dimension legend: B batch, T tokens, H hidden, E embedding (H in BERT), L layers, N heads, V vocabulary,
R rows.
"""

import threading

import keras
import numpy as np
import tensorflow as tf

from bert_tf.explain.attribution.backward_rules import Held
from bert_tf.layers.attention import MASKED_SCORE


class OpenModel:
    """Embeddings, each encoder layer, and each head of a `BertModel` as functions of their own.

    Tensors are float32 and a batch is of one length, without padding. Safe from several threads.

    Args: model: a `BertModel`; its weights are shared. task: the `TaskModel` over it, or None.

    Attributes:
        config: the `BertConfig`. task: as given. parts: dict from names to the model's layers.
    """

    def __init__(self, model, task=None):
        self.task = task
        self.config = model.bert_config
        self.parts = model.bert_layers
        self._functions, self._lock = {}, threading.Lock()

    def embed(self, token_ids, segment_ids):
        """Hidden state 0, [B, T, H], of int32 [B, T] ids."""

        def step(token_ids, segment_ids):
            return self._embed(self._token_vectors(token_ids), segment_ids)

        function = self.compiled("embed", step, (_ids(), _ids()))
        return function(tf.constant(token_ids, tf.int32), tf.constant(segment_ids, tf.int32))

    def token_vectors(self, token_ids):
        """Rows of the token table, float32 [..., E], before segment, position and normalisation."""
        return self._token_vectors(tf.constant(token_ids, tf.int32))

    def layer(self, index, x, bias=None, head_gates=None, feed_forward_gates=None):
        """Hidden state index + 1 from hidden state `index`.

        Args:
            x: [B, T, H]. bias: added to the attention scores, broadcast to [B, N, T, T]; `MASKED_SCORE`
                blocks.
            head_gates: [B, N], feed_forward_gates: [B]: factors of what they give; None for 1.
        """
        return self._gated("layer", index, x, bias, head_gates, feed_forward_gates)

    def layer_with_maps(self, index, x, bias=None, head_gates=None, feed_forward_gates=None):
        """As `layer`, with the attention maps [B, N, T, T] of the same step: (state, maps)."""
        return self._gated("layer with maps", index, x, bias, head_gates, feed_forward_gates, ("attentions",))

    def layer_instead(self, index, x, instead):
        """As `layer`, with others' outputs in the place of what its blocks add, before residual and norm.

        Args:
            instead: dict from "attention" or "feed_forward" to (bool [B, T], where; float32 [B, T, H], what).
        """
        blocks = ("attention", "feed_forward")

        def step(x, *given):
            pairs = given[:2], given[2:4]
            return self._layer(given[4:], x, tf.zeros((1, 1, 1, 1)), instead=dict(zip(blocks, pairs)))

        nothing = (np.zeros((1, 1), bool), np.zeros((1, 1, self.config.hidden_size), np.float32))
        given = [one for block in blocks for one in instead.get(block, nothing)]
        signature = (self._states(), *2 * (_PLACES, self._states()))
        return self.of_layer("layer instead", step, signature, index)(x, *map(tf.convert_to_tensor, given))

    def layer_reading(self, index, x, part, state, head=0):
        """As `layer`, with one part of it reading another state; the residual stream is x.

        Args:
            x: [B, T, H]. part: "queries", "keys" or "values", of one head, or "feed_forward".
            state: float32 [B, T, H], what that part reads: for a head a hidden state `index`, for the block an
                "attention_norm" as of `layer_activations`. Either batch axis may be 1.
            head: index.
        """

        def step(x, heads, state, *weights):
            return self._layer(weights, x, tf.zeros((1, 1, 1, 1)), reads={part: (heads, state)})

        signature = (self._states(), _PLACES, self._states())
        heads = tf.constant(np.arange(self.config.num_attention_heads)[None] == head)
        state = tf.convert_to_tensor(state, tf.float32)
        return self.of_layer(("layer reading", part), step, signature, index)(x, heads, state)

    def held(self, index, x, attention, feed_forward):
        """The residual sums and normalisations of layer `index` alone, around given outputs of its blocks.

        Args:
            x, attention, feed_forward: float32 [B, T, H], hidden state `index` and what the blocks add; a batch axis
                may be 1.
        Returns:
            ("attention_norm", "feed_forward_norm") as of `layer_activations`, tensors [B, T, H].
        """

        def step(x, attention, feed_forward, *weights):
            part = self.parts["layer_0"]
            with keras.StatelessScope(state_mapping=list(zip(part.trainable_variables, weights))):
                stacks = part.side_by_side()
                shares = zip(*(tf.split(one, len(stacks), axis=-1) for one in (x, attention, feed_forward)))
                middles, states = [], []
                for stack, (own, attended, widened) in zip(stacks, shares):
                    middles.append(stack.attention_norm(own + attended))
                    states.append(stack.feed_forward_norm(middles[-1] + widened))
            return tuple(tf.cast(tf.concat(one, -1), tf.float32) for one in (middles, states))

        given = (tf.convert_to_tensor(one, tf.float32) for one in (x, attention, feed_forward))
        return self.of_layer("held", step, 3 * (self._states(),), index)(*given)

    def _gated(self, name, index, x, bias, head_gates, feed_forward_gates, details=()):
        rows, heads = x.shape[0], self.config.num_attention_heads

        def step(x, bias, head_gates, feed_forward_gates, *weights):
            gates = {"head_gates": head_gates, "feed_forward_gates": feed_forward_gates}
            return self._layer(weights, x, bias, details, **gates)

        signature = (self._states(), _MAPS, _floats(None, heads), _floats(None))
        return self.of_layer(name, step, signature, index)(
            x,
            tf.zeros((1, 1, 1, 1)) if bias is None else tf.constant(bias, tf.float32),
            tf.ones((rows, heads)) if head_gates is None else tf.constant(head_gates, tf.float32),
            tf.ones((rows,)) if feed_forward_gates is None else tf.constant(feed_forward_gates, tf.float32),
        )

    def attention_maps(self, index, x, bias=None):
        """Attention of layer `index` on hidden state `index`, [B, N, T, T]; gates do not change it."""

        def step(x, bias, *weights):
            return self._layer(weights, x, bias, ("attentions",))[1]

        bias = tf.zeros((1, 1, 1, 1)) if bias is None else tf.constant(bias, tf.float32)
        return self.of_layer("maps", step, (self._states(), _MAPS), index)(x, bias)

    def layer_activations(self, index, x):
        """What layer `index` computes on its way from hidden state `index`, x [B, T, H].

        Returns:
            dict of float32 tensors as `architecture.layer_activations` names them, with the batch axis B.
        """

        def step(x, *weights):
            part = self.parts["layer_0"]
            with keras.StatelessScope(state_mapping=list(zip(part.trainable_variables, weights))):
                stacks = part.side_by_side()
                found = [_passing(stack, own) for stack, own in zip(stacks, tf.split(x, len(stacks), axis=-1))]
            axes = {name: 1 if name in _OF_HEADS else -1 for name in found[0]}
            return {
                name: tf.cast(tf.concat([one[name] for one in found], axis), tf.float32) for name, axis in axes.items()
            }

        return self.of_layer("passing", step, (self._states(),), index)(tf.convert_to_tensor(x, tf.float32))

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
        in a model that reads one way, its neighbour's."""
        return x if self.config.member.reads == "both" else self.parts["mlm"].read(tf.convert_to_tensor(x))

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
        score, slope = self._target_gradient(states[-1], target)
        # Back through one layer at a time, each run again on its way: nothing within layers is kept in memory.
        for index in reversed(range(self.config.num_hidden_layers)):
            slope = self.of_layer("back", self._back, (self._states(), self._states()), index)(states[index], slope)
        back = self.compiled("sum back", self._sum_back, (*signature, self._states()))
        return score.numpy(), back(vectors, segment_ids, slope).numpy()

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
        """A target's log-odds and their slope at the last hidden state, the deviation of a normalisation within the
        head held as it is.

        Args:
            x: [B, T, H]. target: a `Target`.
        Returns:
            (log-odds [B], the difference of the log-probabilities of the target and of all else; of a regression its
            value; slopes [B, T, H]), float32 arrays.
        """
        head = target.head

        def step(x, position, wanted):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(x)
                score = self._odds(head, x, position, wanted, _HELD.norm)
            return score, tf.convert_to_tensor(tape.gradient(score, x))

        function = self.compiled(("odds", head), step, (self._states(), _ids(0), _ids(0)))
        found = function(x, tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32))
        return tuple(part.numpy() for part in found)

    def odds_slopes(self, states, target):
        """Slopes of a target's log-odds at all hidden states, nothing held.

        Args:
            states: list of L + 1 [B, T, H], as `states` gives them. target: a `Target`.
        Returns:
            generator of (number of the state, slopes float32 [B, T, H]), from the last state to the first.
        """
        head = target.head

        def step(x, position, wanted):
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(x)
                score = self._odds(head, x, position, wanted, None)
            return tf.convert_to_tensor(tape.gradient(score, x))

        function = self.compiled(("odds slope", head), step, (self._states(), _ids(0), _ids(0)))
        places = tf.constant(target.position or 0, tf.int32), tf.constant(target.id, tf.int32)
        slope = function(states[-1], *places)
        yield len(states) - 1, slope.numpy()
        for index in reversed(range(len(states) - 1)):
            slope = self.of_layer("back", self._back, (self._states(), self._states()), index)(states[index], slope)
            yield index, slope.numpy()

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
        return _HELD.one_of_all(scores, wanted)

    def _back(self, x, slope, *weights):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            y = self._layer(weights, x, tf.zeros((1, 1, 1, 1)))
        return tape.gradient(y, x, output_gradients=slope)

    def _sum_back(self, vectors, segment_ids, slope):
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(vectors)
            y = self._embed(vectors, segment_ids)
        return tape.gradient(y, vectors, output_gradients=slope)

    def _layer(self, weights, x, bias, details=(), **others):
        """Any encoder layer: the first one's structure, `weights` in the place of its own; the state, with
        `details` also the attention maps."""
        part = self.parts["layer_0"]
        state = [variable.value for variable in part.non_trainable_variables]
        found, _ = part.stateless_call(weights, state, x, bias, details=details, **others)
        if not details:
            return tf.cast(found, tf.float32)
        return tf.cast(found[0], tf.float32), tf.cast(found[1]["attentions"], tf.float32)

    def of_layer(self, name, step, signature, index):
        """A compiled step with the weights of layer `index` already given to it."""
        weights = [
            tf.convert_to_tensor(variable.value) for variable in self.parts[f"layer_{index}"].trainable_variables
        ]
        specs = tuple(tf.TensorSpec(weight.shape, weight.dtype) for weight in weights)
        function = self.compiled(name, step, (*signature, *specs))
        return lambda *arguments: function(*arguments, *weights)

    def _token_vectors(self, token_ids):
        return tf.cast(tf.gather(self.parts["embeddings"].token_table, token_ids), tf.float32)

    def _embed(self, vectors, segment_ids):
        part = self.parts["embeddings"]
        return tf.cast(part.project(part.norm(part.add_places(vectors, segment_ids))), tf.float32)

    def _mlm_logits(self, rows, norm=None):
        part = self.parts["mlm"]
        held = None if norm is None else lambda x: norm(part.norm, x)
        return part.logits(rows[None], self.parts["embeddings"].token_table, held)[0]

    def _mlm(self, rows, norm=None):
        """Log-probabilities [R, V]; norm: callable (the head's `LayerNorm`, what goes in) in its place."""
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
        return tf.nn.log_softmax(self.parts[head](self.parts["pooler"](x)))

    def _replaced(self, x):
        logits = tf.cast(self.parts["replaced"](x), tf.float32)
        return tf.math.log_sigmoid(tf.stack([-logits, logits], axis=-1))

    def _class_logits(self, x):
        head, settings = self.task.network.head, self.task.settings
        pooled = self.parts["pooler"](x) if self.task.family.needs_pooler(settings) else None
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


def _passing(stack, x):
    """`OpenModel.layer_activations` of one of the layers side by side, with its share of the state."""
    attended, maps = stack.attention(x, tf.zeros((1, 1, 1, 1)), details=_OF_HEADS)
    middle = stack.attention_norm(x + attended)
    wide = stack.feed_forward.activation(stack.feed_forward.intermediate(middle))
    added = stack.feed_forward.output_dense(wide)
    return {
        "input": x,
        **maps,
        "attention": attended,
        "attention_norm": middle,
        "feed_forward_wide": wide,
        "feed_forward": added,
        "feed_forward_norm": stack.feed_forward_norm(middle + added),
    }


def _floats(*shape):
    return tf.TensorSpec(shape, tf.float32)


_HELD = Held()
#: What attention computes for each head, [B, N, T, ...].
_OF_HEADS = ("queries", "keys", "values", "attentions")
_MAPS = _floats(None, None, None, None)
_PLACES = tf.TensorSpec((None, None), tf.bool)


def _ids(axes=2):
    return tf.TensorSpec((None,) * axes, tf.int32)
