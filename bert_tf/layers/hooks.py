"""Hook points: named places in an encoder layer at which a function may read a value or replace it.

The names are TransformerLens' (Nanda and Bloom 2022). A layer writes its computation once, as a generator that yields
(name, value) at each hook point and goes on with the value that is sent back; `run_steps` runs it. Where no hook is
given this adds nothing to the traced graph.

B batch, T tokens, H hidden size, N heads, D head size, F intermediate size.
"""

from dataclasses import dataclass
from functools import partial

import keras


@dataclass(frozen=True)
class HookPoint:
    """A named value within an encoder layer.

    Attributes:
        name: str. shape: str, its axes as letters of this module's legend. meaning: str, in a few words.
    """

    name: str
    shape: str
    meaning: str

    @property
    def stacks_axis(self):
        """The axis along which layers that stand side by side have their shares of the value."""
        return 1 if "N" in self.shape else -1


#: In the order of the computation. BERT normalises after each residual sum (post-LN), and what is normalised goes on
#: as the residual stream: `resid_mid` and `resid_post` are therefore the stream after the normalisation, and
#: `resid_post` of a layer is `resid_pre` of the next. (TransformerLens' own BERT has both before the normalisation.)
HOOK_POINTS = (
    HookPoint("resid_pre", "BTH", "the hidden state that enters the layer"),
    HookPoint("q", "BNTD", "each head's queries"),
    HookPoint("k", "BNTD", "each head's keys"),
    HookPoint("v", "BNTD", "each head's values"),
    HookPoint("scores", "BNTT", "attention scores: q k^T / sqrt(D), with the masks added; rows are queries"),
    HookPoint("pattern", "BNTT", "attention probabilities, the softmax of the scores (before dropout)"),
    HookPoint("z", "BNTD", "each head's mean of the values, weighted by the pattern"),
    HookPoint("attn_out", "BTH", "what attention adds: z of all heads through the output matrix"),
    HookPoint("resid_mid", "BTH", "LayerNorm(resid_pre + attn_out), which the feed-forward block reads"),
    HookPoint("mlp_pre", "BTF", "the feed-forward block's units before the activation"),
    HookPoint("mlp_post", "BTF", "the feed-forward block's units after the activation"),
    HookPoint("mlp_out", "BTH", "what the feed-forward block adds"),
    HookPoint("resid_post", "BTH", "LayerNorm(resid_mid + mlp_out), the hidden state that leaves the layer"),
)
POINTS = {point.name: point for point in HOOK_POINTS}


def recording(values):
    """Hooks that store each value and change none.

    Args: values: dict from names of hook points to anything; the values are put in.
    """
    return {name: partial(values.__setitem__, name) for name in values}


def run_steps(stacks, hooks=None):
    """Compute a layer, or several that stand side by side, and call each hook on its value.

    Args:
        stacks: generators as this module describes, of S layers that pass the same points. The S shares of a value
            are joined for a hook, and what it gives is split again.
        hooks: dict from names of hook points to function(tensor) -> tensor to go on with, or None to go on with the
            value as it is.
    Returns:
        The value at the last point, joined: [B, T, H].
    Raises:
        ValueError: there is no such hook point.
    """
    hooks = hooks or {}
    for name in hooks:
        if name not in POINTS:
            raise ValueError(f"There is no hook point {name!r}; choose from {', '.join(POINTS)}.")
    values = [None] * len(stacks)
    while True:
        try:
            reached = [steps.send(value) for steps, value in zip(stacks, values)]
        except StopIteration:
            return _joined(values, -1)
        name, values = reached[0][0], [value for _, value in reached]
        if name in hooks:
            values = _hooked(hooks[name], values, POINTS[name].stacks_axis)


def _hooked(hook, values, axis):
    replaced = hook(_joined(values, axis))
    if replaced is None:
        return values
    replaced = keras.ops.cast(replaced, values[0].dtype)
    if len(values) == 1:
        return [replaced]
    # Slices, not `split`: when TensorFlow's graph optimiser fuses scaled queries, keys and mask into one product, it
    # takes the first output of a split for all of them (TensorFlow 2.21; the test of hooks that give back the value).
    size = values[0].shape[axis]
    starts = range(0, size * len(values), size)
    return [replaced[:, start : start + size] if axis == 1 else replaced[..., start : start + size] for start in starts]


def _joined(values, axis):
    return values[0] if len(values) == 1 else keras.ops.concatenate(values, axis=axis)


class HookedLayer(keras.layers.Layer):
    """What encoder layers have in common: subclasses give `stacks` and, of each of these, `steps`.

    Call arguments:
        x: [B, T, H]. bias: additive attention mask, as `MultiHeadSelfAttention` takes it.
        outputs: names of hook points whose values are returned as well.
        hooks: as `run_steps` takes them.

    Returns: [B, T, H]; with `outputs` also a dict from their names to tensors, as shaped in `HOOK_POINTS`.
    """

    def stacks(self):
        """The layers that stand side by side in this one, each with its share of the width and the heads."""
        return (self,)

    def steps(self, x, bias, training=False):
        """The computation of one stack, a generator that yields (name, value) at each of `HOOK_POINTS`."""
        raise NotImplementedError

    def call(self, x, bias, training=False, outputs=(), hooks=None):
        found = dict.fromkeys(outputs)
        stacks = self.stacks()
        shares = [x] if len(stacks) == 1 else keras.ops.split(x, len(stacks), axis=-1)
        steps = [stack.steps(share, bias, training) for stack, share in zip(stacks, shares)]
        y = run_steps(steps, _both(hooks, recording(found)))
        return (y, found) if outputs else y

    def compute_output_spec(self, x, bias, training=False, outputs=(), hooks=None):
        y = keras.KerasTensor(x.shape, dtype=self.compute_dtype)
        if not outputs:
            return y
        heads, width = self.settings["num_heads"], self.settings["hidden_size"]
        sizes = {"B": x.shape[0], "T": x.shape[1], "H": width, "N": heads, "D": width // heads}
        sizes["F"] = self.settings["intermediate_size"]
        return y, {
            name: keras.KerasTensor([sizes[axis] for axis in POINTS[name].shape], dtype=self.compute_dtype)
            for name in outputs
        }

    def get_config(self):
        return {**super().get_config(), **self.settings}


def _both(hooks, recorders):
    """Hooks that record what the first ones made of a value."""
    if not hooks or not recorders:
        return hooks or recorders

    def after(name, hook):
        def both(value):
            replaced = hook(value)
            recorders[name](value if replaced is None else keras.ops.cast(replaced, value.dtype))
            return replaced

        return both

    return {**recorders, **{name: after(name, hook) if name in recorders else hook for name, hook in hooks.items()}}
