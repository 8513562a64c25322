"""Sentence similarity: the cosines of the visitor's sentences, and the most similar texts of a file."""

import streamlit as st

from bert_tf.analyses import Call
from bert_tf.explain import SentenceSimilarity, sentence_similarity, text_vectors
from bert_tf.explain.datasets.text_rows import lines_with_text
from bert_tf.inference.sentence_vectors import count_cut, pooling_of, read_length
from bert_tf.plots.theme import escape
from pages.representations.snippets.sentence_similarity import snippet
from ui.elements import tables
from ui.session import jobs, state, task_models
from ui.session.session_cache import cached
from ui.shell import snippets
from ui.shell.page import Page, Press
from ui.widgets import export, figures, file_input, inputs
from ui.widgets.formatting import count, escape_markdown, shortened, title

_EXAMPLE = """\
The weather is lovely today.
It is so sunny outside!
He drove to the stadium.
A man took his car to the match.
The bank raised its interest rates."""

PAGE = Page(
    name="sentence_similarity",
    group="Representations",
    order=5,
    title="Sentence similarity",
    question="Which sentences mean the same?",
    terms="sentence-transformers SBERT sentence embeddings cosine semantic search MiniLM pooling retrieval",
    summary=(
        "the visitor's sentences: the matrix of the cosines of their vectors, by mean, first token or maximum; and the "
        "most similar texts of a sample or an uploaded file"
    ),
    presses={"": Press("choice: Pooling: Mean|Maximum", of_texts=False)},
    analyses=("sentence-similarity",),
    reads_texts=False,
    settings=("lines", "pooling", "search", "file", "first", "second"),
    settings_help=(
        "sentences, one on each line; `mean`, `first` or `max`; `1` to search a file; its name; its columns of the text"
    ),
    long_settings={"lines": "the sentences"},
    snippet=snippet,
)

_POOLINGS = {"mean": "Mean", "first": "First token", "max": "Maximum"}
_TOP_K = 5  # texts listed for a sentence
_MOST_NAMES = 40  # sentences that have their beginnings beside the matrix
_LETTERS = 22  # of such a beginning


def page():
    sentences = _sentences()
    shared = inputs.model()
    pooling, searching = _settings(shared)
    read = file_input.rows("sentence_similarity") if searching else None
    if len(sentences) < (1 if searching else 2):
        needed = "a sentence" if searching else "at least two sentences, one on each line"
        st.info(f"Type {needed}.", icon=":material/keyboard:")
        return
    texts, text_call = (), Call.of(text_vectors, pooling=pooling)
    vectors = _vectors(
        shared,
        "sentence_similarity",
        (shared.name, state.view().precision, sentences, text_call),
        sentences,
        text_call,
        "sentence",
    )
    text_vectors_of_file = None
    if read is not None:
        texts = tuple(row.text_a for row in read[0].rows)
        text_vectors_of_file = _vectors_of_file(shared, texts, read[1], text_call)
    if vectors is None:
        return
    result = cached(
        "sentence_similarity_result",
        (
            *(vectors.tobytes(), None if text_vectors_of_file is None else text_vectors_of_file.tobytes()),
            *(sentences, texts, pooling_of(shared.bert, pooling)),
        ),
        lambda: SentenceSimilarity.of(
            sentences, pooling_of(shared.bert, pooling), vectors, texts, text_vectors_of_file, _TOP_K
        ),
    )
    call, file = Call.of(sentence_similarity, pooling=pooling, top_k=_TOP_K), None
    if text_vectors_of_file is not None:
        file = read[1]
    snippets.give(shared, sentences, call, file)
    _draw(shared, result)


def _sentences():
    limits = state.limits()
    typed = st.text_area(
        "Sentences",
        height=150,
        max_chars=limits.max_characters,
        placeholder="One on each line.",
        **state.bind_setting("sentence_similarity.lines", "w_sentence_similarity_lines", _EXAMPLE),
    )
    lines = lines_with_text(typed or "")
    if len(lines) > limits.max_sentences:
        st.warning(f"The first {count(limits.max_sentences, 'sentence')} are read.", icon=":material/content_cut:")
    lines = lines[: limits.max_sentences]
    inputs.warn_cut(sum(len(line) > limits.max_row_characters for line in lines))
    return tuple(line[: limits.max_row_characters] for line in lines)


def _settings(shared):
    known = task_models.names().get(shared.name)
    own = known.pooling if known is not None and known.task == "similarity" else "mean"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        pooling = st.segmented_control(
            "Pooling",
            list(_POOLINGS),
            format_func=_POOLINGS.get,
            required=True,
            help="A sentence's vector: the mean of the hidden states of its tokens, that of its first token, or the "
            "largest value of each unit.",
            **state.bind_setting("sentence_similarity.pooling", "w_sentence_similarity_pooling", own, _POOLINGS),
        )
        searching = st.toggle(
            "Search a file", **state.bind_setting("sentence_similarity.search", "w_sentence_similarity_search", False)
        )
    if known is None or known.task != "similarity":
        st.caption(
            f"{escape_markdown(title(shared.name))} was not trained to compare sentences, so even unrelated ones can "
            "have a high cosine: compare the cosines with each other. Models of sentence-transformers were trained to, "
            "and those that Fine-tune makes for sentence similarity."
        )
    return pooling, searching


def _vectors_of_file(shared, texts, file, call):
    """The vectors of the texts of a file; None until they are computed."""
    key = (shared.name, state.view().precision, file, call)
    if not file_input.run_requested("sentence_similarity_file", key, len(texts) <= file_input.AT_ONCE):
        st.caption(f"{count(len(texts), 'row')}.")
        return None
    return _vectors(shared, "sentence_similarity_file", key, texts, call, "row")


def _vectors(shared, name, key, texts, call, noun):
    """The vectors of texts, with a warning of those that are cut; None until they are computed.

    Args:
        name, key: of the job. call: of `text_vectors`. noun: what a text is called.
    """
    result = jobs.result(
        name,
        key,
        f"Reading {count(len(texts), noun)}",
        lambda progress: (shared.run(call.run, texts, progress=progress), count_cut(shared.bert, texts)),
    )
    if result is None:
        return None
    vectors, cut = result
    inputs.warn_cut(cut, read_length(shared.bert), noun)
    return vectors


def _draw(shared, result):
    with st.container(key="wide_columns"):
        left, right = st.columns([5, 6], gap="large")
    with left:
        inputs.heading("Cosine similarity")
        export.save("sentence-similarity", result, {"model": shared.name})
        figures.show(
            "Cosines of the sentences",
            _named(result.figure("matrix", state.is_dark()), result.sentences),
            config=export.plot_config("sentence-similarity"),
            key="w_sentence_similarity_map",
        )
        st.caption("Point at a cell to read its two sentences. The colours span the values outside the diagonal.")
    with right:
        if result.nearest:
            _list(result)
        else:
            _pairs(result)


def _named(figure, sentences):
    """The figure of the matrix, its rows named by the sentences beside their numbers, which its columns have."""
    if len(sentences) <= _MOST_NAMES:
        names = [shortened(f"{number}: {text}", _LETTERS) for number, text in enumerate(sentences, 1)]
        figure.layout.yaxis.update(tickvals=list(range(len(names))), ticktext=[escape(name) for name in names])
    return figure


def _pairs(result):
    inputs.heading("Pairs, the most similar first")
    pairs = result.to_frame().sort_values("cosine", ascending=False)
    tables.show(
        pairs[["cosine", "sentence", "other"]],
        hide_index=True,
        width="stretch",
        height=tables.height(len(pairs), 420),
        key="w_sentence_similarity_pairs",
        column_config={
            "cosine": st.column_config.NumberColumn("Cosine", format="%.3f", width=70),
            "sentence": st.column_config.TextColumn("Sentence", width=230),
            "other": st.column_config.TextColumn("Other sentence", width=230),
        },
    )


def _list(result):
    inputs.heading("Most similar in the file")
    table = result.to_frame()
    tables.show(
        table[["cosine", "number", "sentence", "text"]],
        hide_index=True,
        width="stretch",
        height=tables.height(len(table), 420),
        key="w_sentence_similarity_found",
        column_config={
            "cosine": st.column_config.NumberColumn("Cosine", format="%.3f", width=70),
            "number": st.column_config.NumberColumn("Row", width=50),
            "sentence": st.column_config.TextColumn("Sentence", width=180),
            "text": st.column_config.TextColumn("Text of the file", width=320),
        },
    )
    st.caption("Row is the text's number among the texts that were read from the file.")
