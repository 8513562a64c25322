"""Hook points: named values in an encoder layer that a function can read or replace.

The names are those of TransformerLens (Nanda and Bloom 2022). A layer defines its computation as a generator that
yields (name, value) at each hook point and continues with the value that it is sent; `run_steps` runs the generator.
Without hooks, this adds nothing to the traced graph.

B batch, T tokens, H hidden size, N heads, D head size, F intermediate size.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any

import keras

from bert_tf.layers.common import Dense, Tensor, initializer
from bert_tf.layers.hook_points import POINTS

#: Functions by the names of their hook points: function(tensor) -> replacement, or None to keep the value.
Hooks = Mapping[str, Callable[[Tensor], Tensor | None]]
#: A computation that yields (name, value) at its hook points (`bert_tf.layers.hook_points`) and returns its result.
Steps = Generator[tuple[str, Tensor], Tensor, Tensor]


def recording(values: dict[str, Any]) -> Hooks:
    """Return hooks that store each value in a dict and change none.

    Args:
        values: dict. The keys are names of hook points; the hooks overwrite the values.
    """
    return {name: partial(values.__setitem__, name) for name in values}


def run_steps(stacks: Sequence[Steps], hooks: Hooks | None = None) -> Tensor:
    """Compute a layer, or several parallel stacks, and call each hook on its value.

    Args:
        stacks: sequence of generators as described in this module. All of them pass the same hook points. The values
            of all stacks are joined for a hook, and its result is split again.
        hooks: dict or None. Functions by the names of their hook points: function(tensor) -> replacement, or None to
            keep the value.

    Returns:
        [B, T, H]: the value at the last hook point, joined.

    Raises:
        ValueError: there is no hook point of this name.
    """
    hooks = hooks or {}
    for name in hooks:
        if name not in POINTS:
            raise ValueError(f"There is no hook point {name!r}; choose from {', '.join(POINTS)}.")
    values: list[Tensor] = [None] * len(stacks)
    while True:
        try:
            yielded = [steps.send(value) for steps, value in zip(stacks, values)]
        except StopIteration:
            return _joined(values, -1)
        name, values = yielded[0][0], [value for _, value in yielded]
        if name in hooks:
            values = _hooked(hooks[name], values, POINTS[name].stacks_axis)


def _hooked(hook, values, axis):
    replaced = hook(_joined(values, axis))
    if replaced is None:
        return values
    replaced = keras.ops.cast(replaced, values[0].dtype)
    if len(values) == 1:
        return [replaced]
    # Slices, not `split`: when TensorFlow's graph optimizer fuses scaled queries, keys and mask into one product, it
    # uses the first output of a split for all of them (TensorFlow 2.21; a test has hooks that return the value).
    size = values[0].shape[axis]
    starts = range(0, size * len(values), size)
    return [replaced[:, start : start + size] if axis == 1 else replaced[..., start : start + size] for start in starts]


def _joined(values, axis):
    return values[0] if len(values) == 1 else keras.ops.concatenate(values, axis=axis)


class HookedBlock(keras.layers.Layer):
    """The base class of the blocks of an encoder layer. Subclasses define `steps` and `call`.

    Args:
        settings: dict. The arguments of the subclass, from which Keras recreates it; "stddev" is the standard deviation
            of the initializer.
    """

    #: Whether the dense layers of the block have a bias.
    has_biases = True

    def __init__(self, settings: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.settings = settings

    def dense(self, size: int, name: str) -> Dense:
        """Return a dense layer of this block with `size` outputs."""
        return Dense(
            size,
            use_bias=self.has_biases,
            kernel_initializer=initializer(self.settings["stddev"]),
            dtype=self.dtype_policy,
            name=name,
        )

    def compute_output_spec(self, x: Tensor, *_: Any, **__: Any) -> keras.KerasTensor:
        return keras.KerasTensor(x.shape, dtype=self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


class HookedLayer(keras.layers.Layer):
    """The base class of encoder layers. Subclasses define `steps`, and `stacks` if they have several.

    Call arguments:
        x: float [B, T, H]. The hidden states.
        bias: float. The additive attention mask, as in `MultiHeadSelfAttention`.
        training: bool. Whether to apply dropout.
        outputs: sequence of str. The names of hook points whose values are also returned.
        hooks: dict or None. As in `run_steps`.

    Returns:
        [B, T, H]; with `outputs` also a dict of name -> tensor, with the shapes of `HOOK_POINTS`.
    """

    settings: dict[str, Any]

    @classmethod
    def settings_at(cls, config: Any, index: int) -> dict[str, Any]:
        """Return the arguments by which layer number `index`, from 0, differs from the others.

        Args:
            config: `BertConfig`. The settings of the model.
            index: int. The layer.
        """
        return {}

    def shared(self) -> dict[str, Any]:
        """Return the arguments with which another layer of the same model shares sublayers of this one."""
        return {}

    @property
    def structure(self) -> tuple:
        """What the layer computes apart from its weights; equal for layers that can be exchanged with their weights."""
        return ()

    def stacks(self) -> "tuple[HookedLayer, ...]":
        """Return the parallel stacks of this layer, which divide the width and the heads among them."""
        return (self,)

    def steps(self, x: Tensor, bias: Tensor, training: bool = False) -> Steps:
        """Compute one stack as a generator that yields (name, value) at each of `HOOK_POINTS`."""
        raise NotImplementedError

    def finish(self, x: Tensor) -> Tensor:
        """Return the layer's output for the residual sum x [B, T, H] if its blocks add nothing."""
        return x

    def call(
        self,
        x: Tensor,
        bias: Tensor,
        training: bool = False,
        outputs: Sequence[str] = (),
        hooks: Hooks | None = None,
    ) -> Any:
        values: dict[str, Any] = dict.fromkeys(outputs)
        stacks = self.stacks()
        inputs = [x] if len(stacks) == 1 else keras.ops.split(x, len(stacks), axis=-1)
        steps = [stack.steps(stack_input, bias, training) for stack, stack_input in zip(stacks, inputs)]
        y = run_steps(steps, _both(hooks, recording(values)))
        return (y, values) if outputs else y

    def compute_output_spec(
        self,
        x: Tensor,
        bias: Tensor,
        training: bool = False,
        outputs: Sequence[str] = (),
        hooks: Hooks | None = None,
    ) -> Any:
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

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.settings}


def _both(hooks, recorders):
    """Hooks that replace a value and then record the replaced value."""
    if not hooks or not recorders:
        return hooks or recorders

    def then_record(name, hook):
        def both(value):
            replaced = hook(value)
            recorders[name](value if replaced is None else keras.ops.cast(replaced, value.dtype))
            return replaced

        return both

    combined = {name: then_record(name, hook) if name in recorders else hook for name, hook in hooks.items()}
    return {**recorders, **combined}
