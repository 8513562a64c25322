"""The sidebar: which model the pages use."""

import streamlit as st

from ui.session import state
from ui.shell.view import PRECISIONS
from ui.widgets import comparison
from ui.widgets.formatting import escape_markdown, megabytes, title


def draw(installed):
    """Draw the shared model picker and settle the view's model on one that is there.

    Args:
        installed: ``ModelInfo`` of the models that may be chosen, the default first.
    """
    with st.sidebar:
        st.markdown("**BERT explorer**")
        if not installed:
            st.warning("No model is installed. See Models.")
            return
        names = [info.name for info in installed]
        wanted = state.view().model
        if wanted not in names:
            if wanted:
                st.warning(
                    f"The link asks for the model “{escape_markdown(wanted[:60])}”, which is not here."
                    f" {title(names[0])} is used."
                )
            state.correct_view(model=names[0])
        state.set_widget("w_model", state.view().model)
        st.selectbox(
            "Model",
            names,
            format_func=title,
            key="w_model",
            on_change=_chosen,
            help="Every page uses this model. More can be fetched under Models.",
        )
        info = installed[names.index(state.view().model)]
        _facts(info)
        st.segmented_control(
            "Precision",
            PRECISIONS,
            **state.bind_field("precision", "w_precision"),
            help="bfloat16 computes with fewer digits: up to twice as fast where the processor knows "
            "it, and a prediction may change in a close race.",
        )


def _chosen():
    name = st.session_state["w_model"]
    if name is not None:
        state.replace_view(comparison.with_model(state.view(), name))


def _facts(info):
    lines = []
    config = getattr(info, "config", None)
    if config is not None:
        lines.append(f"{config.num_hidden_layers} layers × {config.num_attention_heads} heads")
    if info.size_bytes:
        lines.append(f"{megabytes(info.size_bytes)} on disk")
    if info.licence:
        lines.append(str(info.licence))
    lines += _heads(info.heads or ())
    st.caption(" · ".join(lines))


def _heads(heads):
    """What a model can be asked beside BERT's two questions, and which of these it cannot."""
    missing = {"mlm": "masked words", "nsp": "next sentence"}
    more = {"sop": "sentence order", "replaced": "replaced tokens"}
    lines = [f"{what} head" for head, what in more.items() if head in heads]
    return lines + [f"no {what} head" for head, what in missing.items() if heads and head not in heads]
