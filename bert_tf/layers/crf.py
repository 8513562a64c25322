"""A linear-chain conditional random field over the labels of a sequence.

B batch, T tokens, K labels.

Source: Lafferty, McCallum and Pereira 2001; the forward recursion as in Rabiner 1989,
section III A, in logarithms.
"""

import keras

from bert_tf.layers.common import initializer, register


@register
class LinearChainCRF(keras.layers.Layer):
    """Scores of label sequences: the model's logits, plus a learnt score for each label after another.

    Tokens that the mask leaves out are jumped: the label after them follows the one before them.

    Args:
        labels: K. stddev: of the initialiser of the transitions.

    Call arguments:
        logits: [B, T, K].

    Returns: dict of logits [B, T, K] and transitions [B, K + 2, K], both float32: row i the scores of going
        from label i, row K those of beginning with a label, row K + 1 those of ending with it; the same in
        every sequence, as an output of a model has a batch axis.
    """

    def __init__(self, labels, stddev=0.02, **kwargs):
        super().__init__(**kwargs)
        self.settings = {"labels": labels, "stddev": stddev}

    def build(self, *_):
        labels = self.settings["labels"]
        self.transitions = self.add_weight(
            name="transitions",
            shape=(labels + 2, labels),
            autocast=False,
            initializer=initializer(self.settings["stddev"]),
        )

    def call(self, logits):
        ops = keras.ops
        transitions = ops.expand_dims(ops.convert_to_tensor(self.transitions), 0)
        return {
            "logits": ops.cast(logits, "float32"),
            "transitions": ops.tile(transitions, (ops.shape(logits)[0], 1, 1)),
        }

    def compute_output_spec(self, logits):
        labels = self.settings["labels"]
        return {
            "logits": keras.KerasTensor(logits.shape, dtype="float32"),
            "transitions": keras.KerasTensor((logits.shape[0], labels + 2, labels), dtype="float32"),
        }

    def get_config(self):
        return {**super().get_config(), **self.settings}


def crf_negative_log_likelihood(logits, transitions, labels, mask):
    """Minus the logarithm of the probability of the labels, of each sequence.

    Args:
        logits: float [B, T, K]. transitions: float [K + 2, K], see `LinearChainCRF`.
        labels: int32 [B, T], anything where the mask is 0. mask: [B, T], 1 for tokens of the chain.

    Returns: float32 [B]; 0 for a sequence without a token in the mask.
    """
    mask = keras.ops.cast(mask, "float32")
    return crf_log_partition(logits, transitions, mask) - _path_score(logits, transitions, labels, mask)


def crf_log_partition(logits, transitions, mask):
    """The logarithm of the sum over all label sequences of exp(score), exactly: [B].

    Args: as `crf_negative_log_likelihood`.
    """
    ops = keras.ops
    mask = ops.cast(mask, "float32")
    count = logits.shape[-1]
    between, begin, end = transitions[:count], transitions[count], transitions[count + 1]
    empty = ops.sum(mask, axis=1) == 0

    def forward(carry, step):
        scores, begun = carry  # [B, K], [B, 1]
        logit, real = step  # [B, K], [B]
        real = ops.expand_dims(real, -1)
        follow = ops.logsumexp(ops.expand_dims(scores, -1) + between, axis=1)  # [B, K]
        moved = ops.where(begun > 0, follow, ops.broadcast_to(begin, ops.shape(follow))) + logit
        return ops.where(real > 0, moved, scores), ops.maximum(begun, real)

    start = (ops.zeros_like(logits[:, 0]), ops.zeros_like(mask[:, :1]))
    scores, _ = _fold(forward, start, (ops.transpose(logits, (1, 0, 2)), ops.transpose(mask)))
    return ops.where(empty, 0.0, ops.logsumexp(scores + end, axis=-1))


def _path_score(logits, transitions, labels, mask):
    """The score of the labels given: [B]."""
    ops = keras.ops
    count = logits.shape[-1]
    labels = ops.where(mask > 0, ops.cast(labels, "int32"), 0)
    chosen = ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1)[..., 0] * mask
    # The label before each token in the chain, `count` (the row of beginnings) where there is none: the last
    # place at or before the token to its left that the mask keeps.
    places = ops.cast(ops.arange(1, mask.shape[1] + 1), "float32") * mask
    so_far = ops.tril(ops.ones((mask.shape[1], mask.shape[1])))
    reached = ops.cast(ops.max(so_far * ops.expand_dims(places, 1), axis=-1), "int32")  # [B, T], 0 for none so far
    padded = ops.pad(labels, ((0, 0), (1, 0)), constant_values=count)  # place p's label at p
    previous = ops.take_along_axis(padded, ops.pad(reached, ((0, 0), (1, 0)))[:, :-1], axis=1)
    flat = ops.reshape(transitions, (-1,))
    steps = ops.take(flat, previous * count + labels) * mask
    last = ops.take_along_axis(padded, reached[:, -1:], axis=1)[:, 0]
    ends = ops.where(last < count, ops.take(transitions[count + 1], ops.minimum(last, count - 1)), 0.0)
    return ops.sum(chosen + steps, axis=1) + ends


def _fold(step, carry, items):
    """The carry, a tuple of tensors, after `step(carry, item)` for each item of the tensors' first axis."""
    ops = keras.ops
    if keras.backend.backend() != "tensorflow":
        return ops.scan(lambda carry, item: (step(carry, item), None), carry, items)[0]
    # XLA takes the gradient of a loop only if it is told how long it runs, which `ops.scan` leaves out.
    count = items[0].shape[0] or ops.shape(items[0])[0]
    return ops.while_loop(
        lambda index, *_: index < count,
        lambda index, *carry: (index + 1, *step(carry, [ops.take(item, index, axis=0) for item in items])),
        (0, *carry),
        maximum_iterations=count,
    )[1:]
