"""Models: the installed models, their cards, and the models to download."""

import re

import streamlit as st

from bert_tf.architectures import ARCHITECTURES
from bert_tf.checkpoints import ModelInfo, UnknownModel, find, look_up, parse_repository
from bert_tf.errors import DownloadError
from bert_tf.parameters import count_in_words
from ui.session import (
    downloads,
    model_store,
    state,
    task_models,
)
from ui.shell.limits import ROOT
from ui.shell.page import Page, Press
from ui.widgets import model_offer
from ui.widgets.formatting import count, escape_markdown, megabytes, title

PAGE = Page(
    name="models",
    group="Models",
    order=1,
    title="Models",
    question="The models: those installed, and those to download",
    terms="download install Hugging Face hub own folder checkpoint export convert base large precision",
    summary="the installed models with their cards; the models to download, and any other model of the hub; how to add "
    "a model folder of one's own; the limits of memory",
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
#: A link of a card to a file beside it.
_TO_A_FILE = re.compile(r"\[([^\]\n]+)\]\((?![a-z][a-z+.-]*:|#)[^)\n]*\)", re.IGNORECASE)
#: What the head for words predicts in a model that does not read both ways at once.
_PREDICTS_ONE_WAY = {
    "left_to_right": "each word from those before it",
    "two_one_way": "each word from those before and after it",
}


def page():
    model_offer.draw("models")
    _own_folder()
    offered = {info.name for info in model_offer.missing()}
    for info in model_store.catalogue():
        if info.installed:
            _installed(info)
    _released([info for info in model_store.catalogue() if not info.installed and info.name not in offered])
    _any_repository()
    _memory_limits()
    with st.expander("Licences that ask for their text in every copy", icon=":material/gavel:"):
        st.text((ROOT / "NOTICE").read_text("utf-8"))


def _own_folder():
    """Draw how a model folder of one's own gets into the list."""
    with st.expander("A model of your own", icon=":material/folder_open:"):
        st.markdown(
            "A model folder in this project's format, or in that of Hugging Face (safetensors), Google (TensorFlow "
            "checkpoint) or KerasNLP, is read as it is. Copy it into the models folder of the machine that runs this "
            "explorer; it then stands in this list and in the sidebar, without a restart. The first command prints the "
            "models folder, the second reads the models from another one."
        )
        st.code(
            "python -m bert_tf models\nBERT_TF_HOME=/path/to/models streamlit run app.py",
            language="bash",
            wrap_lines=True,
        )


def _memory_limits():
    """Draw the limits of the memory on the server."""
    limits = state.limits()
    st.header("What is held in memory", anchor=False)
    st.caption(
        f"The server stays near {limits.max_megabytes:,} MB of memory, for itself and for all visitors' models, "
        f"attention maps, trainings' snapshots and results, and runs {limits.max_jobs} long computations at a time. "
        f"Your visit may use {limits.max_session_megabytes:,} MB of results beside those on the screen, and a file of "
        f"up to {limits.max_file_kilobytes:,} kB for each page that reads one.",
        help="What was not used for longest is dropped first and loaded or computed again when it is needed. When a "
        "tab is closed, its attention maps are dropped within a minute and its other results within two minutes.",
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
                st.markdown(_shown(_body(card.read_text("utf-8", errors="replace"))))


def _facts(info):
    facts = [info.name]
    if info.config:
        facts.append(
            f"{count(info.config.num_hidden_layers, 'layer')} of {info.config.hidden_size}, "
            f"{count(info.config.num_attention_heads, 'head')}"
        )
    if info.parameters:
        facts.append(count_in_words(info.parameters))
    facts.append(f"{megabytes(info.size_bytes)} on disk")
    named = [words for head, words in _PREDICTS.items() if head in (info.heads or ())]
    if "mlm" in (info.heads or ()) and info.config:
        named[0] = _PREDICTS_ONE_WAY.get(info.config.architecture.attention_direction, named[0])
    if named:
        facts.append("predicts " + " and ".join(named))
    task = task_models.names().get(info.name) if info.installed else None
    if task is not None:
        facts.append("fine-tuned to " + _learnt(task))
    elif info.heads is not None and not named:
        facts.append("no prediction heads")
    return [*facts, escape_markdown(info.licence or "licence not stated")]


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
        "similarity": "compare sentences",
    }[settings.task]


def _body(card):
    """The text of a model card without the metadata at its top."""
    if card.startswith("---"):
        return card.partition("\n---")[2].lstrip("-\n") or card
    return card


def _shown(card):
    """A card whose images are links, and whose links to files beside it are plain text.

    The visitor's browser would fetch an image from another server at once, and this server has no such files.
    """
    return _TO_A_FILE.sub(r"\1", re.sub(r"!+(?=\[)", "", card))


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


_LOOKED_UP = "_hub_repository"  # in the session: the name that was looked up, and a `HubRepository` or an error message


def _any_repository():
    """Draw the field for any repository of the hub: its facts first, then the button that downloads it."""
    limits = state.limits()
    if not limits.download or not limits.repositories:
        return
    st.header("Any model of the hub", anchor=False)
    titles = [
        architecture.title
        for architecture in ARCHITECTURES.values()
        if architecture.in_transformers and architecture.attention_direction == "bidirectional"
    ]
    allowed = "" if "*" in limits.repositories else f" This deployment allows {', '.join(limits.repositories)}."
    st.caption(
        f"{', '.join(titles[:-1])} or {titles[-1]}, as OWNER/NAME or OWNER/NAME@REVISION. Its settings, licence and "
        f"size are read before its weights are fetched.{escape_markdown(allowed)}"
    )
    with st.form("hub_repository", border=False):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            typed = st.text_input("Repository", key="w_hub_name", placeholder="OWNER/NAME", max_chars=300)
            pressed = st.form_submit_button("Look it up", icon=":material/travel_explore:", width="content")
    if pressed:
        with st.spinner("The hub is being asked …"):
            st.session_state[_LOOKED_UP] = _looked_up(typed.strip())
    if _LOOKED_UP in st.session_state:
        _draw_repository(*st.session_state[_LOOKED_UP])
    looked_up_name = st.session_state.get(_LOOKED_UP, ("",))[0]
    for name in downloads.shared_downloads().running():
        if name != looked_up_name and parse_repository(name):
            downloads.download_model_button(_info(name), "hub")


def _looked_up(name):
    """The name, and what the hub says about it: a `HubRepository`, or a sentence."""
    repository = parse_repository(name)
    if repository is not None and not state.limits().gets(repository[0]):
        return name, f"This deployment does not download {repository[0]}."
    try:
        return name, look_up(name)
    except (DownloadError, UnknownModel) as error:
        return name, str(error)


def _draw_repository(name, repository):
    if isinstance(repository, str):
        st.error(escape_markdown(repository), icon=":material/cloud_off:")
        return
    st.caption(escape_markdown(" · ".join(repository.facts())))
    if repository.problem:
        st.warning(escape_markdown(repository.problem), icon=":material/block:")
        return
    try:
        st.caption(f"It is installed as {escape_markdown(find(name, allow_paths=False).name)}.")
    except UnknownModel:
        downloads.download_model_button(_info(name, repository), "hub")


def _info(name, repository=None):
    return ModelInfo(
        name,
        None,
        0 if repository is None else repository.size_bytes,
        licence="" if repository is None else repository.licence,
        source="",
        heads=None,
        installed=False,
        kind="released",
    )
