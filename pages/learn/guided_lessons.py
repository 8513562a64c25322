"""Lessons: guided ones of a few steps, each with a question whose answer is checked; and links for teachers."""

import dataclasses

import streamlit as st

from pages.learn import teachers_view
from pages.learn.lesson_answers import is_right, right_answer
from ui.samples.guided_lessons import LESSONS
from ui.session import model_store, state
from ui.session.session_cache import cached
from ui.shell import catalogue, frame
from ui.shell.page import Page, Press
from ui.widgets.formatting import escape_markdown

PAGE = Page(
    name="guided_lessons",
    group="Learn",
    order=2,
    title="Lessons",
    question="Five lessons to do, step by step",
    terms="teacher class exercises answers questions quiz course",
    summary=(
        "five guided lessons of a few steps, done on the pages that they open: why [MASK] needs both sides, what heads "
        "do, how it learned, Base or Large, is attention an explanation; each ends in a question whose answer is "
        "computed from the loaded model and checked. For teachers: for each step a link that starts a class there, "
        "and the answer"
    ),
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
    settings=("lesson", "step", "answer", "view"),
    settings_help=(
        "`mask` `heads` `learned` `sizes` `explanation`; step from 1; the answer that was typed; "
        "`teachers` for the links of a class"
    ),
)

_LESSON, _STEP, _ANSWER = "guided_lessons.lesson", "guided_lessons.step", "guided_lessons.answer"
_VIEW = "guided_lessons.view"
#: The choices of a view that hide a part of a page, or decide what it predicts.
_SHOWN = ("selection", "special", "punctuation", "fill")
_NO_ANSWER = "This model has no head for masked words. Choose a BERT model in the sidebar."
_BY_NAME = {lesson.name: lesson for lesson in LESSONS}


def page():
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"):
        lesson = _chosen_lesson()
        for_teachers = state.setting(_VIEW, "") == "teachers"
        st.button(
            "Do the lesson" if for_teachers else "For teachers",
            icon=":material/arrow_back:" if for_teachers else ":material/school:",
            key="w_lesson_view",
            type="tertiary",
            on_click=state.set_setting,
            args=(_VIEW, "" if for_teachers else "teachers", ""),
        )
    if for_teachers:
        teachers_view.draw(lesson, lambda: _answer_or_reason(lesson))
        return
    number = min(max(state.setting(_STEP, 1), 1), len(lesson.steps))
    step = lesson.steps[number - 1]
    with st.container(border=True):
        st.progress(number / len(lesson.steps), f"Step {number} of {len(lesson.steps)}")
        st.header(step.title, anchor=False)
        st.markdown(step.text)
        _open_button(step)
        if number == len(lesson.steps):
            _question(lesson)
        _ways(number, len(lesson.steps))


def _chosen_lesson():
    name = state.setting(_LESSON, LESSONS[0].name)
    lesson = _BY_NAME.get(name, LESSONS[0])
    state.set_widget("w_lesson", lesson.name)

    def choose():
        # A second press on the open lesson reports None: it begins anew.
        chosen = st.session_state["w_lesson"] or lesson.name
        state.set_setting(_LESSON, chosen, LESSONS[0].name)
        _go_to(1)

    st.pills("Lesson", list(_BY_NAME), format_func=lambda one: _BY_NAME[one].title, key="w_lesson", on_change=choose)
    return lesson


def _go_to(number):
    state.set_setting(_STEP, number, 1)
    state.set_setting(_ANSWER, "", "")


def _ways(number, most):
    with st.container(horizontal=True):
        st.button("Back", key="w_lesson_back", disabled=number == 1, on_click=_go_to, args=(number - 1,))
        if number < most:
            st.button("Next", key="w_lesson_next", type="primary", on_click=_go_to, args=(number + 1,))


def _open_button(step):
    st.button(
        f"Open {catalogue.pages()[step.page].full_title}",
        icon=":material/arrow_forward:",
        key="w_lesson_open",
        on_click=lambda: state.replace_view(_view_of_step(step)),
    )
    st.caption("Lessons, under Learn, leads back to this step.")


def _view_of_step(step):
    """The view in which the page of a step opens; where the model has fewer layers or heads, at its last.

    What the visitor has chosen there before is left out: the question is about what the step shows.
    """
    config = next((info.config for info in model_store.installed() if info.name == state.view().model), None)
    most = (config.num_hidden_layers, config.num_attention_heads) if config else (1, 1)
    layer, head = (min(one, count - 1) for one, count in zip((step.layer, step.head), most))
    view = frame.view_of(step.page)
    others = tuple(pair for pair in view.settings if not pair[0].startswith(f"{step.page}."))
    kept = {field.name: field.default for field in dataclasses.fields(view) if field.name in _SHOWN}
    view = dataclasses.replace(view, settings=others, **kept)
    if step.a:
        view = dataclasses.replace(view, a=step.a, b=step.b, masks=step.positions, start=0, layer=layer, head=head)
    for name, value in step.settings:
        view = view.with_setting(f"{step.page}.{name}", value)
    return view


def _question(lesson):
    st.markdown(f"**{lesson.question}**")
    options = state.bind_setting(_ANSWER, "w_lesson_answer", "")
    st.text_input("Your answer", placeholder="One word", max_chars=60, **options)
    typed = state.setting(_ANSWER, "")
    if not typed.strip():
        return
    answer = _right_answer(lesson)
    if answer is None:
        st.info(_NO_ANSWER, icon=":material/info:")
    elif is_right(typed, answer):
        st.success(f"Right: “{escape_markdown(answer)}”. {lesson.because}", icon=":material/check:")
    else:
        st.warning(
            f"“{escape_markdown(typed)}” is not what this model says. Open the page above and look again.",
            icon=":material/search:",
        )


def _answer_or_reason(lesson):
    """(the right answer, True), or (why there is none, False)."""
    answer = _right_answer(lesson)
    return (_NO_ANSWER, False) if answer is None else (answer, True)


def _right_answer(lesson):
    """The answer that the loaded model gives in the lesson's last step; None if it has no head for masked words."""
    view = state.view()
    return cached(
        "lesson answer",
        (lesson.name, view.model, view.other, view.precision),
        lambda: right_answer(lesson.check, lesson.steps[-1], view),
    )
