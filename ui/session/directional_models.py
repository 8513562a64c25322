"""The readers that see different sides of a word: which of the models here they are, and the models themselves."""

import streamlit as st

from ui.session import model_store
from ui.session.model_store import SharedModel

#: `Architecture.attention_direction` -> what the page calls a model of it, and what it says the model sees.
DIRECTIONS = {
    "left_to_right": ("Left to right", "It has read what stands before the word, and nothing after it."),
    "two_one_way": (
        "Two one-way readers",
        "One has read what stands before the word, the other what stands after it; their results meet at the end.",
    ),
    "bidirectional": ("Both ways: BERT", "Every layer has looked at both sides at once."),
}


def comparable_models():
    """The readers to put side by side: a dict way -> name, of models with vocabularies of one size.

    They stand around a left-to-right reader (else a two-one-way one), the one with most of the others: a BERT of its
    own shape, and two one-way readers, of its shape where there are such. What a person added comes before what ships.
    A way that no model here reads is left out.
    """
    able = [info for info in reversed(model_store.installed()) if info.config and info.heads and "mlm" in info.heads]
    by_way = {way: [info for info in able if info.config.architecture.attention_direction == way] for way in DIRECTIONS}
    return max((_around(one, by_way) for one in by_way["left_to_right"] or by_way["two_one_way"]), key=len, default={})


def _around(one, by_way):
    shape, found = _shape(one), {one.config.architecture.attention_direction: one}
    for way in DIRECTIONS:
        alike = [info for info in by_way[way] if _shape(info) == shape]
        if way == "two_one_way" and not alike:
            alike = [info for info in by_way[way] if info.config.vocab_size == one.config.vocab_size]
        if way not in found and alike:
            found[way] = alike[0]
    return {way: found[way].name for way in DIRECTIONS if way in found}


def _shape(info):
    config = info.config
    return config.vocab_size, config.num_hidden_layers, config.hidden_size // config.stacks


@st.cache_resource(max_entries=3, show_spinner=False)
def load_directional_model(name: str) -> SharedModel:
    """A reader, held apart from the models that visitors choose: they would put each other out of memory."""
    return SharedModel(name, model_store._read(name))
