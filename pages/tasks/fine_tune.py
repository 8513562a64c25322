"""Fine-tune: a model trained on the visitor's own file, while the page goes on."""

import streamlit as st

from bert_tf.finetuning.learning_record import LearningRecord
from pages.tasks.snippets.fine_tune import snippet
from ui.session import (
    finetuning_jobs,
    model_store,
    state,
    task_models,
)
from ui.shell import frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures
from ui.widgets.formatting import escape_markdown, percent, title

PAGE = Page(
    name="fine_tune",
    group="Tasks",
    order=3,
    title="Fine-tune",
    question="Teach it a task of your own",
    summary=(
        "a model fine-tuned on the visitor's file, while the page goes on; its curves; it opens in the other pages"
    ),
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
    settings=("run",),
    settings_help="name of a training started here",
    snippet=snippet,
    snippet_language="bash",
)


_LOOK = 2.0  # seconds between two looks at a training that goes on
_DEFAULT_MODEL = "bert-small-uncased-embedded"


def page():
    if not state.limits().train:
        st.info("Training from the page is switched off here.", icon=":material/block:")
        return
    _form()
    begun = finetuning_jobs.names()
    if not begun:
        return
    name = begun[0]
    if len(begun) > 1:
        name = st.selectbox(
            "Training", begun, width=420, **state.bind_setting("fine_tune.run", "w_fine_tune_run", begun[0], begun)
        )
    live = finetuning_jobs.started(name).status in ("running", "ending")
    st.fragment(_watch, run_every=_LOOK if live else None)(name)


def _form():
    limits = state.limits()
    plain_models = [info for info in model_store.installed() if info.name not in task_models.names() and info.config]
    left, right = st.columns(2, gap="large")
    with left:
        task = st.segmented_control(
            "Task",
            list(finetuning_jobs.TASKS),
            format_func=lambda one: finetuning_jobs.TASKS[one][0],
            default="classify",
            key="w_fine_tune_task",
        )
        task = task or "classify"
        file = st.file_uploader("Examples", type=list(finetuning_jobs.TASKS[task][1]), key=f"w_fine_tune_file_{task}")
        st.caption(finetuning_jobs.TASKS[task][2])
        answers = None
        if task == "classify":
            answers = st.segmented_control(
                "A text is given",
                list(finetuning_jobs.ANSWER_KINDS),
                default="One of several",
                key="w_fine_tune_answers",
                help="Any number of several: the labels of a text parted by |. A number: a score such as 3.5.",
            )
    with right:
        offered = [info.name for info in plain_models if finetuning_jobs.can_learn(task, info.config)]
        if not offered:
            st.info(
                "No model that is here can learn this task. Models tells which there are to fetch.",
                icon=":material/block:",
            )
            return
        first = offered.index(_DEFAULT_MODEL) if _DEFAULT_MODEL in offered else 0
        model = st.selectbox("Start from", offered, index=first, format_func=title, key="w_fine_tune_model")
        epochs = st.slider("Epochs", 1, limits.max_epochs, min(3, limits.max_epochs), key="w_fine_tune_epochs")
        top_only = _top_only(model)
        pressed = st.button("Train", type="primary", icon=":material/play_arrow:", key="w_fine_tune_start")
    st.caption(
        f"A fifth of the examples is held back for measuring. At most {limits.max_text:,} bytes and "
        f"{limits.max_minutes} minutes here; everybody who opens this explorer sees the model."
    )
    given = file.name if file else f"examples.{finetuning_jobs.TASKS[task][1][0]}"
    snippets.give(task, finetuning_jobs.options(task, model, epochs, top_only, answers), given)
    if pressed:
        _start(task, file, model, epochs, top_only, answers)


def _top_only(model):
    """The switch, where the lowest layers can be kept as they are while the others learn."""
    learning = finetuning_jobs.trainable_layers(model)
    if not finetuning_jobs.frozen_layers(model):
        why = "share one set of weights" if learning > 2 else "are few"
        st.caption(f"All of it learns: its layers {why}.")
        return False
    return st.toggle(
        f"Only the {'two' if learning == 2 else learning} highest layers learn",
        value=True,
        key="w_fine_tune_top",
        help="Much faster, and often nearly as good on small files.",
    )


def _start(task, file, model, epochs, top_only, answers):
    if file is None:
        st.warning("Choose a file of examples first.", icon=":material/upload_file:")
        return
    try:
        begun = finetuning_jobs.start(task, file.name, file.getvalue(), model, epochs, top_only, answers)
        state.set_setting("fine_tune.run", begun, "")
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(str(error)), icon=":material/block:")


def _watch(name):
    """Redrawn by itself while the training goes on."""
    training = finetuning_jobs.started(name)
    if training is None:
        state.rerun()  # another visitor has deleted it
        return
    status = training.status
    if status not in ("running", "ending") and st.session_state.get("_fine_tune_live") == name:
        # It has just ended: the model appears in the pickers, and the page rests.
        finetuning_jobs.delete_input(name)
        st.session_state["_fine_tune_live"] = None
        model_store.catalogue.clear()
        state.rerun()
    st.session_state["_fine_tune_live"] = name if status in ("running", "ending") else None
    said = {
        "running": "It trains.",
        "ending": "It saves …",
        "stopped": "Stopped.",
        "done": "Done.",
        "failed": "It failed.",
    }
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{said[status]}**", width="content")
        st.markdown(escape_markdown(name), width="content")
        if status == "running" and st.button("Stop", icon=":material/stop:", key="w_fine_tune_stop", width="content"):
            training.end("stop")
            state.rerun()
        ended = status not in ("running", "ending")
        if (
            ended
            and finetuning_jobs.has_model(name)
            and st.button("Try it", icon=":material/arrow_forward:", key="w_fine_tune_try", width="content")
        ):
            # A callback would change the view, and the run after it would draw this part of the page alone.
            state.replace_view(_opened(name))
            state.rerun()
        if ended and st.button("Delete", icon=":material/delete:", key="w_fine_tune_delete", width="content"):
            finetuning_jobs.remove(name)
            model_store.catalogue.clear()
            state.rerun()
    if status == "failed":
        st.error(escape_markdown(training.problem), icon=":material/error:")
    if status == "stopped":
        st.caption(
            "The best model that was measured until then is kept."
            if finetuning_jobs.has_model(name)
            else "It was stopped before anything was measured, so there is no model."
        )
    _curves(name, status)


def _opened(name):
    import dataclasses

    view = dataclasses.replace(state.view(), page="task_predictions", a="", b="", masks=())
    return view.with_setting("task_predictions.model", name)


def _curves(name, status):
    records, rounds = finetuning_jobs.records(name)
    if not records:
        if status in ("running", "ending"):
            st.info(
                "The file is read and the model made; the first figures come in a moment.",
                icon=":material/hourglass_top:",
            )
        return
    last = records[-1]
    total = finetuning_jobs.total_updates(name)
    if total:
        st.progress(min(last["step"] / total, 1.0), text=f"Update {last['step']:,} of {total:,}")
    shown = [f"loss **{last['loss']:.3f}**"]
    task, metric = finetuning_jobs.task_and_metric(name)
    best_scores = next((one["dev"] for one in reversed(rounds) if one["best"]), {})
    if metric in best_scores:
        # SQuAD's scores are of a hundred already, a correlation is no share.
        score = best_scores[metric] / 100 if task == "answer" else best_scores[metric]
        said = f"{score:.3f}" if metric == "spearman" else percent(score)
        shown.append(f"{_SCORES[metric]} of the model that is kept, on what was held back, **{said}**")
    record = LearningRecord(name, metric or "", tuple(records), tuple(rounds))
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    row.markdown(" · ".join(shown), width="content")
    with row:
        export.save(f"{name}-learning", record)
    figures.show(
        "Loss and score of the training",
        record.figure(dark=frame.is_dark()),
        config=export.plot_config("learning"),
        key="w_fine_tune_curve",
    )
    st.caption(
        "Measured on what was held back of this file, which also chose the best round: on other texts it does worse, "
        "and with few examples the numbers move by chance."
    )


# What models are chosen by.
_SCORES = {"accuracy": "accuracy", "f1": "F1", "f1_micro": "F1", "spearman": "rank correlation"}
