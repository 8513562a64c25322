"""The sidebar: the choice of the model and its precision."""

import streamlit as st

from ui.session import state
from ui.shell.view import PRECISIONS
from ui.widgets import comparison
from ui.widgets.formatting import escape_markdown, megabytes, title


def draw(installed):
    """Draw the choice of the model; if the view's model is not installed, replace it with the first of the list.

    Args:
        installed: ``ModelInfo``s of the models that may be chosen, the default first.
    """
    with st.sidebar:
        st.container(key="brand").markdown("**BERT explorer**")
        if not installed:
            st.warning("No model is installed. See Models.")
            return
        names = [info.name for info in installed]
        model = state.view().model
        if model not in names:
            if model:
                st.warning(
                    f"The link asks for the model “{escape_markdown(model[:60])}”, which is not installed here."
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
            help="Every page uses this model. More models can be downloaded under Models.",
        )
        info = installed[names.index(state.view().model)]
        _facts(info)
        st.segmented_control(
            "Precision",
            PRECISIONS,
            **state.bind_field("precision", "w_precision"),
            help="bfloat16 and int8 compute with fewer digits. They are about twice as fast if the processor supports "
            "them. The first prediction may change if two tokens have nearly the same probability. float32 is exact.",
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
    """The heads of a model that BERT does not have, and BERT's heads that the model does not have, in words."""
    bert_heads = {"mlm": "masked words", "nsp": "next sentence"}
    more = {"sop": "sentence order", "replaced": "replaced tokens"}
    lines = [f"{name} head" for head, name in more.items() if head in heads]
    return lines + [f"no {name} head" for head, name in bert_heads.items() if heads and head not in heads]
