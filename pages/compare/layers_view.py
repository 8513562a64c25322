"""The logit lens of the page Side by side: its table, and the classes of fine-tuned models after every layer."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import aligned_layers, class_lens
from bert_tf.explain.models.compared_layers import ComparedClassLayers, ComparedScores, LayerAnswers
from bert_tf.inference.words import read_texts
from bert_tf.plots.numbers import percent
from pages.compare import comparison_inputs
from ui.elements import tables
from ui.session import state, task_models
from ui.session.session_cache import cached
from ui.widgets import export, figures, inputs, targets, task_predictions
from ui.widgets.formatting import escape_markdown

#: The predictions of a fine-tuned model after every layer.
CLASS_LENS = Call.of(class_lens)


def table(pair, rows, key):
    """Draw the likeliest word or class of both sides after each layer.

    Args:
        pair: two ``ComparisonInput``s. rows: ``LayerAnswers``. key: of the widget.
    """
    tables.show(
        {
            "Layers": [f"{row.hidden_state_a} | {row.hidden_state_b}" for row in rows],
            "one": [row.answer_a for row in rows],
            "p": [percent(row.probability_a) for row in rows],
            " ": ["" if row.same else "≠" for row in rows],
            "other": [row.answer_b for row in rows],
            "q": [percent(row.probability_b) for row in rows],
        },
        hide_index=True,
        width="stretch",
        height=tables.height(len(rows), 470),
        key=key,
        column_config={
            "Layers": st.column_config.TextColumn(width=60),
            "one": st.column_config.TextColumn(pair[0].name, width=130),
            "other": st.column_config.TextColumn(pair[1].name, width=130),
            "p": st.column_config.TextColumn("", width=65),
            " ": st.column_config.TextColumn(width=35),
            "q": st.column_config.TextColumn("", width=65),
        },
    )


def lacking(pair):
    """A sentence: why there is no head to apply to the layers of both sides."""
    no_words = [side.name for side in pair if "mlm" not in side.shared.bert.heads]
    no_classes = [side.name for side in pair if targets.classes(side.shared) is None]
    if not no_words:
        return "The logit lens needs a word that is hidden on both sides."
    return (
        "The logit lens applies the same kind of head to the layers of both sides: "
        f"{_have_no(no_words, 'head for masked words')}, {_have_no(no_classes, 'classes')}."
    )


def _have_no(names, missing):
    names = list(dict.fromkeys(names))
    return f"{' and '.join(map(escape_markdown, names))} {'have' if len(names) > 1 else 'has'} no {missing}"


def classes(pair):
    """Draw the predictions of two fine-tuned classifiers' heads on every layer's hidden state.

    Returns:
        whether they are drawn; if not, the page says what is missing.
    """
    settings = [targets.classes(side.shared) for side in pair]
    problem = next(
        filter(None, (task_predictions.problem(task, side.text_a, side.text_b) for task, side in zip(settings, pair))),
        "",
    )
    if problem:
        st.info(problem, icon=":material/touch_app:")
        return False
    if settings[0].regression != settings[1].regression:
        st.info("One side predicts a score, the other classes: they cannot be compared.", icon=":material/block:")
        return False
    lenses = [_lens(side, task) for side, task in zip(pair, settings)]
    texts = [task_models.texts_of_task(task, side.text_a, side.text_b) for side, task in zip(pair, settings)]
    if settings[0].regression:
        _scores(pair, lenses, texts)
    else:
        _classes(pair, lenses, texts)
    return True


def _lens(side, settings):
    key = (side.shared.name, state.view().precision, side.text_a, side.text_b)

    def make():
        (packed,) = task_models.packed(side.shared, settings, side.text_a, side.text_b)
        record = task_models.record(settings, side.text_a, side.text_b)
        texts = read_texts(packed, record["text_a"], record.get("text_b", ""))
        return side.shared.run(CLASS_LENS.run, side.shared.trace(*texts, (), hidden_states=True))

    return cached(f"compare_class_lens_{side.key}", key, make)


def _scores(pair, lenses, texts):
    scores = (lens.values[1:, 0] for lens in lenses)
    result = ComparedScores(_models(pair), tuple(_names(pair)), *scores)
    inputs.heading("The score after each layer")
    comparison_inputs.save("scores-by-layer-compared", result, pair, texts)
    figures.show(
        "The score after each layer",
        result.figure(dark=state.is_dark()),
        key="w_side_by_side_class_scores",
        config=export.plot_config("scores"),
    )


def _models(pair):
    return tuple(side.shared.name for side in pair)


def _names(pair):
    """A different name for each side."""
    same = pair[0].name == pair[1].name
    return [side.key.upper() if same else side.name for side in pair]


def class_rows(lenses, layers):
    """The likeliest classes of two ``ClassLogitLens``es at the same relative depth, the embeddings first.

    Returns: list of tuples with the fields of ``LayerAnswers``.
    """
    rows = []
    for states in [(0, 0), *((layer_a + 1, layer_b + 1) for layer_a, layer_b in layers)]:
        best = [
            (lens.labels[int(lens.values[at].argmax())], float(lens.values[at].max()))
            for lens, at in zip(lenses, states)
        ]
        rows.append((*states, *best[0], *best[1], best[0][0] == best[1][0]))
    return rows


def _classes(pair, lenses, texts):
    layers = aligned_layers(*(side.shared.config.num_hidden_layers for side in pair))
    rows = LayerAnswers.rows(class_rows(lenses, layers))
    curves = {
        f"{name}: {label}": lens.values[:, lens.labels.index(label)]
        for label in dict.fromkeys((rows[-1].answer_a, rows[-1].answer_b))
        for name, lens in zip(_names(pair), lenses)
        if label in lens.labels
    }
    labels, values = ([getattr(lens, name) for lens in lenses] for name in ("labels", "values"))
    result = ComparedClassLayers(_models(pair), rows, curves, *labels, *values)
    inputs.heading("The likeliest class after each layer")
    comparison_inputs.save("classes-by-layer-compared", result, pair, texts)
    left, right = st.columns([6, 5], gap="medium")
    with left:
        table(pair, rows, "w_side_by_side_class_layers")
    with right:
        figures.show(
            "Each side's class after every layer",
            result.figure(dark=state.is_dark()),
            key="w_side_by_side_class_curves",
            config=export.plot_config("classes-by-layer"),
        )
    st.caption(
        "Each side's own task head on every layer's hidden state, with nothing hidden; ≠ marks layers whose "
        "likeliest classes differ. The head was trained on the last layer alone."
    )
