"""Replaced-token detection (ELECTRA): a generator replaces words, a discriminator scores every token."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.checkpoints.delta import base_model
from bert_tf.explain import replace_and_detect
from bert_tf.plots.numbers import percent
from bert_tf.plots.theme import ramp
from pages.learn.snippets.replaced_token_detection import snippet
from ui.elements import tables, text_notes
from ui.elements.cells import marks
from ui.samples.examples import REPLACED
from ui.session import state
from ui.session.model_store import installed
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.widgets import export, inputs
from ui.widgets.formatting import count, escape_markdown, title

PAGE = Page(
    name="replaced_token_detection",
    group="Learn",
    order=6,
    title="Replaced-token detection",
    question="Which words were replaced?",
    terms="ELECTRA discriminator generator",
    summary=(
        "ELECTRA's training task: a generator replaces some words; the discriminator's score of every token, and "
        "where it was right"
    ),
    presses={"": Press("chip", MASKED)},
    analyses=("replaced-token-detection",),
    example=REPLACED[0],
    settings=("share", "draw", "writer"),
    settings_help="percent of the tokens that are replaced, number of the draw, name of the generator",
    opens_rows=True,
    is_available=lambda: any("replaced" in (info.heads or ()) for info in installed()),
    snippet=snippet,
)


_FIELD = (("Text", "Type a sentence. Press words to replace them, or leave the choice to chance."),)
_SHARES = (15, 25, 40)
_MOST_ROUNDS = 10_000
_COLUMNS = {
    "position": "Position",
    "token": "Token",
    "original_token": "Original",
    "replaced": "Replaced",
    "score": "Score",
    "correct": "Right",
}


def page():
    players = _players()
    if players is None:
        return
    inputs.examples(REPLACED)
    inputs.text_fields(_FIELD)
    if not inputs.texts_are_usable("The text"):
        return
    discriminator, generator = map(inputs.model, players)
    encoding = discriminator.encode(state.view().a, "")
    if not any(encoding.sources):
        st.info("There is nothing in the text that the model can read. Type a sentence.", icon=":material/keyboard:")
        return
    text_notes.draw(discriminator, encoding, {"a": state.view().a})
    inputs.warn_truncated(encoding)
    inputs.token_strip(discriminator, encoding, "c_replaced_token_detection_chips")
    chosen = inputs.masked_positions(discriminator, encoding)
    if chosen is None:
        return
    share, seed = _controls(bool(chosen))
    view = state.view()
    call = Call.of(replace_and_detect, **({"mask": chosen} if chosen else {"share": share / 100}), seed=seed)
    snippets.give(*players, call)
    game = cached(
        "replaced_token_detection",
        (players, view.precision, view.a, call),
        lambda: _game(discriminator, generator, call, view.a),
    )
    _draw(game, discriminator.tokenizer, view.a)


def _players():
    """Names of the discriminator and the generator; None without them, and the page says why."""
    here = [info for info in installed() if info.heads and info.config]
    judges = [info for info in here if "replaced" in info.heads]
    if not judges:
        st.info(
            "This page needs an ELECTRA discriminator, a model that scores every token, and none is installed here. "
            "electra-base-cased-embedded comes with the project.",
            icon=":material/block:",
        )
        return None
    names = [info.name for info in judges]
    view = state.view()
    judge = judges[names.index(view.model) if view.model in names else 0]
    writers = [
        info
        for info in here
        if info is not judge and "mlm" in info.heads and info.config.vocab_size == judge.config.vocab_size
    ]
    # The first generator: one with the same base model, else of the same architecture, the smaller before the larger.
    start = base_model(judge.path)

    def nearness(info):
        related = start is None or start in (info.name, base_model(info.path))
        return not related, info.config.model_type != judge.config.model_type, _size(info)

    writers.sort(key=nearness)
    if not writers:
        st.info(
            f"{title(judge.name)} is here, but no other model that fills masks with the same word pieces. Install "
            "its generator, or a BERT with its vocabulary.",
            icon=":material/block:",
        )
        return None
    writer = _writer([info.name for info in writers])
    st.caption(f"Generator: {escape_markdown(title(writer))}. Discriminator: {escape_markdown(title(judge.name))}.")
    return judge.name, writer


def _size(info):
    return info.config.num_hidden_layers * info.config.hidden_size


def _writer(names):
    if len(names) == 1:
        return names[0]
    return st.selectbox(
        "Generator",
        names,
        format_func=title,
        width=320,
        **state.bind_setting("replaced_token_detection.writer", "w_replaced_token_detection_writer", names[0], names),
    )


def _controls(chosen):
    """The widgets; returns (percent of the tokens to replace, number of the draw)."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        share = st.segmented_control(
            "Replaced tokens",
            _SHARES,
            format_func=lambda share: f"{share}%",
            disabled=chosen,
            help="The share of the tokens, chosen at random; words that are pressed above are replaced instead.",
            required=True,
            **state.bind_setting(
                "replaced_token_detection.share", "w_replaced_token_detection_share", _SHARES[0], _SHARES
            ),
        )
        seed = min(max(state.setting("replaced_token_detection.draw", 0), 0), _MOST_ROUNDS)
        st.button(
            "Draw again",
            icon=":material/casino:",
            key="w_replaced_token_detection_again",
            on_click=lambda: state.set_setting("replaced_token_detection.draw", (seed + 1) % _MOST_ROUNDS, 0),
        )
    return share, seed


def _game(discriminator, generator, call, text):
    # Both models are locked, always in the same order, so that two visitors cannot deadlock.
    first, second = sorted((discriminator, generator), key=lambda shared: shared.name)
    with first.lock, second.lock:
        return call.run(generator.bert, discriminator.bert, text)


def _draw(game, tokenizer, text):
    inputs.heading("Replaced or original")
    export.save("electra", game, {"models": (game.generator, game.discriminator)}, (text,))
    marks(
        "c_replaced_token_detection",
        {"a": _parts(game, tokenizer)},
        ramp(state.is_dark()),
        ("original", "replaced"),
        "Point at a token, or tap it, for its score and the original token. Framed: it was replaced.",
    )
    replaced = int(game.replaced.sum())
    same = len(game.positions) - replaced
    summary = f"The generator predicted {count(len(game.positions), 'token')}"
    if same:
        summary += f", {same} of them the same as the original, which counts as not replaced"
    if replaced:
        summary += f". The discriminator found {game.true_positives} of {count(replaced, 'replaced token')}"
    again = "" if replaced else " Nothing was replaced this time: draw again, or press other words."
    wrong = count(game.false_positives, "original token")
    st.markdown(f"{summary}. The discriminator scored {wrong} as replaced.{again}")
    tables.show(
        game.to_frame().drop(columns="generated").rename(columns=_COLUMNS),
        hide_index=True,
        key="w_replaced_token_detection_table",
        column_config={"Score": st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)},
    )
    st.caption(
        "Every chosen token is hidden, and its replacement is drawn at random with the generator's probabilities. The "
        "score is the discriminator's probability that a token was replaced: it shows what fits, not what is true."
    )


def _inside(game):
    return [position for position, source in enumerate(game.sources) if source is not None]


def _parts(game, tokenizer):
    """The text that the discriminator read for the marks component, each token with its score."""
    drawn = []
    for position in _inside(game):
        token, score = tokenizer.spelling(game.tokens[position]), float(game.scores[position])
        if drawn and not token.startswith("##"):
            drawn.append({"text": " "})
        original = f", original: {game.original_tokens[position]}" if game.replaced[position] else ""
        drawn.append(
            {
                "text": token.removeprefix("##"),
                "tip": f"{token}: replaced {percent(score)}{original}",
                "shade": round(score, 3),
                "hidden": False,
                "asked": bool(game.replaced[position]),
            }
        )
    return drawn
