"""The two sides of the page Side by side: the model, the texts and the masks of each."""

import dataclasses

import streamlit as st

from ui.elements import components
from ui.elements.mask_chips import chips, token_positions
from ui.samples.examples import EXAMPLES, Example
from ui.session import state
from ui.session.model_store import SharedModel
from ui.session.session_cache import cached
from ui.session.trace_store import attention_trace
from ui.shell.view import MaskPosition
from ui.widgets import comparison, export, inputs
from ui.widgets.formatting import title

COMPARED = {"models": "Two models", "texts": "Two texts", "both": "Both"}
_TEXTS = ("side_by_side.a", "side_by_side.b")
# Example -> the example to compare it with: the same word in another context.
_SECOND = {
    "River bank": "Bank account",
    "Bank account": "River bank",
    "Right, the direction": "Right, the correctness",
    "Right, the correctness": "Right, the direction",
    "Law after history": "Bunny after history",
    "Bunny after history": "Law after history",
}
_OTHER = Example("", "Paris is a city in France.", "", (MaskPosition("a", 5),))


@dataclasses.dataclass(frozen=True, eq=False)
class ComparisonInput:
    """One side of the comparison.

    Attributes:
        key: "a" or "b". shared: ``SharedModel``. name: the name of the side on the page.
        text_a, text_b: the texts. mask_positions: ``MaskPosition``s. encoding: the ``Encoding`` of the texts.
    """

    key: str
    shared: SharedModel
    name: str
    text_a: str
    text_b: str
    mask_positions: tuple
    encoding: object

    @property
    def masked(self):
        """Token positions of the masks."""
        return token_positions(self.encoding, self.mask_positions)

    def trace(self, hidden_states=False):
        """The ``Trace`` of the side, with attention maps or, if ``hidden_states``, with hidden states instead."""
        with inputs.reading(self.shared):
            if not hidden_states:
                return attention_trace(self.shared, self.masked, (self.text_a, self.text_b))

            def make():
                return self.shared.trace(self.text_a, self.text_b, self.masked, hidden_states=True)

            key = (self.shared.name, state.view().precision, self.text_a, self.text_b, self.masked)
            return cached(f"compare_states_{self.key}", key, make)


def second_texts():
    """(text A, text B, masks) of the second side: those of the link, else an example that goes with the first side."""
    view = state.view()
    if any(view.setting(name) is not None for name in _TEXTS):
        mask_positions = filter(
            None, (MaskPosition.parse(text) for text in state.setting("side_by_side.mask", "").split(","))
        )
        most = state.limits().max_masks
        return state.setting(_TEXTS[0], ""), state.setting(_TEXTS[1], ""), tuple(sorted(set(mask_positions)))[:most]
    label = next((example.label for example in EXAMPLES if (example.a, example.b) == (view.a, view.b)), None)
    second = next((example for example in EXAMPLES if example.label == _SECOND.get(label)), _OTHER)
    return second.a, second.b, second.masks


def set_second_texts(text_a, text_b, mask_positions):
    """Write the second side's texts and masks into the link; to be called in a callback."""
    for name, text in zip(_TEXTS, (text_a, text_b)):
        # An empty text is written too: without a text the link would mean the default example.
        state.replace_view(state.view().with_setting(name, text))
    state.set_setting("side_by_side.mask", ",".join(map(str, mask_positions)), "")


def second_text_fields():
    """The text fields of the second side."""
    text_a, text_b, _ = second_texts()
    for column, name, text, label in zip(
        st.columns(2), "ab", (text_a, text_b), ("Second text A", "Second text B (optional)")
    ):
        key = f"w_second_{name}"
        state.set_widget(key, text)
        column.text_area(label, key=key, on_change=_typed, height=92)
    components.typing("c_second_typing", [f"w_second_{name}" for name in "ab"])


def _typed():
    old_a, old_b, mask_positions = second_texts()
    new = tuple(state.typed_text(f"w_second_{name}", old) for name, old in zip("ab", (old_a, old_b)))
    changed = {name for name, old, now in zip("ab", (old_a, old_b), new) if old != now}
    set_second_texts(*new, tuple(spot for spot in mask_positions if spot.source not in changed))


def sides(compared):
    """The two ``ComparisonInput``s; None if there are none, and the page says why.

    Args:
        compared: a key of `COMPARED`.

    Raises: ValueError if a text has too many masks.
    """
    view = state.view()
    names = (view.model, view.model) if compared == "texts" else comparison.compared_models(view, "side_by_side")
    second = (view.a, view.b, view.masks) if compared == "models" else second_texts()
    most = state.limits().max_characters
    for name, text in zip("AB", second):
        if len(text) > most:
            st.error(
                f"Second text {name} has {len(text):,} characters; this explorer takes at most {most:,}. Shorten it.",
                icon=":material/error:",
            )
            return None
    if not second[0].strip():
        st.info("Second text A is empty. Type a sentence.", icon=":material/keyboard:")
        return None
    pair = []
    for key, name, (text_a, text_b, mask_positions) in zip("ab", names, ((view.a, view.b, view.masks), second)):
        shared = inputs.model(name)
        encoding = inputs.encode_texts(shared) if key == "a" else shared.encode(text_a, text_b)
        if encoding is None:
            return None
        if "a" not in encoding.sources:
            st.info("There is nothing in the second text A that the model can read.", icon=":material/keyboard:")
            return None
        name_on_page = {"models": title(name), "texts": f"Text {1 + (key == 'b')}"}.get(compared)
        name_on_page = name_on_page or f"{title(name)}, text {1 + (key == 'b')}"
        if key == "b" and (compared != "models" or pair[0].shared.text_b_or_none(text_b) is not None):
            inputs.note_unreadable(shared, text_b, "Text B" if compared == "models" else "The second text B")
        if key == "b" and (compared != "models" or encoding.truncated != pair[0].encoding.truncated):
            inputs.warn_truncated(encoding, name_on_page)
        pair.append(ComparisonInput(key, shared, name_on_page, text_a, text_b, mask_positions, encoding))
    most = state.limits().max_masks
    for side in pair:
        masks = {*side.masked, *inputs.typed_masks(side.shared, side.encoding)}
        if len(masks) > most:
            raise ValueError(f"There are {len(masks)} masks; at most {most} are predicted at once. Unmask some.")
    return pair


def token_strips(pair, compared):
    """Draw the tokens of both sides, or of the one text that both read; a press hides a token."""
    first, second = pair
    inputs.token_strip(first.shared, first.encoding, "c_side_by_side_chips")
    if compared == "models":
        return

    def pressed(text):
        spot = MaskPosition.parse(text)
        if spot is None:
            return
        text_a, text_b, mask_positions = second_texts()
        now = dataclasses.replace(state.view(), masks=mask_positions).toggled(spot).masks
        if len(token_positions(second.encoding, now)) > state.limits().max_masks:
            st.toast(f"At most {state.limits().max_masks} masks fit here: unmask one first.")
            return
        set_second_texts(text_a, text_b, now)

    second_chips = chips(second.encoding, second.mask_positions, state.view().whole, second.shared.tokenizer.mask_id)
    words = _words(first)
    for chip in second_chips:
        chip["differs"] = chip["kind"] != "special" and chip["was"].lower() not in words
    components.chips("c_side_by_side_second", second_chips, (second.text_a, second.text_b), pressed)
    st.caption("Underlined: tokens of the second text that the first does not have.")


def _words(side):
    return {token.lower() for token, source in zip(side.encoding.tokens, side.encoding.sources) if source}


def save(name, result, pair, texts):
    """Offer a result of two sides in the menu Save; its figures name the models and texts of both.

    Args:
        name, result: as of `export.save`. pair: the two ``ComparisonInput``s.
        texts: (text A, text B) of each side, as it was read.
    """
    different = dict.fromkeys(text for both in texts for text in both)
    export.save(name, result, {"models": tuple(side.shared.name for side in pair)}, tuple(different))
