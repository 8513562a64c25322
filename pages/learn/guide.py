"""Guide: what BERT is, in short pieces that lead to the page where each can be tried."""

import streamlit as st

from pages.learn import lessons
from ui.shell.page import Page, Press

PAGE = Page(
    name="guide",
    group="Learn",
    order=5,
    title="Guide",
    question="BERT in seven short pieces",
    summary="BERT in seven short pieces, each with links to the pages that show it on the visitor's text",
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
)


def page():
    st.markdown("Each leads to the pages where it can be tried on your own sentence; the texts come along.")
    pieces = list(enumerate(lessons.GUIDE))
    # Row by row, so that the order stays where a narrow screen puts the columns below each other.
    for first in range(0, len(pieces), 2):
        for column, (index, (heading, lesson)) in zip(st.columns(2, gap="medium"), pieces[first : first + 2]):
            with column.container(border=True, height="stretch"):
                st.header(heading, anchor=False)
                st.markdown(lesson.text)
                st.caption(lesson.source)
                lessons.links(lesson.pages, where=str(index))
