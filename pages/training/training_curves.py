"""Training curves: the curves of a training run, live, and a form that starts a small run."""

import streamlit as st

from bert_tf.explain.models.training_log import TrainingLog
from bert_tf.plots.training import curves as plots
from pages.training.snippets.training_curves import snippet
from ui import ownership
from ui.elements import training_controls, visitor_cookie
from ui.session import runs, state, training_jobs
from ui.shell import error_messages, frame, snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, file_input, inputs
from ui.widgets.formatting import count, escape_markdown, share, title

PAGE = Page(
    name="training_curves",
    group="Training",
    order=1,
    title="Training curves",
    question="Watch a model learn",
    terms="loss learning rate pretraining progress logs throughput tokens per second",
    summary=(
        "a run's loss, accuracy and learning rate, updated while it trains; a small run on the visitor's text "
        "can be started, paused, continued, stopped and deleted"
    ),
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
    settings=("run",),
    settings_help="name of a run in the folder that `explorer.toml` names (or of the shipped one)",
    snippet=snippet,
)


_REFRESH = 2.0  # seconds between two updates of the page while a run trains
_BEGINNINGS = ("random weights", "the shipped model")


def page():
    training_jobs.discard_failed()
    known = runs.runs()
    own = training_jobs.last_started()
    training_controls.failure(own, training_jobs.problem(own), bool(own) and (runs.folder() / own).exists())
    if known:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            path = runs.run_picker(known)
            st.button(
                "Time-lapse",
                icon=":material/movie:",
                key="w_to_time_lapse",
                type="tertiary",
                on_click=lambda: state.replace_view(frame.view_of("time_lapse")),
            )
        run = runs.read(path)
        snippets.give(run)
        live = _is_running(run)
        error_messages.fragment(_watch, run_every=_REFRESH if live else None)(path)
    else:
        begin = "Start one below, or name" if state.limits().train else "Name"
        st.info(
            f"There is no training here yet. {begin} a folder of runs in explorer.toml.",
            icon=":material/model_training:",
        )
    _own_text(not known)


def _is_running(run):
    started = training_jobs.started(run.name)
    return started.status in ("running", "ending") if started else run.is_running()


def _watch(path):
    """Draw a run; a fragment that runs again by itself while the run trains."""
    try:
        run = runs.read(path)
    except (ValueError, OSError):
        state.rerun()  # The run was deleted: the whole page lists the runs again.
    if training_jobs.problem(run.name) and not training_jobs.has_trained_model(run.folder):
        state.rerun()  # The whole page says why to the visitor who started it, and lists it no longer.
        return
    live = _is_running(run)
    if not live and st.session_state.get("_training_live") == run.name:
        # It has just ended: the whole page runs once more, and the fragment stops running again.
        st.session_state["_training_live"] = None
        state.rerun()
    st.session_state["_training_live"] = run.name if live else None
    _controls(run)
    if not run.records:
        if live:
            every = run.settings.get("log_every")
            when = f"after {count(every, 'step')}" if every else "in a moment"
            st.info(f"The model is being built; the first numbers come {when}.", icon=":material/hourglass_top:")
        else:
            st.info("The run ended before its first log record.", icon=":material/hourglass_disabled:")
        return
    _figures(run, live)
    with inputs.heading("Curves"):
        # In the fragment: a training that runs gets its first numbers when the fragment runs alone.
        export.save(run.name, TrainingLog(run), {"model": run.name})
        export.draw(*export.take())
    left, middle, right = st.columns(3)
    for column, panel in ((left, "Loss"), (middle, "Accuracy"), (right, "Learning rate")):
        column.markdown(f"**{panel}**")
        with column:
            figures.show(
                panel,
                plots.curves(run, panel, state.is_dark()),
                key=f"w_curve_{panel}",
                config=export.plot_config(f"{run.name}-{panel.lower().replace(' ', '-')}"),
            )
    st.caption(
        runs.describe_run(run)
        + ". Measured on the training text, with new masks each time; Dataset predicts hidden words in texts that a "
        "model has not seen."
    )


def _figures(run, live):
    last, step = run.records[-1], f"Step {run.step:,}"
    if run.total:
        minutes = (run.total - run.step) * last.get("seconds_per_step", 0) / 60
        left = f", {minutes:.0f} min left" if minutes >= 1 else ", less than a minute left"
        st.progress(min(run.step / run.total, 1.0), text=f"{step} of {run.total:,}{left if live else ''}")
    numbers = [f"loss **{last['loss']:.2f}**"] if "loss" in last else []
    numbers += [
        f"{label} **{share(last[name])}**"
        for label, name in (
            ("masked words right", "mlm_accuracy"),
            ("next sentence right", "nsp_accuracy"),
            ("sentence order right", "sop_accuracy"),
            ("replaced words right", "replaced_accuracy"),
        )
        if name in last
    ]
    if "tokens_per_second" in last:
        numbers.append(f"**{last['tokens_per_second']:,.0f}** tokens a second")
    if "peak_share" in last:
        numbers.append(f"**{last['peak_share']:.0%}** of the machine's measured peak")
    st.markdown(" · ".join(numbers if run.total else [step, *numbers]))


def _controls(run):
    started = training_jobs.started(run.name)
    if started is None:
        return
    status = started.status
    status_text = {
        "running": "Training …",
        "ending": "Saving the last step …",
        "paused": "Paused.",
        "stopped": "Stopped.",
        "done": "Done.",
        "failed": "Failed.",
    }[status]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{status_text}**", width="content")
        if not ownership.may_change(run.folder):
            st.caption("Another visitor has started it.", width="content")
            status = None
        if status == "running":
            _act("Pause", "pause", lambda: started.end("pause"))
        if status == "paused":
            _act("Go on", "play_arrow", lambda: training_jobs.go_on(run.name))
        if status in ("running", "paused"):
            _act("Stop", "stop", lambda: started.end("stop"))
        if status in ("stopped", "done", "paused", "failed"):
            training_controls.delete_button(
                "w_training_curves_Delete", "training", lambda: training_jobs.remove(run.name)
            )


def _act(label, icon, function):
    if st.button(label, icon=f":material/{icon}:", key=f"w_training_curves_{label}", width="content"):
        try:
            function()
        except ValueError as error:
            st.session_state["_training_problem"] = str(error)
        state.rerun()


def _own_text(expanded):
    limits = state.limits()
    problem = st.session_state.pop("_training_problem", None)
    if problem:
        st.warning(escape_markdown(problem), icon=":material/block:")
    if not limits.train:
        return
    visitor_cookie.draw()
    shipped = training_jobs.shipped()
    with st.expander("Train a small model on your own text", expanded=expanded, icon=":material/model_training:"):
        text = st.text_area(
            "Text",
            height=140,
            placeholder="Paste a text: a paragraph a line, a blank line between documents.",
            **state.bind_kept("w_training_curves_text", ""),
        )
        # A character takes at most four bytes of a file.
        file_name, content = file_input.uploaded(
            "training_curves", "or a plain text file", ("txt",), limits.max_text * 4 / 1000, note=""
        )
        options = [steps for steps in (100, 200, 500, 1000, 2000, 5000) if steps <= limits.max_steps] or [
            limits.max_steps
        ]
        with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
            begin = shipped and st.segmented_control(
                "Begin with",
                _BEGINNINGS,
                required=True,
                **state.bind_kept("w_training_curves_begin", _BEGINNINGS[0], _BEGINNINGS),
            )
            steps = st.segmented_control(
                "Steps",
                options,
                format_func=lambda steps: f"{steps:,}",
                required=True,
                **state.bind_kept("w_training_curves_steps", options[min(1, len(options) - 1)], options),
            )
            pressed = st.button("Train", type="primary", icon=":material/play_arrow:", key="w_training_curves_start")
        start = (
            "Two layers of 128, or the trained shipped model, with the shipped lower-case English vocabulary"
            if shipped
            else f"Two layers of 128 with the vocabulary of {escape_markdown(title(limits.default))}"
        )
        st.caption(
            f"{start}. A step takes 16 sequences of 64 tokens, fewer for a short text. At most "
            f"{limits.max_text:,} characters, {limits.max_steps:,} steps and {limits.max_minutes} minutes here, and "
            f"{limits.max_trainings} trainings are kept; {ownership.rule()}"
        )
        if pressed and file_input.is_refused("training_curves"):
            st.warning("The file was not read. Remove it to train on the typed text.", icon=":material/block:")
        elif pressed:
            _start(text, content if file_name else None, steps, begin == _BEGINNINGS[1])


def _start(text, content, steps, warm):
    try:
        name = training_jobs.start(text if content is None else _read(content), steps, 5e-4 if warm else 1e-3, warm)
    except ValueError as error:
        st.warning(escape_markdown(str(error)), icon=":material/block:")
        return
    runs.choose_run(name)
    state.rerun()


def _read(content):
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError("The file is not UTF-8 text; save it as plain text in UTF-8.") from error
