"""Fine-tuning changes: the predictions and the attention of a model before and after fine-tuning."""

import numpy as np
import streamlit as st

from bert_tf.analyses import Call
from bert_tf.errors import NotComparable
from bert_tf.explain import attention_divergence
from bert_tf.explain.attention.attention_divergence import require_same_tokens
from bert_tf.explain.models.before_after import AnswerChange, BeforeAndAfter
from bert_tf.explain.models.compared_attention import HeadAttentionChange
from bert_tf.inference.predictions import fill_mask
from bert_tf.inference.words import read_texts
from bert_tf.plots.models.compare import difference_map
from bert_tf.plots.numbers import percent
from pages.tasks.snippets.fine_tuning_changes import snippet
from ui.elements import components, tables
from ui.elements.attention_page import head_name
from ui.samples.examples import Example
from ui.session import state, task_models
from ui.session.session_cache import cached
from ui.session.trace_store import attention_trace
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, comparison, export, figures, inputs, targets, task_predictions
from ui.widgets.formatting import escape_markdown, title

PAGE = Page(
    name="fine_tuning_changes",
    group="Tasks",
    order=2,
    title="Fine-tuning changes",
    question="A model before and after fine-tuning: what changed",
    terms="before after weights frozen layers difference",
    summary=(
        "a fine-tuned model beside its base model: its prediction; predictions for hidden words and for the pair "
        "before and after, if both models have the heads; how much the attention of each head changed on a text, "
        "and one head's attention after minus before; both open in Side by side"
    ),
    presses={"": Press("choice: Layer and head: ")},
    analyses=("attention-divergence",),
    example=Example(*task_models.EXAMPLES["classify", False][0], masks=()),
    settings=("model", "head"),
    settings_help="name of a fine-tuned model; the open head as `layer.head`",
    opens_rows=True,
    is_available=lambda: bool(task_models.pairs()),
    snippet=snippet,
)


_DIVERGENCE = Call.of(attention_divergence)
_SHOWN = 8
_LEAST_CHANGE = 1e-6  # bits; below it lie rounding errors
_DRAWN = 24  # tokens of a longer text whose attention is drawn: those with the greatest change
_PREDICTIONS = 200  # of each model; a token that is not among them has a probability of almost 0


def page():
    pairs = task_models.pairs()
    if not pairs:
        st.info(
            "This page compares a fine-tuned model with its base model, and no such pair is installed here. Train one "
            "under Fine-tune.",
            icon=":material/school:",
        )
        return
    first = next(iter(pairs))
    after = st.segmented_control(
        "Fine-tuned model",
        list(pairs),
        format_func=title,
        **state.bind_setting("fine_tuning_changes.model", "w_fine_tuning_changes_model", first, pairs),
    )
    after = after or first
    inputs.text_fields()
    if not inputs.texts_are_usable(has_examples=False):
        return
    before = pairs[after]
    pair = [inputs.model(name) for name in (before, after)]
    encoding = inputs.encode_texts(pair[1])
    if encoding is None:
        return
    view = state.view()
    # Both read what the fine-tuned model reads.
    texts = read_texts(encoding, view.a, pair[1].text_b_or_none(view.b) or "")
    try:
        require_same_tokens(*(shared.encode(*texts) for shared in pair))
    except NotComparable as error:
        # With words of its own the fine-tuned model has other tokens: a position is not the same word in both.
        inputs.heading("Predictions")
        _save_answers(pair, texts, _own_answer(pair[1]), [], None)
        st.info(str(error), icon=":material/compare_arrows:")
        return
    hidden = _answers(pair, texts)
    if hidden is None:
        return
    divergence, traces = _changes(pair, texts)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _map(divergence, (before, after), texts)
        if rank := task_models.names()[after].extra.get("lora_rank"):
            st.caption(
                f"Trained by LoRA: to each matrix of the layers a product of two matrices of rank {rank} is added; "
                "embeddings, biases and layer normalisations are those of the base model."
            )
    with right:
        place = _heads(divergence, traces, before, after)
    # Below both: on a telephone, where the columns stand below each other, the figure follows the choice of its head.
    if place is not None:
        _moved(traces, *place)
        attention_controls.warning()
    snippets.give(pair, traces, _DIVERGENCE, hidden, place)


def _answers(pair, texts):
    """Draw the fine-tuned model's prediction, and the predictions for hidden words and the pair before and after.

    Args:
        pair: the two ``SharedModel``s. texts: text A and text B ("" without one) as both models read them.

    Returns: positions of the hidden words; None if there are too many masks.
    """
    view = state.view()
    fills = all("mlm" in shared.bert.heads for shared in pair)
    if fills:
        encoding = pair[1].encode(view.a, view.b)
        inputs.token_strip(pair[1], encoding, "c_fine_tuning_changes_chips")
        masked = inputs.masked_positions(pair[1], encoding)
    else:
        masked = ()
    heading = inputs.heading("Predictions")
    left, right = st.columns(2, gap="large")
    with left:
        task_prediction = _own_answer(pair[1])
    cards, shares = [], None
    with right:
        st.markdown("**Masked words and the pair**, before → after")
        if masked is not None:
            cards, shares = _earlier_heads(pair, texts, masked, fills)
    with heading:
        st.button(
            "Open both in Side by side",
            icon=":material/compare_arrows:",
            type="tertiary",
            key="w_fine_tuning_changes_compare",
            on_click=lambda: state.replace_view(
                comparison.with_compared_models(state.view(), *(shared.name for shared in pair))
            ),
        )
    _save_answers(pair, texts, task_prediction, cards, shares)
    return masked


def _own_answer(shared):
    """Draw the fine-tuned model's prediction with nothing hidden; returns the ``TaskPrediction``."""
    view = state.view()
    st.markdown(f"**{escape_markdown(title(shared.name))}**, nothing hidden")
    task_prediction = task_predictions.predict_task("fine_tuning_changes", shared, view.a, view.b)
    task_predictions.draw("c_fine_tuning_changes_task", task_prediction)
    return task_prediction


def _save_answers(pair, texts, task_prediction, cards, shares):
    """Offer all answers in the menu Save; those of the fine-tuned head have no value before."""
    rows = [AnswerChange(of, item, None, number) for of, item, number in task_prediction.rows]
    rows += [AnswerChange(*row) for row in targets.answer_rows(pair[0], cards, shares)]
    if rows:
        before, after = (shared.name for shared in pair)
        export.save(
            "what-it-says",
            BeforeAndAfter(before, after, task_prediction.answer, tuple(rows)),
            {"models": (before, after)},
            texts,
        )


def _earlier_heads(pair, texts, masked, fills):
    """Draw the predictions of the pre-training heads, if both models have them.

    Returns:
        (cards of the hidden words; the probability of the first answer about the pair, before and after, or None).
    """
    view = state.view()
    key = (*(shared.name for shared in pair), view.precision, *texts, masked)
    traces = cached("fine_tuning_changes_says", key, lambda: [shared.trace(*texts, masked) for shared in pair])
    cards = []
    if not fills:
        lacking = [escape_markdown(title(shared.name)) for shared in pair if "mlm" not in shared.bert.heads]
        st.caption(f"{' and '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} no head for masked words.")
    elif traces[0].masks:
        answers = [fill_mask(trace, shared.tokenizer, _PREDICTIONS) for trace, shared in zip(traces, pair)]
        cards = targets.before_after_cards(*answers, view.top_k)
        components.bars("c_fine_tuning_changes_bars", cards)
    else:
        st.caption("Nothing is hidden: press a token above.")
    return cards, None if traces[0].text_b is None else _pair_predictions(pair, traces)


def _pair_predictions(pair, traces):
    """Draw the prediction for the pair; returns the probability of the first answer before and after, or None."""
    heads = [targets.pair_head(shared) for shared in pair]
    if heads[0] is None or heads[0] != heads[1]:
        st.caption("The models do not have the same head for pairs of texts.")
        return None
    shares = [targets.first_answer_probability(trace) for trace in traces]
    st.caption(f"{targets.pair_question(pair[0]).answers[0]}: {percent(shares[0])} → {percent(shares[1])}.")
    return shares


def _changes(pair, texts):
    """(``AttentionDivergence``, the two traces); the traces are large, so only the bounded trace store holds them."""
    view = state.view()
    traces = [attention_trace(shared, (), texts) for shared in pair]
    key = (*(shared.name for shared in pair), view.precision, *texts)
    return cached("fine_tuning_changes", key, lambda: _DIVERGENCE.run(*traces)), traces


def _map(divergence, models, texts):
    inputs.heading("How much each head changed")
    export.save("heads-moved", divergence, {"models": models}, texts)
    figures.show(
        "How much each head changed",
        divergence.figure(dark=state.is_dark()),
        config=export.plot_config("heads-moved"),
        key="w_fine_tuning_changes_map",
    )
    changed = divergence.divergences.max(axis=1) >= _LEAST_CHANGE
    unchanged = int(changed.argmax())
    if unchanged:
        same = "Layer 1 attends" if unchanged == 1 else f"Layers 1 to {unchanged} attend"
        st.markdown(f"{same} exactly as before, as frozen layers do.")
    st.caption(
        "Jensen-Shannon divergence between a head's attention before and after, the mean over the tokens that attend: "
        "0 means the same tokens, 1 means no token in common. The value vectors of a head "
        "may also change while its attention stays the same."
    )


def _heads(divergence, traces, before, after):
    inputs.heading("The heads that changed most")
    if divergence.divergences.max() < _LEAST_CHANGE:
        st.info("No head changed: every encoder layer was frozen.", icon=":material/ac_unit:")
        return
    names = {
        f"{layer + 1}.{head + 1}": (layer, head)
        for layer, head in divergence.ranked()[:_SHOWN]
        if divergence.divergences[layer, head] > 0
    }
    chosen = st.segmented_control(
        "Layer and head",
        list(names),
        **state.bind_setting("fine_tuning_changes.head", "w_fine_tuning_changes_head", next(iter(names)), names),
    )
    layer, head = names[chosen or next(iter(names))]
    weights_before, weights_after = (trace.attentions[layer, head] for trace in traces)
    rows = _most_moved(weights_after - weights_before)[:_SHOWN]
    tokens = traces[0].tokens
    change = HeadAttentionChange(before, after, layer, head, tokens, weights_before, weights_after)
    export.save(f"moved-{head_name(layer, head)}", change, {"models": (before, after)}, export.texts_of(traces[0]))
    tables.show(
        {
            "token": [tokens[row] for row in rows],
            "before": [_strongest(tokens, weights_before[row]) for row in rows],
            "after": [_strongest(tokens, weights_after[row]) for row in rows],
        },
        hide_index=True,
        key="w_fine_tuning_changes_table",
        column_config={
            "token": "Token",
            "before": st.column_config.TextColumn("Before", help="The token that it attended most to."),
            "after": st.column_config.TextColumn("After", help="The token that it attends most to now."),
        },
    )
    with st.container(horizontal=True):
        for label, name in (("Open before", before), ("Open after", after)):
            st.button(
                label,
                icon=":material/arrow_forward:",
                type="tertiary",
                key=f"w_{label}",
                on_click=lambda name=name: state.change_view(
                    page="all_heads", model=name, layer=layer, head=head, masks=()
                ),
            )
    return layer, head


def _most_moved(change):
    """Indices of the tokens by the change of their attention, the greatest first; change: float [T, T]."""
    return np.argsort(-np.abs(change).sum(axis=1), kind="stable")


def _moved(traces, layer, head):
    """Draw the change of a head's attention."""
    weights_before, weights_after = (trace.attentions[layer, head].astype(np.float32) for trace in traces)
    positions = np.sort(_most_moved(weights_after - weights_before)[:_DRAWN])
    name = f"Layer {layer + 1}, head {head + 1}: attention after minus before"
    inputs.heading(name)
    figures.show(
        name,
        difference_map(
            (weights_after - weights_before)[np.ix_(positions, positions)],
            [traces[0].tokens[at] for at in positions],
            state.is_dark(),
        ),
        config=export.plot_config(f"moved-{head_name(layer, head)}"),
        key="w_fine_tuning_changes_moved",
    )
    few = f", of the {_DRAWN} whose attention changed most" if traces[0].length > _DRAWN else ""
    st.caption(f"A row for each token that attends{few}: blue where it attends more than before, orange less.")


def _strongest(tokens, weights):
    """The token with the greatest weight, and this weight."""
    place = int(weights.argmax())
    return f"{tokens[place]} ({weights[place]:.0%})"
