"""The predicted classes of a file's rows on the page Dataset: counts, confusion matrix, precision and recall."""

from collections import Counter

import streamlit as st

from bert_tf.explain import class_curve, curve_labels
from bert_tf.explain.datasets.confusion import ConfusionMatrix
from bert_tf.plots.datasets.class_curves import precision_recall_figure, roc_figure
from ui.session import state
from ui.shell import snippets
from ui.widgets import export, figures, inputs
from ui.widgets.formatting import count, escape_markdown, share

_HALF = 0.5
_MOST_NAMED = 8  # classes, or labels of a file, listed in a sentence


def say_predicted(results, classes):
    """Write how many rows have each predicted class, and which labels of the file the model does not know."""
    counts = Counter(result.predicted for result in results if isinstance(result.predicted, str))
    lines = []
    if counts:
        named = ", ".join(
            f"{escape_markdown(label or 'none')} {number:,}" for label, number in counts.most_common(_MOST_NAMED)
        )
        lines.append(f"Predicted classes: {named}{' and others' if len(counts) > _MOST_NAMED else ''}.")
    if classes.rows:
        lines.append(f"{count(classes.rows, 'row')} with a label can be compared.")
    if classes.unknown:
        named = ", ".join(escape_markdown(label[:40]) for label in list(classes.unknown)[:_MOST_NAMED])
        number = sum(classes.unknown.values())
        have = "has" if number == 1 else "have"
        lines.append(f"{count(number, 'row')} {have} a label that is none of the model's: {named}.")
    if lines:
        st.caption(" ".join(lines))


def confusion(classes, heading, name="confusion", key="w_dataset_confusion"):
    """Draw the confusion matrix.

    Args:
        classes: ``ClassSummary`` with a confusion matrix. heading: the title. name: of the saved files.
        key: of the figure.
    """
    matrix = ConfusionMatrix.of(classes)
    inputs.heading(escape_markdown(heading))
    export.save(name, matrix)
    figures.show(
        "How often each true class was given each class",
        matrix.figure(dark=state.is_dark()),
        config=export.plot_config(name),
        key=key,
    )


def curves(shared, results, subset=""):
    """Draw the curves of one class, and its precision and recall at a threshold of its probability.

    Nothing is drawn if no class has labelled rows.

    Args:
        shared: ``SharedModel``. results: ``RowResult``s with classes.
        subset: the name of the subset of these rows; "" for all rows of the file.
    """
    labels = curve_labels(shared.bert, results)
    if not labels:
        return
    label = state.setting("dataset.curve", labels[-1])
    curve = class_curve(shared.bert, results, label if label in labels else labels[-1])
    inputs.heading("At another threshold" + (f", in “{escape_markdown(subset)}”" if subset else ""))
    export.save("class-curve", curve, {"model": shared.name})
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.selectbox(
            "Class",
            labels,
            width=260,
            **state.bind_setting("dataset.curve", "w_dataset_curve", labels[-1], labels),
        )
        threshold = st.slider(
            "Predicted from a probability of",
            0.0,
            1.0,
            step=0.01,
            width=320,
            **state.bind_setting("dataset.threshold", "w_dataset_threshold", _HALF, state.Between(0.0, 1.0), ()),
        )
    at, dark = curve.at(threshold), state.is_dark()
    left, right = st.columns(2, gap="large")
    with left:
        figures.show(
            "Precision over recall",
            precision_recall_figure(curve, at, dark),
            key="w_dataset_precision",
            config=export.plot_config("precision-recall"),
        )
    with right:
        figures.show(
            "Recall over false positives",
            roc_figure(curve, at, dark),
            key="w_dataset_roc",
            config=export.plot_config("roc"),
        )
    st.caption(_summary(curve, at))
    snippets.add(curve=(curve.label, at.threshold))


def _summary(curve, at):
    """The caption of the curves: the scores of the class, and those at the threshold ``at``."""
    labelled = int(curve.is_positive.sum())
    has = "has" if labelled == 1 else "have"
    predicted, best = at.true_positives + at.false_positives, curve.at(curve.best)
    right = f", {at.true_positives:,} of them correctly (precision {share(at.precision)})" if predicted else ""
    return (
        f"“{escape_markdown(curve.label)}” against all other classes, by its probability,"
        f" in {count(len(curve.is_positive), 'row')}, of which {labelled:,} {has} this label:"
        f" average precision {curve.average_precision:.3f}, area under the ROC curve "
        f"{curve.auc:.3f}. With a threshold of {share(at.threshold)} the class is predicted for "
        f"{count(predicted, 'row')}{right}; recall {share(at.recall)}, F1 {at.f1:.3f}. F1 is highest, {best.f1:.3f}, "
        f"with a threshold of {share(best.threshold)}. A threshold that was chosen on these rows looks better on them "
        "than on others: measure it on other rows."
    )
