"""Fine-tune: a model is trained on the visitor's file in the background."""

import dataclasses
import math

import streamlit as st

from bert_tf.checkpoints import models_dir
from bert_tf.finetuning.learning_record import LearningRecord
from pages.tasks.snippets.fine_tune import snippet
from ui import ownership
from ui.elements import tables, training_controls, visitor_cookie
from ui.session import finetuning_jobs, model_store, runs, state, task_models
from ui.session.session_cache import cached
from ui.shell import error_messages, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, file_input
from ui.widgets.formatting import count, escape_markdown, share, title

PAGE = Page(
    name="fine_tune",
    group="Tasks",
    order=3,
    title="Fine-tune",
    question="Teach it a task of your own",
    terms="train classifier token classification question answering learning rate epochs own data file upload CSV",
    summary=("a model fine-tuned on the visitor's file in the background; its curves; it opens in the other pages"),
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
    settings=("run",),
    settings_help="name of a training started here",
    snippet=snippet,
    snippet_language="bash",
)


_REFRESH = 2.0  # seconds between two updates of the page while a training runs
_MOST_LABELS = 20  # labels that are listed with their counts
_DEFAULT_MODEL = "bert-small-uncased-embedded"
_LEARNT = "_fine_tune_learnt"  # in the session: the uploaded file from which it learns


def page():
    if not state.limits().train:
        st.info("Training from the page is switched off here.", icon=":material/block:")
        return
    visitor_cookie.draw()
    _form()
    trainings = finetuning_jobs.names()
    own = finetuning_jobs.last_started()
    training_controls.failure(own, finetuning_jobs.problem(own), bool(own) and finetuning_jobs.has_model(own))
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
    runs.note_replaced(name, "_shown_fine_tuning")
    training = finetuning_jobs.started(name)  # None if another visitor has just deleted it
    live = training is not None and training.status in ("running", "ending")
    error_messages.fragment(_watch, run_every=_REFRESH if live else None)(name)


def _form():
    limits = state.limits()
    left, right = st.columns(2, gap="large")
    with left:
        task, label_kind, file_name, content = _examples(limits)
    with right:
        settings = _settings(task, limits)
        if settings is None:
            return
        name = st.text_input(
            "Name",
            max_chars=finetuning_jobs.LONGEST_NAME,
            placeholder="film reviews",
            help="Optional. The name of the new model; the date and the time are added.",
            **state.bind_kept("w_fine_tune_name", ""),
        )
        pressed = st.button("Train", type="primary", icon=":material/play_arrow:", key="w_fine_tune_start")
    st.caption(
        f"A fifth of the examples is held out for evaluation. A training takes at most {limits.max_minutes} minutes "
        f"here; {ownership.rule()}"
    )
    example_file = file_name or f"examples.{finetuning_jobs.TASKS[task].endings[0]}"
    snippets.give(task, finetuning_jobs.options(task, *settings, label_kind), example_file)
    if not file_name:
        if pressed:
            st.warning("Choose a file of examples first.", icon=":material/upload_file:")
        return
    try:
        if pressed:
            started = finetuning_jobs.start(task, file_name, content, *settings, label_kind, name)
            st.session_state[_LEARNT] = (file_name, content)
            state.set_setting("fine_tune.run", started, "")
        # Folded once it is learnt from, so that the training's progress below is in sight.
        is_learnt = st.session_state.get(_LEARNT) == (file_name, content)
        _look(task, file_name, content, settings[0], label_kind, expanded=not is_learnt)
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(error_messages.user_message(error)), icon=":material/block:")


def _examples(limits):
    """The widgets for what is learnt: (task, kind of labels or None, name of the file or None, its bytes)."""
    task = st.segmented_control(
        "Task",
        list(finetuning_jobs.TASKS),
        format_func=lambda task: finetuning_jobs.TASKS[task].title,
        required=True,
        **state.bind_kept("w_fine_tune_task", "classify", finetuning_jobs.TASKS),
    )
    kind = finetuning_jobs.TASKS[task]
    st.caption(kind.caption)
    label_kind = None
    if task == "classify":
        label_kind = st.segmented_control(
            "Labels of a text",
            list(finetuning_jobs.LABEL_KINDS),
            required=True,
            **state.bind_kept("w_fine_tune_labels", "Single label", finetuning_jobs.LABEL_KINDS),
        )
        st.caption(finetuning_jobs.LABEL_KINDS[label_kind][1])
    with st.container(key="fine_tune_file"):
        file_name, content = file_input.uploaded(
            f"fine_tune_{task}",
            f"Examples ({', '.join(kind.endings)})",
            kind.endings,
            limits.max_text / 1000,
            note="",
        )
    st.caption(kind.contents)
    return task, label_kind, file_name, content


def _settings(task, limits):
    """The widgets for how it is learnt: (model, epochs, whether the top layers alone); None if no model can."""
    plain_models = [info for info in model_store.installed() if info.name not in task_models.names() and info.config]
    offered = [info.name for info in plain_models if finetuning_jobs.can_learn(task, info.config)]
    if not offered:
        st.info(
            "No installed model can learn this task. The page Models lists the models to download.",
            icon=":material/block:",
        )
        return None
    first = _DEFAULT_MODEL if _DEFAULT_MODEL in offered else offered[0]
    model = st.selectbox(
        "Start from", offered, format_func=title, **state.bind_kept("w_fine_tune_model", first, offered)
    )
    epochs = 1
    if limits.max_epochs > 1:
        allowed = range(1, limits.max_epochs + 1)
        epochs = st.slider(
            "Epochs", 1, limits.max_epochs, **state.bind_kept("w_fine_tune_epochs", min(3, limits.max_epochs), allowed)
        )
    return model, epochs, _top_only(model)


def _look(task, file_name, content, model, label_kind, expanded):
    """Draw what the visitor's file holds: its labels and its first rows."""
    key = (task, file_name, content, model, label_kind)
    summary = cached("fine_tune_file", key, lambda: finetuning_jobs.examine(*key))
    with st.expander(f"What {escape_markdown(file_name)} holds", expanded=expanded, icon=":material/table_rows:"):
        st.markdown(
            f"**{count(summary.examples, 'example')}**: {summary.examples - summary.held_out:,} to learn from, "
            f"{summary.held_out:,} held out."
        )
        if summary.labels:
            each = "words" if task == "tag" else "examples"
            listed = [f"{escape_markdown(label)} {number:,}" for label, number in summary.labels.items()]
            more = f" · and {len(listed) - _MOST_LABELS:,} more" if len(listed) > _MOST_LABELS else ""
            st.markdown(
                f"{count(len(listed), 'label')}, with the number of {each}: {' · '.join(listed[:_MOST_LABELS])}{more}"
            )
        tables.show(summary.rows, hide_index=True, key="w_fine_tune_rows")
        if summary.examples > len(summary.rows):
            st.caption(f"{len(summary.rows)} of the examples to learn from.")


def _top_only(model):
    """The toggle that freezes the lowest layers; False for a model whose layers cannot be frozen."""
    learning = finetuning_jobs.trainable_layers(model)
    if not finetuning_jobs.frozen_layers(model):
        reason = "share one set of weights" if learning > 2 else "are few"
        st.caption(f"The whole model is trained: its layers {reason}.")
        return False
    return st.toggle(
        f"Train only the {'two' if learning == 2 else learning} highest layers",
        help="Much faster, and on small files often almost as good.",
        **state.bind_kept("w_fine_tune_top", True),
    )


def _watch(name):
    """Draw a training; a fragment that runs again by itself while the training runs."""
    training = finetuning_jobs.started(name)
    if training is None:
        state.rerun()  # Another visitor has deleted it.
        return
    status = training.status
    if status == "failed" and not finetuning_jobs.has_model(name):
        state.rerun()  # The whole page says why to the visitor who started it, and lists it no longer.
        return
    if status not in ("running", "ending") and st.session_state.get("_fine_tune_live") == name:
        # It has just ended: the pickers get the new model, and the fragment stops running again.
        st.session_state["_fine_tune_live"] = None
        model_store.catalogue.clear()
        state.rerun()
    st.session_state["_fine_tune_live"] = name if status in ("running", "ending") else None
    status_text = {
        "running": "Training …",
        "ending": "Saving …",
        "stopped": "Stopped.",
        "failed": "Failed.",
        "done": "Done.",
    }
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{status_text[status]}**", width="content")
        st.markdown(escape_markdown(name), width="content")
        may_change = ownership.may_change(models_dir() / name)
        if (
            status == "running"
            and may_change
            and st.button("Stop", icon=":material/stop:", key="w_fine_tune_stop", width="content")
        ):
            training.end("stop")
            state.rerun()
        ended = status not in ("running", "ending")
        if (
            ended
            and finetuning_jobs.has_model(name)
            and st.button("Try it", icon=":material/arrow_forward:", key="w_fine_tune_try", width="content")
        ):
            model_store.catalogue.clear()  # the list may be from before its end
            # Not in a callback: after one, Streamlit would run this fragment alone.
            state.replace_view(_view_of_model(name))
            state.rerun()
        if not may_change:
            st.caption("Another visitor has started it.", width="content")
        elif ended:
            training_controls.delete_button("w_fine_tune_delete", "model", lambda: _delete(name))
    if status in ("stopped", "failed"):
        st.caption(
            "The best model of the evaluations until then was saved."
            if finetuning_jobs.has_model(name)
            else "It was stopped before the first evaluation, so there is no model."
        )
    _curves(name, status)


def _delete(name):
    finetuning_jobs.remove(name)
    model_store.catalogue.clear()


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
    if not math.isnan(best_scores.get(metric, math.nan)):
        # SQuAD's scores are percentages already; a correlation is no share.
        score = best_scores[metric] / 100 if task == "answer" else best_scores[metric]
        written = f"{score:.3f}" if metric == "spearman" else share(score)
        numbers.append(f"{_SCORES[metric]} of the saved model on the held-out examples **{written}**")
    record = LearningRecord(name, metric or "", records, tuple(rounds))
    row = st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center")
    row.markdown(" · ".join(numbers), width="content")
    with row:
        # In the fragment: a training that runs gets its first numbers when the fragment runs alone.
        export.save(f"{name}-learning", record)
        export.draw(*export.take())
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
