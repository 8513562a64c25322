"""`explain` about words in many sentences, nearest words, heads over files: the library's numbers and figures."""

import json

import numpy as np
import pytest

import bert_tf
from bert_tf import explain
from bert_tf.cli import main
from tests.app.random_task_models import save_tasks

pytestmark = pytest.mark.usefixtures("models_loaded_once")

BANK = [
    ("river", "the bank of the river"),
    ("river", "a big river bank"),
    ("money", "the bank has money"),
    ("money", "money in the bank of London"),
    ("money", "she has a bank"),
]
TREE = "\n".join(
    "\t".join([str(place), word, *"____", str(head), relation, "_", "_"])
    for place, (word, head, relation) in enumerate(
        [
            ("the", 2, "det"),
            ("cat", 3, "nsubj"),
            ("sat", 0, "root"),
            ("on", 6, "case"),
            ("the", 6, "det"),
            ("mat", 3, "obl"),
        ],
        1,
    )
)


@pytest.fixture
def say(tiny_folder, capsys):
    def output_of(kind, *arguments):
        assert main(["explain", kind, *map(str, arguments), "--model", str(tiny_folder), "--quiet"]) == 0
        return capsys.readouterr().out

    return output_of


@pytest.fixture(scope="module")
def task_folders(tmp_path_factory):
    """Folders of random models fine-tuned for each task."""
    home = tmp_path_factory.mktemp("tasks")
    save_tasks(home)
    return home


@pytest.fixture
def record(say):
    return lambda *arguments: json.loads(say(*arguments, "--json"))


def test_the_vectors_of_a_word_in_many_sentences(record, say, tiny_bert, tmp_path, models_loaded_once):
    models_loaded_once.clear()
    lines = [" | ".join(pair) for pair in BANK] + ["no word of that kind"]
    expected = explain.occurrences(tiny_bert, [text for _, text in BANK], "bank")
    actual = record("meaning", "Bank", *lines, "--layer", 1)
    coordinates, shares = explain.principal_components(expected.vectors[1])
    np.testing.assert_allclose(actual["coordinates"], coordinates, atol=1e-4)
    np.testing.assert_allclose(actual["explained_variance_ratio"], shares, atol=1e-4)
    np.testing.assert_allclose(actual["cosines"], explain.cosine_similarities(expected.vectors[1]), atol=1e-4)
    apart = explain.sense_separation(expected.vectors, [sense for sense, _ in BANK])
    for name, values in actual["separation"].items():
        np.testing.assert_allclose(values, getattr(apart, name), atol=1e-4)
    assert (actual["senses"], actual["sentences"]) == tuple(map(list, zip(*BANK)))
    result = explain.word_senses(tiny_bert, "Bank", lines, layer=1)
    record_of_library = result.to_dict()
    for name in ("coordinates", "cosines"):  # two passes may differ in their last bit
        np.testing.assert_allclose(actual[name], record_of_library.pop(name), atol=1e-5)
    assert {name: actual[name] for name in record_of_library} == record_of_library
    assert actual["analysis"] == "word-senses"
    assert [points.name for points in result.figure("points").data] == ["river", "money"]
    file = tmp_path / "bank.tsv"
    file.write_text("\n".join("\t".join(pair) for pair in BANK))
    html = tmp_path / "figure.html"
    options = ("--dimensions", 3, "--html", html, "--show", "likeness")
    again = record("meaning", "bank", "--input", file, "--by", "umap", *options)
    # Its layout hangs on the last bits of the vectors.
    assert np.shape(again["coordinates"]) == (len(BANK), 3) and np.isfinite(again["coordinates"]).all()
    by_tsne = record("word-senses", "bank", "--input", file, "--projection", "tsne")
    assert np.shape(by_tsne["coordinates"]) == (len(BANK), 2) and by_tsne["projection"] == "tsne"
    assert by_tsne["explained_variance_ratio"] is None
    names = list(result.figure("similarity").layout.xaxis.ticktext)
    assert names == sorted(names) and again["senses"] == actual["senses"] and "cosine" in html.read_text()
    curves = result.figure("senses").data
    assert [len(curve.y) for curve in curves] == [3, 3, 3]
    np.testing.assert_allclose(curves[0].y, actual["separation"]["nearest"])
    assert "the bank of the river" in say("meaning", "bank", *lines).splitlines()[2]


def test_labels_are_read_with_a_bar_or_a_tab():
    lines = ["a | b c", "a\tb | c", "b c", " ", "| d"]
    assert explain.labelled_sentences(lines) == [("a", "b c"), ("a", "b | c"), ("", "b c"), ("", "d")]


def test_the_nearest_words_of_every_state(record, say, tiny_bert):
    from bert_tf.explain.representations.vectors import word_ids

    trace = tiny_bert.trace("the cats sat")
    actual = record("neighbours", "the cats sat", "--positions", 2, "--top-k", 3)
    assert actual["vectors"] == ["static", "0", "1", "2"] and actual["positions"] == [2]
    assert actual["tokens"] == list(trace.tokens)
    ((static, *states),) = actual["nearest"]
    assert static[0]["token"] == "cat" and static[0]["similarity"] == pytest.approx(1, abs=1e-4)
    near = explain.nearest_tokens(tiny_bert, trace.hidden_states[:, 2], 3, True, word_ids(tiny_bert.tokenizer))
    assert [[one["token"] for one in row] for row in states] == [[one.token for one in row] for row in near]
    other = record("nearest-words", "the cats sat", "--not-centred")
    assert other == record("nearest-words", "the cats sat", "--no-centred") and other["centred"] is False
    (cells,) = explain.nearest(tiny_bert, trace, centred=False).figure().data
    assert len(cells.z) == trace.length and "cat" not in cells.text[2]
    assert list(cells.x) == ["static", "emb.", "1", "2"]
    header = ["position", "token", "vector", "rank", "neighbour", "similarity"]
    assert say("neighbours", "the cats sat").splitlines()[1].split() == header


def test_factors_of_some_layers(record, say, tiny_bert):
    trace = tiny_bert.trace("the cats sat", "it ran")
    kept = [place for place, source in enumerate(trace.sources) if source is not None]
    wanted = explain.factorise(explain.feed_forward_activations(tiny_bert, trace, 1, 1, kept), 3)
    asked = ("factors", "the cats sat", "it ran", "--factors", 3, "--layers", 1, 1, "--no-special")
    actual = record(*asked)
    wanted = wanted.named(trace.tokens, kept, 1, 5)
    assert actual["explained"] == pytest.approx(wanted.explained, abs=1e-4) and actual["first_layer"] == 1
    assert actual["positions"] == kept and actual["tokens"] == list(trace.tokens)
    np.testing.assert_allclose(actual["shares"], wanted.shares, atol=1e-4)
    np.testing.assert_allclose(actual["weights"], wanted.weights, atol=1e-3)
    for units, same in zip(actual["units"], wanted.units, strict=True):
        assert units == [pytest.approx(unit._asdict(), abs=1e-3) for unit in same]
    assert {unit["layer"] for units in actual["units"] for unit in units} == {1}
    (cells,) = wanted.figure().data
    np.testing.assert_allclose(cells.z, wanted.weights / wanted.weights.max(axis=1, keepdims=True), atol=1e-3)
    lines = say(*asked).splitlines()
    assert lines[1].split() == ["factor", "share", "position", "token", "weight"]
    assert lines[2].split()[3] == trace.tokens[kept[wanted.weights[0].argmax()]]
    whole = explain.factorise(explain.feed_forward_activations(tiny_bert, trace), 6)
    again = record("factors", "the cats sat", "it ran")
    assert again["explained"] == pytest.approx(whole.explained, abs=1e-4)
    assert {unit["layer"] for units in again["units"] for unit in units} == {0, 1}


def test_the_nearest_places_of_a_file(record, say, tiny_bert, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(text for _, text in BANK))
    trace = tiny_bert.trace("the cats sat")
    rows = explain.read_rows(path.read_text()).rows
    wanted = explain.nearest_contexts(tiny_bert, trace.hidden_states[1, [1, 3]], 1, rows, 3, True)
    command = ("neighbours", "the cats sat", "--input", path, "--positions", 1, 3, "--layer", 1, "--top-k", 3)
    actual = record(*command)
    assert (actual["rows_read"], actual["tokens_compared"], actual["layer"]) == (5, wanted.tokens_compared, 1)
    assert actual["positions"] == [1, 3] and actual["tokens"] == list(trace.tokens)
    for one, near in zip(actual["nearest"], wanted.nearest, strict=True):
        assert [(place["row"], place["word"], place["position"]) for place in one] == [
            (place.row.number, place.word.text, place.position) for place in near
        ]
        assert [place["before"] + place["word"] + place["after"] for place in one] == [place.text for place in near]
        cosines = [place["similarity"] for place in one]
        np.testing.assert_allclose(cosines, [place.similarity for place in near], atol=1e-5)
    result = explain.nearest(tiny_bert, trace, rows, [1, 3], 3, layer=1)
    (cells,) = result.figure().data
    np.testing.assert_allclose(
        cells.z, [[place["similarity"] for place in one] for one in actual["nearest"]], atol=1e-5
    )
    np.testing.assert_allclose(result.to_frame()["similarity"], np.ravel(cells.z), atol=1e-5)
    assert record("neighbours", "the cats sat", "--input", path)["layer"] == 2
    assert wanted.nearest[0][0].word.text in say(*command).splitlines()[2].split()


def test_the_nearest_places_by_one_head_and_what_they_are(record, say, tiny_bert, tmp_path, task_folders):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(text for _, text in BANK))
    trace, rows = tiny_bert.trace("the cats sat"), explain.read_rows(path.read_text()).rows
    vectors = explain.head_outputs(tiny_bert, trace.hidden_states[1], 1, 2)
    wanted = explain.nearest_contexts(tiny_bert, vectors, 1, rows, 4, True, head=2)
    command = ("neighbours", "the cats sat", "--input", path, "--head", 2, "--top-k", 4)
    actual = record(*command)
    assert (actual["layer"], actual["heads"]) == (1, [2])  # the last layer, from 0
    for one, near, counts in zip(actual["nearest"], wanted.nearest, actual["counts"], strict=True):
        cosines = [place["similarity"] for place in one]
        np.testing.assert_allclose(cosines, [place.similarity for place in near], atol=1e-5)
        assert counts["parts_of_speech"] is None and {place["part_of_speech"] for place in one} == {None}
    drawn = explain.nearest(tiny_bert, trace, rows, heads=(2,)).figure()
    assert drawn.layout.xaxis.title.text == "nearest contexts, by head 2 of layer 1"
    tagger = task_folders / "words"
    labelled = record(*command, "--tagger", tagger)
    for one, near, counts in zip(labelled["nearest"], wanted.nearest, labelled["counts"], strict=True):
        output_of = explain.matched_labels(bert_tf.load(tagger), near)
        assert [place["part_of_speech"] for place in one] == list(output_of)
        assert counts["parts_of_speech"] == explain.count_labels(output_of)
        there = explain.matched_labels(bert_tf.load(tagger), [place.most_attended for place in near])
        assert [place["most_attended"]["part_of_speech"] for place in one] == list(there)
        assert counts["looked_at_parts_of_speech"] == explain.count_labels(there)
    assert labelled["nearest"][0][0]["part_of_speech"] in say(*command, "--tagger", tagger).splitlines()[2].split()


def test_several_heads_and_what_they_look_at_in_a_file_with_trees(record, say, tiny_bert, tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(f"{TREE}\n\n{TREE.replace('cat', 'dog')}\n".replace("the\t_\t_", "the\t_\tDET"))
    trace, rows = tiny_bert.trace("the cats sat"), explain.read_rows(path.read_text(), "conllu").rows
    vectors = explain.head_outputs(tiny_bert, trace.hidden_states[0], 0, (1, 3))[[2]]
    (near,) = explain.nearest_contexts(tiny_bert, vectors, 0, rows, 9, True, head=(1, 3)).nearest
    command = (
        "neighbours",
        "the cats sat",
        "--input",
        path,
        "--layer",
        0,
        "--head",
        "1,3",
        "--positions",
        2,
        "--top-k",
        9,
    )
    actual = record(*command)
    (one,), most_attended = actual["nearest"], [place.most_attended for place in near]
    assert actual["heads"] == [1, 3]
    assert [place["part_of_speech"] for place in one] == list(explain.parsed_labels(near)[0])
    for place, wanted, relation in zip(one, near, explain.parsed_labels(most_attended)[1], strict=True):
        there = place["most_attended"]
        assert place["similarity"] == pytest.approx(wanted.similarity, abs=1e-5)
        assert (there["token"], there["offset"], there["relation"]) == (
            wanted.most_attended.token,
            wanted.most_attended.offset,
            relation,
        )
        assert there["share"] == pytest.approx(wanted.most_attended.share, abs=1e-5)
    (counted,) = actual["counts"]
    assert counted["relations"] == explain.count_labels(explain.parsed_labels(near)[1])
    assert counted["looked_at_relations"] == explain.count_labels(explain.parsed_labels(most_attended)[1])
    assert counted["offsets"] == {str(offset): number for offset, number in explain.count_offsets(near).items()}
    result = explain.nearest(tiny_bert, trace, rows, [2], 9, layer=0, heads=(1, 3))
    assert result.figure().layout.xaxis.title.text == "nearest contexts, by heads 1, 3 of layer 0"
    assert list(result.counts[0].figures) == ["parts-of-speech", "relations", "how-far-away"]
    table = result.to_frame()
    assert list(table["looks_at_relation"].fillna("")) == [
        label or "" for label in explain.parsed_labels(most_attended)[1]
    ]
    line = say(*command).splitlines()[2].split()
    assert near[0].word.text in line and str(most_attended[0].offset) in line
    words = record(*command, "--no-special")["nearest"][0]
    assert {place["most_attended"]["word"] is None for place in words} == {False}


def test_positions_that_are_alike(record, say, tiny_bert):
    actual = record("positions", "--step", 8)
    table = explain.embedding_table(tiny_bert, "position")
    np.testing.assert_allclose(actual["cosines"], explain.cosine_similarities(table[::8]), atol=1e-5)
    assert actual["positions"] == list(range(0, len(table), 8)) and actual["analysis"] == "position-embeddings"
    result = explain.position_similarity(tiny_bert, 8)
    np.testing.assert_allclose(result.figure().data[0].z, actual["cosines"], atol=1e-5)
    np.testing.assert_allclose(result.to_frame()["cosine"], np.ravel(actual["cosines"]), atol=1e-5)
    assert len(say("positions", "--step", 8).splitlines()) == 2 + min(len(result.to_frame()), 61)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("meaning", "bank"), "either sentences or --input"),
        (("meaning", " ", "a bank"), "WORD is empty"),
        (("meaning", "bank", "no such word"), "'bank' is not in the text"),
        (("meaning", "bank", "a bank", "--layer", "3"), "no layer 3"),
        (("meaning", "bank", "a bank", "the bank", "--by", "umap"), "UMAP needs at least 5"),
        (("meaning", "bank", "a bank", "--show", "senses"), "no figure 'senses'; it has: points, similarity"),
        (("meaning", "bank", "--input", "none.tsv"), "none.tsv: No such file"),
        (("neighbours", "the cat", "--positions", "9"), "no token 9"),
        (("neighbours", "the cat", "--layer", "1"), "layer needs a file"),
        (("neighbours", "the cat", "--head", "1"), "heads needs a file"),
        (("neighbours", "the cat", "--tagger", "MODEL"), "tagger needs a file"),
        (("neighbours", "the cat", "--input", "WORDS", "--no-special"), "left out only with heads"),
        (("neighbours", "the cat", "--input", "WORDS", "--head", "1,1"), "Head 1 is named twice"),
        (
            ("neighbours", "--input", "WORDS", "--head", "x", "the cat"),
            "takes one head or several, as in 3 or 3,5; not 'x'",
        ),
        (("neighbours", "the cat", "--input", "TREE.conllu", "--tagger", "MODEL"), "has its own parts of speech"),
        (("neighbours", "the cat", "--input", "WORDS", "--head", "4"), "no head 4 in layer 1"),
        (("neighbours", "the cat", "--input", "WORDS", "--layer", "2", "--head", "0"), "no head 0 in layer 2"),
        (("neighbours", "the cat", "--input", "EMPTY"), "no text in the file"),
        (("neighbours", "the cat", "--input", "WORDS", "--layer", "3"), "no layer 3"),
        (("positions", "--step", "0"), "step must be at least 1"),
    ],
)
def test_each_mistake_is_told_in_one_line(capsys, tiny_folder, tmp_path, arguments, sentence):
    for name in ("EMPTY", "EMPTY.conllu"):
        (tmp_path / name).write_text("")
    (tmp_path / "WORDS").write_text("the bank")
    (tmp_path / "TREE.conllu").write_text(TREE)
    options = [str(tmp_path / one) if one.startswith(("EMPTY", "WORDS", "TREE")) else one for one in arguments]
    options = [str(tiny_folder) if one == "MODEL" else one for one in options]
    assert main(["explain", *options, "--model", str(tiny_folder)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and sentence in lines[0], lines


@pytest.mark.parametrize(
    "name, text",
    [
        ("texts.txt", "the cat\nthe dog\tran\n"),
        ("texts.csv", "label;text\nx;the cat\ny;the dog\tran\n"),
        ("texts.jsonl", '{"text": "the cat"}\n{"text": "the dog\\tran", "label": "y"}\n'),
    ],
)
def test_sentences_are_searched_in_a_file_without_what_else_it_holds(name, text, record, tmp_path):
    (tmp_path / name).write_text(text)
    (found,) = record("sentence-similarity", "the cat", "--input", tmp_path / name)["nearest"]
    assert {(one["number"], one["text"]) for one in found} == {(1, "the cat"), (2, "the dog\tran")}
    assert found[0]["similarity"] == pytest.approx(1, abs=1e-5)
