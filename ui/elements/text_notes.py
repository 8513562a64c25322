"""Notes about texts that a model reads badly: words behind [UNK], and texts that do not seem English."""

import re
import unicodedata

import streamlit as st

from ui.session import model_store
from ui.widgets.formatting import count, escape_markdown

_MOST_NAMED, _LONGEST = 3, 20  # unknown words that are named, characters of each
_FEWEST = 6  # words of a text whose language is judged
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(
    "the of and a an to in is was that it for on with as at by he she they his her this be are".split()
)
#: Frequent words of German, French, Spanish, Italian, Portuguese and Dutch that are no English words.
_OTHER = frozenset(
    "der das und ist nicht ein eine mit den von zu im le la les et des un une est dans que qui pour du el los las y en "
    "por del se il di che per gli della sono os uma não para com em een het van dat niet op te".split()
)


def draw(shared, encoding, texts):
    """Draw a note for each thing that the model reads badly.

    Args:
        shared: ``SharedModel``. encoding: the ``Encoding`` of the texts. texts: dict from "a" and "b" to a text.
    """
    unknown = unknown_words(encoding, texts, shared.tokenizer.unk_id)
    if unknown:
        named = ", ".join(f"“{escape_markdown(word[:_LONGEST])}”" for word in unknown[:_MOST_NAMED])
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        st.caption(
            f"{count(len(unknown), 'word')} not in the vocabulary, read as [UNK]: {named}{more}. The model cannot know "
            "what stood there."
        )
    languages = next((info.languages for info in model_store.installed() if info.name == shared.name), ())
    if languages == ("en",) and any(seems_foreign(text) for text in texts.values()):
        st.caption("The text does not seem English; this model was trained on English alone, so expect little of it.")


def unknown_words(encoding, texts, unknown_id):
    """The different words of the texts that the model reads as [UNK], in their order."""
    words = {}
    for token_id, offsets, source in zip(encoding.token_ids, encoding.offsets, encoding.sources):
        if token_id == unknown_id and source is not None and offsets is not None:
            word = texts[source][slice(*offsets)]
            # Whoever types [UNK] means it.
            if word != "[UNK]":
                words[word] = None
    return list(words)


def seems_foreign(text):
    """Whether a text is written in other letters than Latin ones, or has more frequent words of another language."""
    words = _WORD.findall(text)
    letters = "".join(words)
    latin = sum(letter.isascii() or unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
    if len(letters) >= _FEWEST and latin < len(letters) / 2:
        return True
    lower = [word.lower() for word in words]
    return len(words) >= _FEWEST and sum(word in _OTHER for word in lower) > sum(word in _ENGLISH for word in lower)
