"""Fine-tuning changes: what a fine-tuned model says on the visitor's text, and how its heads' attention moved."""

import numpy as np
import streamlit as st

from bert_tf.explain import attention_divergence
from bert_tf.explain.models.before_after import AnswerChange, BeforeAndAfter
from bert_tf.explain.models.compared_attention import HeadAttentionChange
from bert_tf.inference.predictions import fill_mask
from bert_tf.plots.models.compare import difference_map
from pages.tasks.snippets.fine_tuning_changes import snippet
from ui.elements import components
from ui.session import state, task_models
from ui.session.session_cache import cached
from ui.session.trace_store import attention_trace
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import attention_controls, comparison, export, figures, inputs, targets, task_predictions
from ui.widgets.formatting import escape_markdown, percent, title

PAGE = Page(
    name="fine_tuning_changes",
    group="Tasks",
    order=2,
    title="Fine-tuning changes",
    question="A model before and after fine-tuning: what changed",
    summary=(
        "a fine-tuned model beside the one it came from: what it says, hidden words and the pair before and "
        "after where both have the heads, how far each head's attention moved on a text, and where one looks "
        "after, less before; both open in Side by side"
    ),
    presses={"": Press("choice: Layer and head: ")},
    analyses=("attention-divergence",),
    settings=("model", "head"),
    settings_help="name of a fine-tuned model; the open head as `layer.head`",
    opens_rows=True,
    is_available=lambda: bool(task_models.pairs()),
    snippet=snippet,
)


_SHOWN = 8
_DRAWN = 24  # tokens of a longer text, those that moved most, whose attention is drawn
_GUESSES = 200  # of each side: one that is missing among so many has next to nothing


def page():
    pairs = task_models.pairs()
    if not pairs:
        st.info(
            "This view puts a fine-tuned model beside the one it came from, and no such pair is here. Train one "
            "under Fine-tune, or with `python -m bert_tf finetune`.",
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
    if not inputs.texts_are_usable():
        return
    before = pairs[after]
    pair = [inputs.model(name) for name in (before, after)]
    if inputs.encode_texts(pair[1]) is None:
        return
    hidden = _answers(pair)
    found, traces = _changes(pair)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _map(found)
    with right:
        place = _heads(found, traces, before, after)
    if place is not None:
        with left:
            _moved(traces, *place)
    snippets.give(pair, traces, hidden, place)


def _answers(pair):
    """What the fine-tuned model says, and how hidden words and the pair were judged before and are after.

    Returns: positions of the words that are hidden.
    """
    view = state.view()
    fills = all("mlm" in shared.bert.heads for shared in pair)
    if fills:
        inputs.note_unreadable(pair[1], view.b)
        encoding = pair[1].encode(view.a, view.b)
        inputs.token_strip(pair[1], encoding, "c_fine_tuning_changes_chips")
        masked = inputs.masked_positions(pair[1], encoding)
    else:
        masked = ()
    heading = inputs.heading("What it says")
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown(f"**{escape_markdown(title(pair[1].name))}**, nothing hidden")
        said = task_predictions.predict_task("fine_tuning_changes", pair[1], view.a, view.b)
        task_predictions.draw("c_fine_tuning_changes_task", said)
    cards, shares = [], None
    with right:
        st.markdown("**Masked words and the pair**, before → after")
        if masked is not None:
            cards, shares = _earlier_heads(pair, masked, fills)
    with heading:
        st.button(
            "Open both in Side by side",
            icon=":material/compare_arrows:",
            type="tertiary",
            key="w_fine_tuning_changes_compare",
            on_click=lambda: state.replace_view(
                comparison.with_compared_models(state.view(), *(one.name for one in pair))
            ),
        )
        _save_answers(pair, said, cards, shares)
    return masked or ()


def _save_answers(pair, said, cards, shares):
    """The download menu of all answers; those of the fine-tuned head have no value before."""
    rows = [AnswerChange(of, item, None, number) for of, item, number in said.rows]
    rows += [AnswerChange(*row) for row in targets.answer_rows(pair[0], cards, shares)]
    if rows:
        before, after = (shared.name for shared in pair)
        export.save("what-it-says", BeforeAndAfter(before, after, said.answer, tuple(rows)))


def _earlier_heads(pair, masked, fills):
    """Draw the answers of the heads of pre-training, where both models have them.

    Returns:
        (cards of the hidden words, shares of the first verdict on the pair before and after or None).
    """
    view = state.view()
    key = (*(shared.name for shared in pair), view.precision, view.a, view.b, masked)
    traces = cached("fine_tuning_changes_says", key, lambda: [shared.trace(view.a, view.b, masked) for shared in pair])
    cards = []
    if not fills:
        lacking = [escape_markdown(title(shared.name)) for shared in pair if "mlm" not in shared.bert.heads]
        st.caption(f"{' and '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} no head for masked words.")
    elif traces[0].masks:
        answers = [fill_mask(trace, shared.tokenizer, _GUESSES) for trace, shared in zip(traces, pair)]
        cards = targets.before_after_cards(*answers, view.top_k)
        components.bars("c_fine_tuning_changes_bars", cards)
    else:
        st.caption("Nothing is hidden: press a token above.")
    return cards, None if traces[0].text_b is None else _pair_said(pair, traces)


def _pair_said(pair, traces):
    """Draw how the head for pairs judged before and judges after: its first answer's shares, or None."""
    heads = [targets.pair_head(shared) for shared in pair]
    if heads[0] is None or heads[0] != heads[1]:
        st.caption("Not both have the same head for pairs of texts.")
        return None
    shares = [targets.first_answer_probability(trace) for trace in traces]
    st.caption(f"{targets.pair_question(pair[0]).answers[0]}: {percent(shares[0])} → {percent(shares[1])}.")
    return shares


def _changes(pair):
    """(how far each head moved, the two traces); the traces are large and are held in the bounded store alone."""
    view = state.view()
    traces = [attention_trace(shared, (), (view.a, view.b)) for shared in pair]
    key = (*(shared.name for shared in pair), view.precision, view.a, view.b)
    return cached("fine_tuning_changes", key, lambda: attention_divergence(*traces)), traces


def _map(found):
    with inputs.heading("How far each head moved"):
        export.save("heads-moved", found)
    figures.show(
        "How far each head moved",
        found.figure(dark=frame.is_dark()),
        config=export.plot_config("heads-moved"),
        key="w_fine_tuning_changes_map",
    )
    st.caption(
        "Jensen-Shannon divergence between a head's attention before and after, the mean over the tokens that look: "
        "0 is the same, 1 is elsewhere altogether. Layers that were frozen cannot move, and a head may also change "
        "what it carries without changing where it looks."
    )


def _heads(found, traces, before, after):
    heading = inputs.heading("The heads that moved most")
    if found.divergences.max() < 1e-6:
        st.info("No head moved: every encoder layer was frozen.", icon=":material/ac_unit:")
        return
    names = {
        f"{layer + 1}.{head + 1}": (layer, head)
        for layer, head in found.ranked()[:_SHOWN]
        if found.divergences[layer, head] > 0
    }
    chosen = st.segmented_control(
        "Layer and head",
        list(names),
        **state.bind_setting("fine_tuning_changes.head", "w_fine_tuning_changes_head", next(iter(names)), names),
    )
    layer, head = names[chosen or next(iter(names))]
    one, two = (trace.attentions[layer, head] for trace in traces)
    rows = _most_moved(two - one)[:_SHOWN]
    tokens = traces[0].tokens
    with heading:
        change = HeadAttentionChange(before, after, layer, head, tokens, one, two)
        export.save(f"moved-layer-{layer + 1}-head-{head + 1}", change)
    st.dataframe(
        {
            "token": [tokens[row] for row in rows],
            "before": [_looks(tokens, one[row]) for row in rows],
            "after": [_looks(tokens, two[row]) for row in rows],
        },
        hide_index=True,
        key="w_fine_tuning_changes_table",
        column_config={"token": "Token", "before": "Looked most at", "after": "Looks most at now"},
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
    attention_controls.warning_link()
    return layer, head


def _most_moved(change):
    """Tokens by how far their attention moved, the farthest first; change: [T, T]."""
    return np.argsort(-np.abs(change).sum(axis=1), kind="stable")


def _moved(traces, layer, head):
    """Draw what a head's attention lost and won."""
    one, two = (trace.attentions[layer, head].astype(np.float32) for trace in traces)
    shown = np.sort(_most_moved(two - one)[:_DRAWN])
    name = f"Layer {layer + 1}, head {head + 1}: attention after, less before"
    inputs.heading(name)
    figures.show(
        name,
        difference_map((two - one)[np.ix_(shown, shown)], [traces[0].tokens[at] for at in shown], frame.is_dark()),
        config=export.plot_config(f"moved-layer-{layer + 1}-head-{head + 1}"),
        key="w_fine_tuning_changes_moved",
    )
    few = f", of the {_DRAWN} whose attention moved most" if traces[0].length > _DRAWN else ""
    st.caption(f"A row for each token that looks{few}: blue is where it looks more than before, orange less.")


def _looks(tokens, weights):
    place = int(weights.argmax())
    return f"{tokens[place]} ({weights[place]:.0%})"
