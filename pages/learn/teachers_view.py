"""For teachers, a view of the page Lessons: a link that starts a class at each step, and the answer of the lesson."""

import dataclasses

import streamlit as st

from ui.session import state
from ui.shell import catalogue, frame
from ui.widgets.formatting import escape_markdown


def draw(lesson, answer):
    """Draw the steps of a lesson with their links.

    Args:
        lesson: ``GuidedLesson``.
        answer: callable () -> the answer to its question with the loaded model, or a sentence that says why there is
            none, and whether it is an answer: (str, bool).
    """
    st.caption(
        "Each link opens the lesson at its step, with the model that is loaded now. Every visitor has a page of their "
        "own: nobody sees what another one does or answers."
    )
    pages = catalogue.pages()
    for number, step in enumerate(lesson.steps, 1):
        with st.container(border=True):
            st.markdown(f"**{number}. {step.title}**  \n{step.text}")
            st.caption(f"Done on {pages[step.page].full_title}.")
            st.code(_link(number), language=None, wrap_lines=True)
    st.header("The question and its answer", anchor=False)
    st.markdown(f"*{lesson.question}*")
    if st.button("Show the answer", icon=":material/key:", key="w_lesson_solution"):
        text, is_answer = answer()
        if is_answer:
            st.info(f"With this model: “{escape_markdown(text)}”. {lesson.because}", icon=":material/key:")
        else:
            st.info(text, icon=":material/info:")


def _link(number):
    """The link that opens the chosen lesson at step ``number``, from 1, with no answer and no text of this visit."""
    view = dataclasses.replace(state.view(), a="", b="", masks=())
    view = view.with_setting("guided_lessons.answer", None).with_setting("guided_lessons.view", None)
    return frame.link_to(view.with_setting("guided_lessons.step", None if number == 1 else str(number)))
