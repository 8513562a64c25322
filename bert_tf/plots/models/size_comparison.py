"""One part of a model in every size of its architecture, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bert_tf.plots.ranked_bars import ranked_bars

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from bert_tf.explain.models.size_comparison import PartSizes


def part_parameters(part_sizes: PartSizes, dark: bool = False) -> go.Figure:
    """The parameters of the part in every size as bars."""
    names = [size.size for size in part_sizes.sizes]
    return ranked_bars(names, [size.parameters for size in part_sizes.sizes], "parameters", dark)


def part_flops_shares(part_sizes: PartSizes, dark: bool = False) -> go.Figure:
    """The share of the operations that the part has in every size as bars."""
    names = [size.size for size in part_sizes.sizes]
    return ranked_bars(names, [100 * size.flops_share for size in part_sizes.sizes], "percent of the work", dark)
