"""The tables of the page Architecture: the loaded model, or one box of it, beside every size of its architecture."""

import streamlit as st

from bert_tf.explain.models.architecture import all_sizes
from bert_tf.explain.models.size_comparison import PartSize, PartSizes, SizeComparison, loaded_size
from ui.elements import tables
from ui.session import state
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import dimensions, title

_COUNTED = ("Parameters", "Embeddings", "Encoder", "Heads")
_SPENT = ("Attention %", "FF %", "Other %")
_BOX_SHARE = "The share of the operations of one forward pass over this text, all layers together."
_SHARE = "The share of the operations of one pass. Other: the heads, and the projection of narrow embeddings."


def draw(shared, trace, boxes):
    """Draw the table of sizes; boxes: ``Part``s of the loaded model for this trace."""
    inputs.heading("Beside the other sizes")
    config, masks = shared.config, max(len(trace.masks), 1)
    loaded = loaded_size(_loaded_name(shared), config, boxes)
    comparison = SizeComparison(trace.length, masks, (*all_sizes(config, trace.length, masks), loaded))
    table = _size_table(comparison.sizes)
    export.save("sizes", comparison, trace=trace)
    figures.show(
        "Parameters of every size",
        comparison.figure(dark=state.is_dark()),
        config=export.plot_config("sizes"),
        key="w_architecture_sizes",
    )
    tables.show(
        table,
        hide_index=True,
        width="stretch",
        key="w_architecture_table",
        column_config={
            "Size": st.column_config.TextColumn(pinned=True, width=195),
            "FF": st.column_config.NumberColumn(help="The inner size of the feed-forward blocks."),
            "E": st.column_config.NumberColumn(help="The size of the embeddings, before they are projected."),
            **{name: st.column_config.NumberColumn(format="localized") for name in _COUNTED},
            **{name: st.column_config.NumberColumn(format="%.1f", help=_SHARE) for name in _SPENT},
            "GFLOP": st.column_config.NumberColumn(
                format="%.2f", help="The operations of the matrix products, in 10⁹."
            ),
        },
    )
    st.caption(
        f"{config.architecture.title}'s sizes with this model's vocabulary of {config.vocab_size:,}: layers × hidden "
        f"size × heads, parameters by part, and the share of each part in the work on these {trace.length} tokens"
        f"{f' with {masks} masks' if masks > 1 else ''}."
    )


def draw_box(shared, trace, boxes, part):
    """Draw the table of one box in every size that has it.

    Args:
        boxes: ``Part``s of the loaded model for this trace. part: the open ``Part``.
    """
    rows = [
        PartSize.of(size.name, size.parts, size_part)
        for size in all_sizes(shared.config, trace.length, max(len(trace.masks), 1))
        for size_part in size.parts
        if size_part.name == part.name
    ]
    if not rows:
        return  # The head of a task is in no pre-trained model.
    rows.append(PartSize.of(_loaded_name(shared), boxes, part))
    inputs.heading("This box in every size")
    export.save("box-sizes", PartSizes(part.name, trace.length, tuple(rows)), trace=trace)
    tables.show(
        {
            "Size": [row.size for row in rows],
            "Output": [dimensions(row.shape) for row in rows],
            "Parameters": [row.parameters for row in rows],
            "Work %": [100 * row.flops_share for row in rows],
        },
        hide_index=True,
        width="stretch",
        key="w_architecture_box_sizes",
        column_config={
            "Size": st.column_config.TextColumn(width=175),
            "Parameters": st.column_config.NumberColumn(format="localized"),
            "Work %": st.column_config.NumberColumn(format="%.1f", help=_BOX_SHARE),
        },
    )


def _loaded_name(shared):
    return f"{title(shared.name)} (loaded)"


def _size_table(sizes):
    """The columns of the table of `ArchitectureSize`s."""
    table, narrow = [], any(size.config.has_embedding_projection for size in sizes)
    for size in sizes:
        config, counts, flops = size.config, size.parameters, size.flops
        work = sum(flops.values())
        attention, wide = flops["attention"], flops["feed_forward"]
        row = {
            "Size": size.name,
            "L × H × A": f"{config.num_hidden_layers} × {config.hidden_size:,} × {config.num_attention_heads}",
            "FF": config.intermediate_size,
            **({"E": config.embedding_width} if narrow else {}),
            "Parameters": counts["total"],
            "Embeddings": counts["embeddings"],
            "Encoder": counts["encoder"],
            "Heads": counts["total"] - counts["embeddings"] - counts["encoder"],
        }
        shares = zip(_SPENT, (attention, wide, work - attention - wide))
        table.append({**row, **{title: 100 * spent / work for title, spent in shares}, "GFLOP": work / 1e9})
    return {column: [row[column] for row in table] for column in table[0]}
