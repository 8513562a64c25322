"""The figures of `plots.training.finetuning` as PNG files, drawn by Matplotlib: Plotly would need a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bert_tf.plots.theme import CATEGORIES, LIGHT_RAMP

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def _figure(width, height):
    # pyplot is not used: it keeps every figure in memory and looks for a display.
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=144, layout="constrained")


def learning_curve_png(
    path: str | Path, records: Sequence[dict[str, Any]], rounds: Sequence[dict[str, Any]], metric: str
) -> None:
    """Write `plots.training.finetuning.learning_curve` into a PNG file; the other arguments are the same."""
    measured = [record for record in rounds if metric in record["dev"]]
    figure = _figure(8, 3)
    axes = figure.subplots(1, 2 if measured else 1, squeeze=False)[0]
    steps, losses = [record["step"] for record in records], [record["loss"] for record in records]
    axes[0].plot(steps, losses, color=CATEGORIES[0])
    axes[0].set(xlabel="updates", ylabel="training loss")
    axes[0].set_ylim(bottom=0)
    if measured:
        axes[1].plot(
            [record["step"] for record in measured],
            [record["dev"][metric] for record in measured],
            marker="o",
            color=CATEGORIES[1],
        )
        axes[1].set(xlabel="updates", ylabel=f"dev {metric}")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def confusion_matrix_png(path: str | Path, labels: Sequence[str], counts: Sequence[Sequence[int]]) -> None:
    """Write `plots.training.finetuning.confusion_matrix` into a PNG file; the other arguments are the same."""
    from matplotlib.colors import LinearSegmentedColormap

    size = max(2.8, 0.35 * len(labels) + 1.5)
    figure = _figure(size + 0.8, size)
    axis = figure.subplots()
    shares = [[count / max(1, sum(row)) for count in row] for row in counts]
    axis.imshow(shares, cmap=LinearSegmentedColormap.from_list("ramp", LIGHT_RAMP), vmin=0, vmax=1)
    places = range(len(labels))
    # Matplotlib reads "$" as the start of a formula.
    names = [str(label).replace("$", r"\$") for label in labels]
    axis.set_xticks(places, names, rotation=45 if len(labels) > 4 else 0, ha="right" if len(labels) > 4 else "center")
    axis.set_yticks(places, names)
    axis.set(xlabel="predicted", ylabel="true")
    if len(labels) <= 20:
        for row in places:
            for column in places:
                axis.text(
                    column,
                    row,
                    counts[row][column],
                    ha="center",
                    va="center",
                    color="white" if shares[row][column] > 0.5 else "black",
                )
    figure.savefig(path)


def label_bars_png(path: str | Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write `plots.training.finetuning.label_bars` into a PNG file; the other arguments are the same."""
    figure = _figure(6, max(1.8, 0.6 + 0.28 * len(rows)))
    axis = figure.subplots()
    axis.barh(
        [str(row["label"]).replace("$", r"\$") for row in rows],
        [row["f1"] for row in rows],
        color=CATEGORIES[0],
    )
    axis.invert_yaxis()
    axis.set(xlabel="F1", xlim=(0, 1))
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
