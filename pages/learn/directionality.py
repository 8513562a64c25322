"""Directionality: predictions for a hidden word by models that read one side of it, each side alone, or both."""

import re

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.errors import MaskTruncated
from bert_tf.explain import Directionality, predict_span
from bert_tf.explain.models.directionality import MASK
from bert_tf.inference.words import words_of
from bert_tf.plots.numbers import percent
from pages.learn.snippets.directionality import snippet
from ui.elements import components
from ui.elements.cards import cards
from ui.elements.mask_chips import chips
from ui.elements.spans import spans, split_at_spans
from ui.samples.examples import ONE_WAY
from ui.session import directional_models, model_store, state
from ui.session.model_store import shared_model
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import MASKED, Page, Press
from ui.shell.view import MaskPosition
from ui.widgets import export, inputs
from ui.widgets.formatting import escape_markdown, title

PAGE = Page(
    name="directionality",
    group="Learn",
    order=5,
    title="Directionality",
    question="What a model gains by reading both sides of a word",
    terms="bidirectional left to right one way causal ELMo GPT OpenAI",
    summary=(
        "a hidden word predicted by a left-to-right reader, by two one-way readers, by a BERT of their size and "
        "by the chosen model: the text that each has seen, its predictions, and the word's probability"
    ),
    presses={"": Press("word", MASKED)},
    analyses=("directionality",),
    example=ONE_WAY[0],
    opens_rows=True,
    is_available=lambda: len(directional_models.comparable_models()) == len(directional_models.DIRECTIONS),
    snippet=snippet,
)


_KINDS = {"left": 0, "right": 1, "both": 2}
_PLACE, _GAP, _WORD = 3, "____", re.compile(r"\S+")
_SIDES = {"left": "read from left to right", "right": "read from right to left", "both": "read as a whole"}
_FIELD = (("Text", "Type a sentence, then press the word to hide."),)


def page():
    names = directional_models.comparable_models()
    if len(names) < len(directional_models.DIRECTIONS):
        st.info(
            "This page compares a left-to-right reader, two one-way readers and a BERT of the same size, and "
            "not all of them are installed here.",
            icon=":material/block:",
        )
        return
    inputs.examples(ONE_WAY)
    inputs.text_fields(_FIELD, undo=True)
    if not inputs.texts_are_usable("The text"):
        return
    is_loaded = all(model_store.is_loaded(names[way], "float32") for way in directional_models.DIRECTIONS)
    with inputs.loading("Loading the three small models …", is_over=is_loaded):
        readers = {way: shared_model(names[way]) for way in directional_models.DIRECTIONS}
    part = _place(readers["bidirectional"])
    if part is None:
        return
    if state.view().b.strip():
        st.caption("Text A alone is read here; text B is kept for the other pages.")
    text, start, end = part
    call = Call.of(predict_span, start=start, end=end, top_k=state.view().top_k)
    with st.spinner("Asking them …"):
        readings = _readings(readers, call, text)
    asked = {way: reading.model for way, reading in readings.items()}
    snippets.give([asked[way] for way in directional_models.DIRECTIONS], asked.get("chosen", ""), call, text)
    _draw(readings, *part)
    _footer()


def _place(shared):
    """Draw the words to press.

    Returns:
        (text, start, end) of the hidden word; None without one, and the page says why.
    """
    view = state.view()
    text = view.a
    encoding = shared.encode(text, "")
    words = {(word.source, word.index): word for word in words_of(encoding, text, None)}
    spot = next((spot for spot in view.masks if (spot.source, spot.word) in words), None)
    if not words:
        st.info("There is nothing in the text that the model can read. Type a sentence.", icon=":material/keyboard:")
        return None
    st.header("Words", anchor=False)
    inputs.warn_truncated(encoding, "The three readers")
    typed = inputs.typed_masks(shared, encoding)
    hidden = () if typed or spot is None else (MaskPosition("a", spot.word),)

    def pressed(name):
        chosen = MaskPosition.parse(name)
        if typed:
            st.toast("The readers predict the [MASK] in the text. Delete it to hide another word.")
        elif chosen:
            masks = state.view().masks
            now = hidden if masks == view.masks else masks  # a press right before may have changed it
            state.change_view(masks=() if chosen in now else (chosen,))

    components.chips(
        "c_directionality_chips", chips(encoding, hidden, True, shared.tokenizer.mask_id), (text, ""), pressed
    )
    if typed:
        if len(typed) > 1:
            st.caption(
                "The first [MASK] is predicted. The others stay in the text; the one-way readers never learnt "
                "their meaning."
            )
        return text, *encoding.offsets[typed[0]]
    if not hidden:
        cut = encoding.truncated[0] and (MASK in text or any(spot.source == "a" for spot in view.masks))
        st.info(
            "The hidden word is in the part that is left out. Press a word above to hide it instead."
            if cut
            else "Press a word above to hide it, or type [MASK] in its place.",
            icon=":material/touch_app:",
        )
        return None
    word = words["a", spot.word]
    return text, word.start, word.end


def _readings(readers, call, text):
    """A `Reading` of each reader, and of the chosen model if it has a head for masked words."""
    view = state.view()
    models = dict(readers)
    if view.model not in {shared.name for shared in readers.values()}:
        chosen = shared_model(view.model, view.precision)
        if "mlm" in chosen.bert.heads:
            models["chosen"] = chosen
    key = (text, view.precision, tuple(shared.name for shared in models.values()), call)
    readings, problem = cached("directionality", key, lambda: _asked(models, call, text))
    if problem:
        st.caption(escape_markdown(f"{title(view.model)} is left out. {problem}"))
    return readings


def _asked(models, call, text):
    """(The readings, why the chosen model has none or None): it may read fewer tokens than the three readers."""
    readings, problem = {}, None
    for way, shared in models.items():
        try:
            readings[way] = shared.run(call.run, text)
        except MaskTruncated as error:
            if way != "chosen":
                raise
            problem = str(error)
    return readings, problem


def _draw(readings, text, start, end):
    inputs.heading("What each predicts there")
    models = tuple(reading.model for reading in readings.values())
    export.save("one-way", Directionality(text, start, end, tuple(readings.values())), {"models": models}, (text,))
    _verdict(readings, text[start:end])
    with st.container(key="readers"):
        columns = st.columns(len(readings), gap="medium")
    for column, (way, reading) in zip(columns, readings.items()):
        name, sees = _named(way, reading)
        with column:
            st.markdown(f"**{escape_markdown(name)}**")
            spans(f"c_directionality_text_{way}", _parts(text, start, end, reading), [], sees)
            (card,) = cards([reading.answer])
            if reading.answer.original is None and text[start:end] != MASK:
                card |= {"title": text[start:end], "foot": "The original is several word pieces here."}
            components.bars(f"c_directionality_bars_{way}", [card])


def _named(way, reading):
    """The name of a reader, and a sentence about the text that it saw."""
    if way in directional_models.DIRECTIONS:
        return directional_models.DIRECTIONS[way]
    return title(
        reading.model
    ), f"The model chosen in the sidebar. {directional_models.DIRECTIONS[reading.attention_direction][1]}"


def _parts(text, start, end, reading):
    """The text for the spans component: a gap for the hidden word, and colours for the parts that the reader saw."""
    longer = len(_GAP) - (end - start)
    places = [(start, start + len(_GAP), _PLACE, "", "the hidden word")]
    for first, last, side in reading.visible_spans:
        move = longer if first >= end else 0
        # Word by word, so that lines break between them.
        for word in _WORD.finditer(text, first, last):
            places.append((word.start() + move, word.end() + move, _KINDS[side], "", _SIDES[side]))
    return split_at_spans(f"{text[:start]}{_GAP}{text[end:]}", places)


def _verdict(readings, word):
    """Write the probability of the word itself for each reader that has it as one token."""
    if word == MASK:
        return
    names = {way: _named(way, reading)[0] for way, reading in readings.items()}
    known = [
        f"{names[way]} {percent(reading.answer.original_probability)}"
        for way, reading in readings.items()
        if reading.answer.original is not None
    ]
    splitting = [names[way] for way, reading in readings.items() if reading.answer.original is None]
    sentences = [f"How likely “{word}” is to each: {', '.join(known)}."] if known else []
    if splitting:
        sentences.append(
            f"“{word}” is several word pieces for {'; '.join(splitting) if known else 'all of them'}: a model that "
            "fills one place gives it no probability. Hide a more frequent word to compare all."
        )
    st.markdown(escape_markdown(" ".join(sentences)))


def _footer():
    st.caption(
        "The first three have the same size, the same word pieces and the same training text, and differ in the "
        "tokens that they may attend to. On average over many texts this BERT is still behind the two one-way readers, "
        "as learning from masks takes longer.",
        help="They are small: they know grammar and which words often occur together. It read more text than the "
        "other two. The model chosen in the sidebar shows the results of a longer training. The one-way "
        "readers predict a word from the hidden state beside it, so they never see the token at its position.",
    )
