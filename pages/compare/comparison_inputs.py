"""The two sides of the page Side by side: which model reads which texts with which masks."""

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
from ui.widgets import comparison, inputs
from ui.widgets.formatting import title

COMPARED = {"models": "Two models", "texts": "Two texts", "both": "Both"}
_TEXTS = ("side_by_side.a", "side_by_side.b")
# A text beside another that differs where it matters.
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
    """One side.

    Attributes:
        key: "a" or "b". shared: its model. name: what it is called on the page.
        text_a, text_b, mask_positions: what it reads and hides. encoding: the texts as its model reads them.
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
        """The side's trace, with attention maps, or with hidden states instead."""
        with st.spinner("Reading …", show_time=True):
            if not hidden_states:
                return attention_trace(self.shared, self.masked, (self.text_a, self.text_b))

            def make():
                return self.shared.trace(self.text_a, self.text_b, self.masked, hidden_states=True)

            key = (self.shared.name, state.view().precision, self.text_a, self.text_b, self.masked)
            return cached(f"compare_states_{self.key}", key, make)


def second_texts():
    """(text A, text B, masks) of the second side: the link's, else one that goes with the first."""
    view = state.view()
    if any(view.setting(name) is not None for name in _TEXTS):
        mask_positions = filter(
            None, (MaskPosition.parse(text) for text in state.setting("side_by_side.mask", "").split(","))
        )
        most = state.limits().max_masks
        return state.setting(_TEXTS[0], ""), state.setting(_TEXTS[1], ""), tuple(sorted(set(mask_positions)))[:most]
    label = next((one.label for one in EXAMPLES if (one.a, one.b) == (view.a, view.b)), None)
    found = next((one for one in EXAMPLES if one.label == _SECOND.get(label)), _OTHER)
    return found.a, found.b, found.masks


def set_second_texts(text_a, text_b, mask_positions):
    """Write the second side's texts and masks into the link; from a callback."""
    for name, text in zip(_TEXTS, (text_a, text_b)):
        # Also an empty text is said: it is not the default that goes with the first.
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


def _typed():
    old_a, old_b, mask_positions = second_texts()
    new = tuple(state.typed_text(f"w_second_{name}", old) for name, old in zip("ab", (old_a, old_b)))
    changed = {name for name, old, now in zip("ab", (old_a, old_b), new) if old != now}
    set_second_texts(*new, tuple(spot for spot in mask_positions if spot.source not in changed))


def sides(what):
    """The two ``ComparisonInput``s, or None with the reason said."""
    view = state.view()
    names = (view.model, view.model) if what == "texts" else comparison.compared_models(view, "side_by_side")
    second = (view.a, view.b, view.masks) if what == "models" else second_texts()
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
    found = []
    for key, name, (text_a, text_b, mask_positions) in zip("ab", names, ((view.a, view.b, view.masks), second)):
        shared = inputs.model(name)
        encoding = inputs.encode_texts(shared) if key == "a" else shared.encode(text_a, text_b)
        if encoding is None:
            return None
        if "a" not in encoding.sources:
            st.info("There is nothing in the second text A that the model can read.", icon=":material/keyboard:")
            return None
        called = {"models": title(name), "texts": f"Text {1 + (key == 'b')}"}.get(what)
        called = called or f"{title(name)}, text {1 + (key == 'b')}"
        if key == "b" and (what != "models" or found[0].shared.text_b_or_none(text_b) is not None):
            inputs.note_unreadable(shared, text_b, "Text B" if what == "models" else "The second text B")
        if key == "b" and (what != "models" or encoding.truncated != found[0].encoding.truncated):
            inputs.warn_truncated(encoding, called)
        found.append(ComparisonInput(key, shared, called, text_a, text_b, mask_positions, encoding))
    most = state.limits().max_masks
    for side in found:
        masks = set(side.masked) | {
            at for at, one in enumerate(side.encoding.token_ids) if int(one) == side.shared.tokenizer.mask_id
        }
        if len(masks) > most:
            raise ValueError(f"There are {len(masks)} masks; at most {most} are predicted at once. Unmask some.")
    return found


def token_strips(pair, what):
    """The tokens of both sides to press, or of the one text that both read."""
    first, second = pair
    inputs.token_strip(first.shared, first.encoding, "c_side_by_side_chips")
    if what == "models":
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

    shown = chips(second.encoding, second.mask_positions, state.view().whole, second.shared.tokenizer.mask_id)
    words = _words(first)
    for chip in shown:
        chip["differs"] = chip["kind"] != "special" and chip["was"].lower() not in words
    components.chips("c_side_by_side_second", shown, (second.text_a, second.text_b), pressed)
    st.caption("Underlined in the second: what the first does not have.")


def _words(side):
    return {token.lower() for token, source in zip(side.encoding.tokens, side.encoding.sources) if source}
