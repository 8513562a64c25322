"""Models: the installed models, their cards, and the models to download."""

import re

import streamlit as st

from ui.session import (
    downloads,
    model_store,
    state,
    task_models,
)
from ui.shell.page import Page, Press
from ui.widgets.formatting import escape_markdown, megabytes, title

PAGE = Page(
    name="models",
    group="Models",
    order=1,
    title="Models",
    question="The models: those installed, and those to download",
    terms="download install Hugging Face hub upload checkpoint base large precision",
    summary="the installed models with their cards; the models to download; the limits of memory",
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
)


#: Head -> what it predicts.
_PREDICTS = {
    "mlm": "masked words",
    "nsp": "next sentence",
    "sop": "sentence order",
    "replaced": "replaced tokens",
}


def page():
    for info in model_store.catalogue():
        if info.installed:
            _installed(info)
    _released([info for info in model_store.catalogue() if not info.installed])
    _held()


def _held():
    """Draw the limits of the memory on the server."""
    limits = state.limits()
    st.header("What is held in memory", anchor=False)
    st.caption(
        f"For all visitors together: {limits.max_megabytes:,} MB of models, attention maps, trainings' snapshots and "
        f"results, and {limits.max_jobs} long computations at a time. For your visit: "
        f"{limits.max_session_megabytes:,} MB of results beside those on the screen, and a file of up to "
        f"{limits.max_file_kilobytes:,} kB for each page that reads one. What was not used for longest is dropped "
        "first and loaded or computed again when it is needed. When a tab is closed, its attention maps are dropped "
        "within a minute, its other results when Streamlit next removes the session, after two minutes at the earliest."
    )


def _installed(info):
    with st.container(border=True):
        st.header(escape_markdown(title(info.name)) if info.problem else title(info.name), anchor=False)
        if info.problem:
            st.warning(f"This folder cannot be used: {escape_markdown(info.problem)}", icon=":material/folder_off:")
            return
        st.caption(" · ".join(_facts(info)))
        card = info.path / "README.md" if info.path else None
        if card and card.is_file():
            with st.expander("Model card"):
                st.markdown(_without_images(_body(card.read_text("utf-8", errors="replace"))))


def _facts(info):
    facts = [info.name]
    if info.config:
        facts.append(
            f"{info.config.num_hidden_layers} layers of {info.config.hidden_size}, "
            f"{info.config.num_attention_heads} heads"
        )
    if info.parameters:
        facts.append(f"{info.parameters / 1e6:.1f} million parameters")
    facts.append(f"{megabytes(info.size_bytes)} on disk")
    named = [words for head, words in _PREDICTS.items() if head in (info.heads or ())]
    if named:
        facts.append("predicts " + " and ".join(named))
    task = task_models.names().get(info.name) if info.installed else None
    if task is not None:
        facts.append("fine-tuned to " + _learnt(task))
    elif info.heads is not None and not named:
        facts.append("no prediction heads")
    return facts + [info.licence] * bool(info.licence)


def _learnt(settings):
    """The task of a fine-tuned model, in a few words."""
    if settings.task == "classify" and settings.regression:
        return "predict a number for a text"
    known = (
        escape_markdown(", ".join(settings.labels)) if len(settings.labels) < 6 else f"{len(settings.labels)} labels"
    )
    return {
        "classify": f"classify texts: {known}",
        "tag": f"label words: {known}",
        "answer": "find answers in passages",
        "choose": "choose endings",
    }[settings.task]


def _body(card):
    """The text of a model card without the metadata at its top."""
    if card.startswith("---"):
        return card.partition("\n---")[2].lstrip("-\n") or card
    return card


def _without_images(card):
    """A card whose images are links: the visitor's browser would fetch an image from another server at once."""
    return re.sub(r"!+(?=\[)", "", card)


def _released(missing):
    if not missing:
        return
    st.header("Released models", anchor=False)
    if not downloads.downloads_allowed():
        st.caption("This deployment downloads no further models.")
        return
    st.caption(
        "Downloaded once from the Hugging Face hub into the models folder. A model folder that is put there appears "
        "here without a restart."
    )
    names = [info.name for info in missing]
    chosen = st.selectbox(
        "Model to download",
        names,
        key="w_fetch",
        format_func=lambda name: f"{name}, {megabytes(missing[names.index(name)].size_bytes)}",
    )
    info = missing[names.index(chosen)]
    st.caption(" · ".join([*_facts(info)[1:], info.source]).replace("on disk", "to download"))
    downloads.download_model_button(info, "models")
    for other in missing:
        if other is not info and downloads.is_running(downloads.shared_downloads().get(other.name)):
            downloads.download_model_button(other, "models")
