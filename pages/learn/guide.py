"""Guide: BERT in short pieces, each with links to the pages where it can be tried."""

import streamlit as st

import bert_tf
from pages.learn import lessons
from ui.shell.page import Page, Press

PAGE = Page(
    name="guide",
    group="Learn",
    order=3,
    title="Guide",
    question="BERT in seven short pieces",
    terms="introduction tutorial paper pretraining masking learn cite citation BibTeX",
    summary="BERT in seven short pieces, each with links to the pages that show it on the visitor's text; how to cite",
    presses={"": Press("open", of_texts=False)},
    reads_texts=False,
)

_CITATION = f"""@software{{bert_tf,
  title   = {{bert_tf: BERT to look into}},
  author  = {{{{The authors of bert_tf}}}},
  version = {{{bert_tf.__version__}}}
}}
@inproceedings{{devlin2019bert,
  title     = {{BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding}},
  author    = {{Devlin, Jacob and Chang, Ming-Wei and Lee, Kenton and Toutanova, Kristina}},
  booktitle = {{Proceedings of NAACL-HLT 2019}},
  year      = {{2019}}
}}"""


def page():
    st.markdown("Each piece leads to pages where you can try it on your own sentence; the texts stay the same.")
    pieces = list(enumerate(lessons.GUIDE))
    # Row by row, so that a narrow screen, which puts the columns below each other, keeps the order.
    for first in range(0, len(pieces), 2):
        for column, (index, (heading, lesson)) in zip(st.columns(2, gap="medium"), pieces[first : first + 2]):
            with column.container(border=True, height="stretch"):
                st.header(heading, anchor=False)
                st.markdown(lesson.text)
                st.caption(lesson.source)
                lessons.links(lesson.pages, where=str(index))
    st.header("To cite", anchor=False)
    st.code(_CITATION, language="latex")
