"""The readers that see different sides of a word: which of the models here they are, and the models themselves."""

import itertools

import streamlit as st

from ui import models
from ui.models import SharedModel

#: How a model reads (`bert_tf.family.Member.reads`) -> what the page calls it and says it sees.
WAYS = {
    "left": ("Left to right", "It has read what stands before the word, and nothing after it."),
    "apart": (
        "Two one-way readers",
        "One has read what stands before the word, the other what stands after it; their results meet at the end.",
    ),
    "both": ("Both ways: BERT", "Every layer has looked at both sides at once."),
}


def offered():
    """The readers to put side by side: a dict way -> name, one for each way; empty where not all three are here.

    All have one vocabulary and one width, the two that are a single stack as many layers too.
    """
    able = [info for info in models.installed() if info.config and info.heads and "mlm" in info.heads]
    of = {way: [info for info in able if info.config.member.reads == way] for way in WAYS}
    for left, apart, both in itertools.product(*of.values()):
        layers = [info.config.num_hidden_layers for info in (left, both)]
        if _shape(left) == _shape(apart) == _shape(both) and layers[0] == layers[1]:
            return dict(zip(WAYS, (left.name, apart.name, both.name)))
    return {}


def _shape(info):
    return info.config.vocab_size, info.config.hidden_size // info.config.stacks


@st.cache_resource(max_entries=3, show_spinner=False)
def reader(name: str) -> SharedModel:
    """A reader, held apart from the models that visitors choose: they would put each other out of memory."""
    return SharedModel(name, models._read(name), 0.0)
