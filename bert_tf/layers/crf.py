"""A linear-chain conditional random field over the labels of a sequence.

B batch, T tokens, K labels.

Sources: Lafferty, McCallum and Pereira 2001; for the forward recursion, here in logarithms, Rabiner 1989, section
III A.
"""

from typing import Any

import keras

from bert_tf.layers.common import Tensor, initializer, register


@register
class LinearChainCRF(keras.layers.Layer):
    """Scores of label sequences: the model's logits and a learned score for each transition between two labels.

    Tokens outside the mask are skipped: the label after them follows the label before them.

    Args:
        labels: int. The number K of labels.
        stddev: float. The standard deviation of the initializer of the transitions.

    Call arguments:
        logits: float [B, T, K].

    Returns:
        Dict with "logits", float32 [B, T, K], and "transitions", float32 [B, K + 2, K]: row i has the scores of the
        transitions from label i, row K the scores of the first label, row K + 1 the scores of the last label. The
        transitions are repeated for every sequence, because an output of a model has a batch axis.
    """

    def __init__(self, labels: int, stddev: float = 0.02, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings: dict[str, Any] = {"labels": labels, "stddev": stddev}

    def build(self, *_: Any) -> None:
        labels = self.settings["labels"]
        self.transitions = self.add_weight(
            name="transitions",
            shape=(labels + 2, labels),
            autocast=False,
            initializer=initializer(self.settings["stddev"]),
        )

    def call(self, logits: Tensor) -> dict[str, Tensor]:
        ops = keras.ops
        transitions = ops.expand_dims(ops.convert_to_tensor(self.transitions), 0)
        return {
            "logits": ops.cast(logits, "float32"),
            "transitions": ops.tile(transitions, (ops.shape(logits)[0], 1, 1)),
        }

    def compute_output_spec(self, logits: Tensor) -> dict[str, keras.KerasTensor]:
        labels = self.settings["labels"]
        return {
            "logits": keras.KerasTensor(logits.shape, dtype="float32"),
            "transitions": keras.KerasTensor((logits.shape[0], labels + 2, labels), dtype="float32"),
        }

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def crf_negative_log_likelihood(logits: Tensor, transitions: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Return the negative log-likelihood of the labels of each sequence.

    Args:
        logits: float [B, T, K].
        transitions: float [K + 2, K]. See `LinearChainCRF`.
        labels: int32 [B, T]. The values outside the mask are ignored.
        mask: [B, T]. 1 for the tokens of the chain.

    Returns:
        float32 [B]; 0 for a sequence without a token in the mask.
    """
    mask = keras.ops.cast(mask, "float32")
    return crf_log_partition(logits, transitions, mask) - _path_score(logits, transitions, labels, mask)


def crf_log_partition(logits: Tensor, transitions: Tensor, mask: Tensor) -> Tensor:
    """Return the exact logarithm of the sum of exp(score) over all label sequences.

    Args:
        logits, transitions, mask: As in `crf_negative_log_likelihood`.

    Returns:
        float32 [B].
    """
    ops = keras.ops
    mask = ops.cast(mask, "float32")
    count = logits.shape[-1]
    between, begin, end = transitions[:count], transitions[count], transitions[count + 1]
    empty = ops.sum(mask, axis=1) == 0

    def forward(carry, step):
        scores, has_begun = carry  # [B, K], [B, 1]
        logit, in_chain = step  # [B, K], [B]
        in_chain = ops.expand_dims(in_chain, -1)
        follow = ops.logsumexp(ops.expand_dims(scores, -1) + between, axis=1)  # [B, K]
        next_scores = ops.where(has_begun > 0, follow, ops.broadcast_to(begin, ops.shape(follow))) + logit
        return ops.where(in_chain > 0, next_scores, scores), ops.maximum(has_begun, in_chain)

    start = (ops.zeros_like(logits[:, 0]), ops.zeros_like(mask[:, :1]))
    scores, _ = _fold(forward, start, (ops.transpose(logits, (1, 0, 2)), ops.transpose(mask)))
    return ops.where(empty, 0.0, ops.logsumexp(scores + end, axis=-1))


def _path_score(logits, transitions, labels, mask):
    """The score of the labels: [B]."""
    ops = keras.ops
    count = logits.shape[-1]
    labels = ops.where(mask > 0, ops.cast(labels, "int32"), 0)
    label_logits = ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1)[..., 0] * mask
    # `latest` is the position, counted from 1, of the last token of the chain up to each token; 0 if there is none.
    # `previous` is the label before each token in the chain; `count`, the row of first labels, if there is none.
    positions = ops.cast(ops.arange(1, mask.shape[1] + 1), "float32") * mask
    so_far = ops.tril(ops.ones((mask.shape[1], mask.shape[1])))
    latest = ops.cast(ops.max(so_far * ops.expand_dims(positions, 1), axis=-1), "int32")  # [B, T]
    padded = ops.pad(labels, ((0, 0), (1, 0)), constant_values=count)  # the label of position p is at index p
    previous = ops.take_along_axis(padded, ops.pad(latest, ((0, 0), (1, 0)))[:, :-1], axis=1)
    flat = ops.reshape(transitions, (-1,))
    steps = ops.take(flat, previous * count + labels) * mask
    last = ops.take_along_axis(padded, latest[:, -1:], axis=1)[:, 0]
    ends = ops.where(last < count, ops.take(transitions[count + 1], ops.minimum(last, count - 1)), 0.0)
    return ops.sum(label_logits + steps, axis=1) + ends


def _fold(step, carry, items):
    """The carry, a tuple of tensors, after `step(carry, item)` for each item along the first axis of the tensors."""
    ops = keras.ops
    if keras.backend.backend() != "tensorflow":
        return ops.scan(lambda carry, item: (step(carry, item), None), carry, items)[0]
    # XLA needs the maximum number of iterations for the gradient of a loop, and `ops.scan` does not pass it.
    count = items[0].shape[0] or ops.shape(items[0])[0]
    return ops.while_loop(
        lambda index, *_: index < count,
        lambda index, *carry: (index + 1, *step(carry, [ops.take(item, index, axis=0) for item in items])),
        (0, *carry),
        maximum_iterations=count,
    )[1:]
