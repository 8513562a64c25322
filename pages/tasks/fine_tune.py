"""Fine-tune: a model is trained on the visitor's file in the background."""

import dataclasses

import streamlit as st

from bert_tf.finetuning.learning_record import LearningRecord
from pages.tasks.snippets.fine_tune import snippet
from ui.session import (
    finetuning_jobs,
    model_store,
    state,
    task_models,
)
from ui.shell import error_messages, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures
from ui.widgets.formatting import escape_markdown, percent, title

PAGE = Page(
    name="fine_tune",
    group="Tasks",
    order=3,
    title="Fine-tune",
    question="Teach it a task of your own",
    terms="train classifier token classification question answering learning rate epochs own data",
    summary=("a model fine-tuned on the visitor's file in the background; its curves; it opens in the other pages"),
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
    settings=("run",),
    settings_help="name of a training started here",
    snippet=snippet,
    snippet_language="bash",
)


_REFRESH = 2.0  # seconds between two updates of the page while a training runs
_DEFAULT_MODEL = "bert-small-uncased-embedded"
_TASK_TITLES = {
    "classify": "Text classification",
    "tag": "Token classification",
    "answer": "Question answering",
    "choose": "Multiple choice",
}
_LABEL_TITLES = {"One of several": "Single label", "Any number of several": "Multi-label", "A number": "Regression"}


def page():
    if not state.limits().train:
        st.info("Training from the page is switched off here.", icon=":material/block:")
        return
    _form()
    trainings = finetuning_jobs.names()
    if not trainings:
        return
    name = trainings[0]
    if len(trainings) > 1:
        name = st.selectbox(
            "Training",
            trainings,
            width=420,
            **state.bind_setting("fine_tune.run", "w_fine_tune_run", trainings[0], trainings),
        )
    live = finetuning_jobs.started(name).status in ("running", "ending")
    error_messages.fragment(_watch, run_every=_REFRESH if live else None)(name)


def _form():
    limits = state.limits()
    plain_models = [info for info in model_store.installed() if info.name not in task_models.names() and info.config]
    left, right = st.columns(2, gap="large")
    with left:
        task = st.segmented_control(
            "Task",
            list(finetuning_jobs.TASKS),
            format_func=_TASK_TITLES.get,
            default="classify",
            key="w_fine_tune_task",
        )
        task = task or "classify"
        file = st.file_uploader("Examples", type=list(finetuning_jobs.TASKS[task][1]), key=f"w_fine_tune_file_{task}")
        st.caption(finetuning_jobs.TASKS[task][2])
        answers = None
        if task == "classify":
            answers = st.segmented_control(
                "Labels of a text",
                list(finetuning_jobs.ANSWER_KINDS),
                format_func=_LABEL_TITLES.get,
                default="One of several",
                key="w_fine_tune_answers",
                help="Single label: one of several classes. Multi-label: any number of classes, separated by |. "
                "Regression: a number, such as 3.5.",
            )
    with right:
        offered = [info.name for info in plain_models if finetuning_jobs.can_learn(task, info.config)]
        if not offered:
            st.info(
                "No installed model can learn this task. The page Models lists the models to download.",
                icon=":material/block:",
            )
            return
        first = offered.index(_DEFAULT_MODEL) if _DEFAULT_MODEL in offered else 0
        model = st.selectbox("Start from", offered, index=first, format_func=title, key="w_fine_tune_model")
        epochs = st.slider("Epochs", 1, limits.max_epochs, min(3, limits.max_epochs), key="w_fine_tune_epochs")
        top_only = _top_only(model)
        pressed = st.button("Train", type="primary", icon=":material/play_arrow:", key="w_fine_tune_start")
    st.caption(
        f"A fifth of the examples is held out for evaluation. At most {limits.max_text:,} bytes and "
        f"{limits.max_minutes} minutes here; everybody who opens this explorer sees the model."
    )
    file_name = file.name if file else f"examples.{finetuning_jobs.TASKS[task][1][0]}"
    snippets.give(task, finetuning_jobs.options(task, model, epochs, top_only, answers), file_name)
    if pressed:
        _start(task, file, model, epochs, top_only, answers)


def _top_only(model):
    """The toggle that freezes the lowest layers; False for a model whose layers cannot be frozen."""
    learning = finetuning_jobs.trainable_layers(model)
    if not finetuning_jobs.frozen_layers(model):
        reason = "share one set of weights" if learning > 2 else "are few"
        st.caption(f"The whole model is trained: its layers {reason}.")
        return False
    return st.toggle(
        f"Train only the {'two' if learning == 2 else learning} highest layers",
        value=True,
        key="w_fine_tune_top",
        help="Much faster, and on small files often almost as good.",
    )


def _start(task, file, model, epochs, top_only, answers):
    if file is None:
        st.warning("Choose a file of examples first.", icon=":material/upload_file:")
        return
    try:
        name = finetuning_jobs.start(task, file.name, file.getvalue(), model, epochs, top_only, answers)
        state.set_setting("fine_tune.run", name, "")
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(str(error)), icon=":material/block:")


def _watch(name):
    """Draw a training; a fragment that runs again by itself while the training runs."""
    training = finetuning_jobs.started(name)
    if training is None:
        state.rerun()  # Another visitor has deleted it.
        return
    status = training.status
    if status not in ("running", "ending") and st.session_state.get("_fine_tune_live") == name:
        # It has just ended: the pickers get the new model, and the fragment stops running again.
        finetuning_jobs.delete_input(name)
        st.session_state["_fine_tune_live"] = None
        model_store.catalogue.clear()
        state.rerun()
    st.session_state["_fine_tune_live"] = name if status in ("running", "ending") else None
    status_text = {
        "running": "Training …",
        "ending": "Saving …",
        "stopped": "Stopped.",
        "done": "Done.",
        "failed": "Failed.",
    }
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{status_text[status]}**", width="content")
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
            # Not in a callback: after one, Streamlit would run this fragment alone.
            state.replace_view(_view_of_model(name))
            state.rerun()
        if ended and st.button("Delete", icon=":material/delete:", key="w_fine_tune_delete", width="content"):
            finetuning_jobs.remove(name)
            model_store.catalogue.clear()
            state.rerun()
    if status == "failed":
        st.error(escape_markdown(training.problem), icon=":material/error:")
    if status == "stopped":
        st.caption(
            "The best model of the evaluations until then was saved."
            if finetuning_jobs.has_model(name)
            else "It was stopped before the first evaluation, so there is no model."
        )
    _curves(name, status)


def _view_of_model(name):
    """The view that opens the model on the page Task predictions."""
    view = dataclasses.replace(state.view(), page="task_predictions", a="", b="", masks=())
    return view.with_setting("task_predictions.model", name)


def _curves(name, status):
    records, rounds = finetuning_jobs.records(name)
    if not records:
        if status in ("running", "ending"):
            st.info(
                "The file is being read and the model built; the first numbers come in a moment.",
                icon=":material/hourglass_top:",
            )
        return
    last = records[-1]
    total = finetuning_jobs.total_updates(name)
    if total:
        st.progress(min(last["step"] / total, 1.0), text=f"Update {last['step']:,} of {total:,}")
    numbers = [f"loss **{last['loss']:.3f}**"]
    task, metric = finetuning_jobs.task_and_metric(name)
    best_scores = next((evaluation["dev"] for evaluation in reversed(rounds) if evaluation["best"]), {})
    if metric in best_scores:
        # SQuAD's scores are percentages already; a correlation is no share.
        score = best_scores[metric] / 100 if task == "answer" else best_scores[metric]
        written = f"{score:.3f}" if metric == "spearman" else percent(score)
        numbers.append(f"{_SCORES[metric]} of the saved model on the held-out examples **{written}**")
    record = LearningRecord(name, metric or "", tuple(records), tuple(rounds))
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    row.markdown(" · ".join(numbers), width="content")
    with row:
        export.save(f"{name}-learning", record)
    figures.show(
        "Loss and score of the training",
        record.figure(dark=state.is_dark()),
        config=export.plot_config("learning"),
        key="w_fine_tune_curve",
    )
    st.caption(
        "Measured on the held-out examples of this file, which also chose the best epoch: on other texts the scores "
        "are lower, and with few examples they vary by chance."
    )


# Metric -> its name on the page.
_SCORES = {"accuracy": "accuracy", "f1": "F1", "f1_micro": "F1", "spearman": "rank correlation"}
