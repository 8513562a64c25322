"""The table of the Architecture page: the loaded model beside every size of its kind."""

import streamlit as st

from bert_tf.explain.models.architecture import all_sizes
from bert_tf.parameters import LAYER_PARTS
from bert_tf.plots.interventions.ablation import ranked_bars
from bert_tf.plots.models.architecture import sizes
from ui.shell import frame
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import dimensions, title

_COUNTED = ("Parameters", "Embeddings", "Encoder", "Heads")
_SPENT = ("Attention %", "FF %", "Other %")
_BOX = ("size", "gives", "parameters", "operations", "percent_of_the_work")
_BOX_SHARE = "Share of the operations of one pass over this text, all layers together."
_SHARE = "Share of the work, the operations of one pass. Other: the heads, and what widens narrow embeddings."


def draw(shared, trace, boxes):
    """Draw the sizes; boxes: ``Part``s of the loaded model for this trace."""
    heading = inputs.heading("Beside the other sizes")
    config, masks = shared.config, max(len(trace.masks), 1)
    rows = [(one.name, one.config, one.parameters, one.flops) for one in all_sizes(config, trace.length, masks)]
    rows.append((f"{title(shared.name)} (loaded)", config, *_loaded(boxes)))
    parameter_counts = [
        (name, {part: n for part, n in counts.items() if part != "total"}) for name, _, counts, _ in rows
    ]
    table = _size_table(rows)
    with heading:
        export.menu(
            "sizes",
            tuple(table),
            lambda: zip(*table.values()),
            lambda: {"tokens": trace.length, "masks": masks, "sizes": table},
            lambda: sizes(parameter_counts),
        )
    figures.show(
        "Parameters of every size",
        sizes(parameter_counts, frame.is_dark()),
        config=export.plot_config("sizes"),
        key="w_architecture_sizes",
    )
    st.dataframe(
        table,
        hide_index=True,
        width="stretch",
        key="w_architecture_table",
        column_config={
            "Size": st.column_config.TextColumn(pinned=True, width=195),
            "FF": st.column_config.NumberColumn(help="Inner size of the feed-forward blocks."),
            "E": st.column_config.NumberColumn(help="Size of the embeddings, before they are widened."),
            **{name: st.column_config.NumberColumn(format="localized") for name in _COUNTED},
            **{name: st.column_config.NumberColumn(format="%.1f", help=_SHARE) for name in _SPENT},
            "GFLOP": st.column_config.NumberColumn(format="%.3g", help="Operations of the matrix products, in 10⁹."),
        },
    )
    st.caption(
        f"{config.architecture.title}'s sizes with this model's vocabulary of {config.vocab_size:,}: layers × hidden "
        f"size × heads, parameters by part, and how the work on these {trace.length} tokens"
        f"{f' with {masks} masks' if masks > 1 else ''} is shared out."
    )


def draw_box(shared, trace, boxes, part):
    """Draw what one box is in every size; of a head, in those that have it.

    Args:
        boxes: ``Part``s of the loaded model for this trace. part: the one that is open.
    """
    sized = all_sizes(shared.config, trace.length, max(len(trace.masks), 1))
    rows = [_box_row(one.name, one.parts, own) for one in sized for own in one.parts if own.name == part.name]
    if not rows:
        return  # the head of a task, which pre-training knows nothing of
    rows.append(_box_row(f"{title(shared.name)} (loaded)", boxes, part))
    names = [row[0] for row in rows]
    with inputs.heading("This box in every size"):
        export.menu(
            "box-sizes",
            _BOX,
            lambda: rows,
            lambda: {"box": part.name, "tokens": trace.length, "sizes": [dict(zip(_BOX, row)) for row in rows]},
            {
                "Parameters": lambda: ranked_bars(names, [row[2] for row in rows], "parameters"),
                "Share of the work": lambda: ranked_bars(names, [row[4] for row in rows], "percent of the work"),
            },
        )
    size, gives, parameters, _, share = zip(*rows)
    st.dataframe(
        {"Size": size, "Gives": gives, "Parameters": parameters, "Work %": share},
        hide_index=True,
        width="stretch",
        key="w_architecture_box_sizes",
        column_config={
            "Size": st.column_config.TextColumn(width=175),
            "Parameters": st.column_config.NumberColumn(format="localized"),
            "Work %": st.column_config.NumberColumn(format="%.1f", help=_BOX_SHARE),
        },
    )


def _box_row(name, parts, part):
    work = sum(one.flops for one in parts)
    return name, dimensions(part.shape), part.parameters, part.flops, 100 * part.flops / work


def _loaded(boxes):
    """Parameters and operations of the loaded model by part, as the sizes have theirs."""
    ends = [part for part in boxes if part.name not in ("embeddings", *LAYER_PARTS)]
    inside = [part for part in boxes if part.name in LAYER_PARTS]
    counts = {
        "embeddings": boxes[0].parameters,
        "encoder": sum(part.parameters for part in inside),
        **{part.name: part.parameters for part in ends},
    }
    flops = {part.name: part.flops for part in (boxes[0], *inside, *ends)}
    return {**counts, "total": sum(counts.values())}, flops


def _size_table(rows):
    """Columns of the table of sizes."""
    table, narrow = [], any(config.has_embedding_projection for _, config, _, _ in rows)
    for name, config, counts, flops in rows:
        work = sum(flops.values())
        attention, wide = flops["attention"], flops["feed_forward"]
        row = {
            "Size": name,
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
