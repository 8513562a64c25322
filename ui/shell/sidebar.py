"""The sidebar: the choice of the model and its precision."""

import streamlit as st

from bert_tf.architectures import BERT
from ui.session import directional_models, state, task_models
from ui.shell import frame
from ui.shell.view import PRECISIONS
from ui.widgets import comparison, model_offer
from ui.widgets.formatting import LANGUAGES, count, replaced, short_count, title

#: Bytes of a parameter below which the weights are stored in fewer than 16 bits.
_SIXTEEN_BITS = 2
_ASKED = "_model_of_link"  # the missing model that a link asks for, and the page of the link


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
        groups = _groups(installed)
        names = [info.name for members in groups.values() for info in members]
        group_of = {info.name: group for group, members in groups.items() for info in members}
        model = state.view().model
        if model not in names:
            if model:
                st.session_state[_ASKED] = (model, state.view().page)
            state.correct_view(model=installed[0].name)
        _note_replaced(installed[0].name)
        state.set_widget("w_model", state.view().model)
        to_get = [info.name for info in model_offer.missing()]
        bert_count = len(groups["BERT"])
        st.selectbox(
            "Model",
            [*names[:bert_count], *to_get, *names[bert_count:]],
            format_func=lambda name: _label(name, group_of.get(name)),
            key="w_model",
            on_change=_chosen,
            help="Every page uses this model. More models can be downloaded under Models.",
        )
        _facts(next(info for info in installed if info.name == state.view().model))
        _offer()
        st.segmented_control(
            "Precision",
            PRECISIONS,
            **state.bind_field("precision", "w_precision"),
            help="bfloat16 and int8 compute with fewer digits. They are about twice as fast if the processor supports "
            "them. The first prediction may change if two tokens have nearly the same probability: in bfloat16 in "
            "about one of 200 cases, in int8 in one of 70. float32 is exact; ablation, patching, contributions and "
            "gradients always compute in it.",
        )
        _note_float32(state.view().precision)


def _note_float32(precision):
    """Say that the page or the processor computes in float32 where another precision is chosen."""
    if precision == "float32":
        return
    from bert_tf.runtime.runtime import actual_precision  # which may import OpenVINO

    if frame.current_page().in_float32:
        st.caption("This page computes in float32.")
    elif actual_precision(precision) == "float32":
        st.caption(f"The processor here cannot compute in {precision}; it computes in float32.")


def _note_replaced(name):
    """Warn that the model called ``name`` is used in the place of the link's, as long as the page shows it."""
    asked, page = st.session_state.get(_ASKED, ("", ""))
    if asked and (page, name) == (state.view().page, state.view().model):
        st.warning(replaced("model", asked, title(name)))


def _label(name, group):
    """The label of a model in the choice; group: None for a released model that is not installed."""
    if group is None:
        return f"{title(name)} · get it"  # assets/components/nav.js greys labels that end so
    return title(name) if group == "BERT" else f"{group} · {title(name)}"


def _offer():
    """Draw a button for the released Base and Large that are not installed; it opens Models."""
    missing = model_offer.missing()
    if not missing:
        return
    st.button(
        f"Get the released {' and '.join(_size(info.name) for info in missing)}",
        icon=":material/download:",
        key="w_get_models",
        type="tertiary",
        help=f"{' and '.join(info.name for info in missing)}: not installed here. The button opens Models.",
        on_click=lambda: state.replace_view(frame.view_of("models")),
    )


def _size(name):
    """ "Large" of "bert-large-uncased"."""
    return name.split("-")[1].capitalize()


def _chosen():
    name = st.session_state["w_model"]
    if name in {info.name for info in model_offer.missing()}:
        state.replace_view(frame.view_of("models"))
    elif name is not None:
        state.replace_view(comparison.with_model(state.view(), name))


def _groups(installed):
    """The models by group, in the order of the choice; each group has its models in their order."""
    tasks = task_models.names()
    compared = set(directional_models.comparable_models().values()) - {installed[0].name}
    groups = {"BERT": [], "Family": [], "Tasks": [], "Teaching": []}
    for info in installed:
        if info.name in tasks:
            group = "Tasks"
        elif info.name in compared:
            group = "Teaching"
        else:
            group = "BERT" if info.config is None or info.config.architecture == BERT else "Family"
        groups[group].append(info)
    return groups


def _facts(info):
    lines, config = [], info.config
    if info.parameters:
        lines.append(f"{short_count(info.parameters)} parameters")
    if config is not None:
        lines.append(f"{count(config.num_hidden_layers, 'layer')} × {count(config.num_attention_heads, 'head')}")
    lines += [LANGUAGES.get(code, code) for code in info.languages]
    lines += _heads(info.heads or ())
    if info.heads_trained_here:
        lines.append("heads trained anew for this explorer")
    if info.parameters and info.size_bytes < _SIXTEEN_BITS * info.parameters:
        lines.append("stored in 8 bits")
    st.caption(" · ".join(lines))


def _heads(heads):
    """The heads of a model that BERT does not have, and BERT's heads that the model does not have, in words."""
    bert_heads = {"mlm": "masked words", "nsp": "next sentence"}
    more = {"sop": "sentence order", "replaced": "replaced tokens"}
    lines = [f"{name} head" for head, name in more.items() if head in heads]
    return lines + [f"no {name} head" for head, name in bert_heads.items() if heads and head not in heads]
