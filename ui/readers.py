"""The readers that see different sides of a word: which of the models here they are, and the models themselves."""

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
    """The readers to put side by side: a dict way -> name, of models with the same vocabulary.

    The BERT is the one of the left-to-right reader's own shape. A way that no model here reads is left out.
    """
    able = [info for info in models.installed() if info.config and info.heads and "mlm" in info.heads]
    found = {}
    for way in ("left", "apart"):
        found |= {way: info for info in able if info.config.member.reads == way and way not in found}
    one = found.get("left") or found.get("apart")
    if one is None:
        return {}
    alike = [info for info in able if info.config.member.reads == "both" and _shape(info) == _shape(one)]
    if alike:
        found["both"] = alike[0]
    return {way: info.name for way, info in found.items()}


def _shape(info):
    config = info.config
    return config.vocab_size, config.num_hidden_layers, config.hidden_size // config.stacks


@st.cache_resource(max_entries=3, show_spinner=False)
def reader(name: str) -> SharedModel:
    """A reader, held apart from the models that visitors choose: they would put each other out of memory."""
    return SharedModel(name, models._read(name), 0.0)
