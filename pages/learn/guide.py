"""Guide: what BERT is, in short pieces that lead to the page where each can be tried."""

import streamlit as st

from pages.learn import lessons


def page():
    st.title("BERT in seven short pieces", anchor=False)
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
