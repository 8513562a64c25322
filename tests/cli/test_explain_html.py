"""`explain KIND --html FILE`: a figure of every kind in one file without a network; kinds about heads."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bert_tf import explain
from bert_tf.cli import main
from bert_tf.cli.explain import KINDS
from bert_tf.plots.explained import figure_of

CONCEPTS = Path(__file__).parents[2] / "assets" / "samples" / "concepts"
TEXTS = ("the cats [MASK] on the mat", "it ran")
ARGUMENTS = {
    "patching": ["--against", "the dogs [MASK] on the mat"],
    "paths": ["--against", "the dogs [MASK] on the mat", "--to", "1.feed-forward"],
    "neuron": ["--head", "1.2", "--token", "3"],
    "similarity": ["--other", "MODEL"],
    "changed": ["--before", "MODEL"],
    "concepts": [
        "--input",
        "FILE",
        "--concept",
        f"{CONCEPTS}/places.txt",
        "--against",
        f"{CONCEPTS}/neutral.txt",
        "--next-sentence",
        "--runs",
        "2",
    ],
    "pairs": ["--input", "FILE", "--rows", "1"],
}
#: Kinds that take other texts than a pair; None stands for those that other tests draw, with models of their own.
OTHER_TEXTS = {
    "meaning": ("bank", "the bank of money", "the river bank"),
    "concepts": (),
    "pairs": (),
    "positions": (),
    "one-way": None,
    "replaced": None,
}


@pytest.fixture
def record(tiny_folder, tmp_path_factory, capsys):
    def asked(kind, *arguments, texts=TEXTS):
        file = tmp_path_factory.mktemp("texts") / "texts.txt"
        file.write_text("the cats sat\tit ran\nthe dog ran\n")
        named = {"MODEL": str(tiny_folder), "FILE": str(file)}
        given = [named.get(one, str(one)) for one in arguments]
        assert main(["explain", kind, *texts, *given, "--model", str(tiny_folder), "--json", "--quiet"]) == 0
        return json.loads(capsys.readouterr().out)

    return asked


def drawn(path):
    """The figure's traces and layout as they stand in an HTML page."""
    page = path.read_text("utf-8")
    start = page.rindex("Plotly.newPlot(")
    decoder, found, at = json.JSONDecoder(), [], start + len("Plotly.newPlot(")
    while len(found) < 3:
        at += re.match(r"[\s,]*", page[at:]).end()
        one, length = decoder.raw_decode(page[at:])
        found.append(one)
        at += length
    return found[1], found[2]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if OTHER_TEXTS.get(kind, TEXTS) is not None])
def test_every_kind_has_a_figure_in_one_file(record, tmp_path, kind):
    path = tmp_path / "figure.html"
    found = record(kind, *ARGUMENTS.get(kind, ()), "--html", path, texts=OTHER_TEXTS.get(kind, TEXTS))
    page = path.read_text("utf-8")
    assert "<script src=" not in page and "<link" not in page and len(list(tmp_path.iterdir())) == 1
    data, layout = drawn(path)
    assert data and layout["title"]["text"].startswith(f"{kind} · ")
    for dark in (False, True):
        assert len(figure_of(found, dark).data) == len(data)


def test_the_map_of_every_layer_is_drawn_and_the_last_is_open(record, tiny_bert):
    maps = tiny_bert.trace(*TEXTS).attentions.mean(axis=1)
    figure = figure_of(record("attention", "--method", "raw"))
    assert [trace.visible for trace in figure.data] == [False, True]
    for trace, expected in zip(figure.data, maps):
        np.testing.assert_allclose(trace.z, expected, atol=1e-4)
    assert len(figure.layout.sliders[0].steps) == 2 and len(set(figure.data[0].y)) == len(figure.data[0].y)


def test_a_long_text_is_pooled(record):
    long = {"kind": "attention", "model": "m", "tokens": ["the"] * 300, "layers": np.eye(300)[None].tolist()}
    figure = figure_of(long)
    assert figure.data[0].z.shape == (128, 128) and (np.diag(figure.data[0].z) == 1).all()


@pytest.mark.parametrize("method, unit", [("gradient", "log-probability of "), ("relevance", "log-odds of ")])
def test_words_and_their_scores_are_drawn_as_bars(record, method, unit):
    found = record("saliency", "--method", method)
    (bars,) = (figure := figure_of(found)).data
    np.testing.assert_allclose(bars.x, [word["score"] for word in found["words"]])
    assert unit in str(figure.layout)


def test_the_answer_is_drawn_while_words_go(record):
    found = record("saliency", "--method", "reduction")
    (line,) = figure_of(found).data
    scores = [found["log_probability"], *(one["log_probability"] for one in found["gone"])]
    np.testing.assert_allclose(line.y, np.exp(scores), rtol=1e-5)
    assert found["gone"] and [name.split()[-1] for name in line.x[1:]] == [one["text"] for one in found["gone"]]


def test_other_words_are_drawn_beside_what_the_slope_foretold(record):
    found = record("saliency", "--method", "hotflip", "--tried", "3")
    read, slope = figure_of(found).data
    first = found["tried"][:15]
    np.testing.assert_allclose(read.x, [one["change"] for one in first])
    np.testing.assert_allclose(slope.x, [one["estimate"] for one in first])
    assert [name.rstrip("\u200b") for name in read.y] == [f"{one['text']} → {one['new']}" for one in first]
    assert list(slope.y) == list(read.y) and (read.name, slope.name) == ("read by the model", "by the slope")


@pytest.mark.parametrize("carried, rows", [("state", ["0", "1", "2"]), ("attention", ["0", "1"])])
def test_what_is_patched_names_the_rows(record, carried, rows):
    found = record("patching", *ARGUMENTS["patching"], "--carry", carried)
    (drawn,) = figure_of(found).data
    assert list(drawn.y) == rows
    np.testing.assert_allclose(drawn.z, np.array(found["recovered"], float))


def test_patched_heads_and_contributions_are_drawn_by_layer(record):
    found = record("patching", *ARGUMENTS["patching"], "--carry", "head")
    (drawn,) = figure_of(found).data
    assert (list(drawn.y), list(drawn.x)) == (["0", "1"], ["0", "1", "2", "3"])
    np.testing.assert_allclose(drawn.customdata[..., 0], np.array(found["recovered"], float))
    found = record("paths", *ARGUMENTS["paths"])
    (drawn,) = figure_of(found).data
    assert (list(drawn.y), list(drawn.x)) == (["0", "1"], ["0", "1", "2", "3", "FF"])
    leads = np.array(found["leads"])
    assert leads.sum() == 9 and np.isnan(drawn.z[~leads]).all() and np.abs(drawn.z[leads]).max() == 1
    np.testing.assert_allclose(drawn.customdata[leads], np.array(found["recovered"], float)[leads])
    found = record("contributions")
    (drawn,) = figure_of(found).data
    assert (list(drawn.y), list(drawn.x)) == (["0", "1"], ["0", "1", "2", "3", "FF"])
    np.testing.assert_allclose(drawn.customdata, np.column_stack([found["heads"], found["feed_forward"]]))


def test_ablation_is_drawn_before_and_after_or_ranked(record):
    named = record("ablation", "--heads", "0.1")
    before, after = figure_of(named).data[:2]
    assert list(before.y) == [one["probability"] for one in named["masks"][0]["before"]]
    assert list(after.y) == [one["probability"] for one in named["masks"][0]["after"]]
    ranked = record("ablation")
    (bars,) = figure_of(ranked).data
    assert bars.x[0] == max(bars.x) == pytest.approx(np.mean(ranked["ranking"][0]["divergences_bits"]))
    without_masks = record("ablation", "--layers", "0", texts=("the cat sat", "it ran"))
    assert [bars.name for bars in figure_of(without_masks).data[:2]] == ["as it is", "without"]


def test_likelihood_of_two_texts_has_two_panels_and_leaves_out_what_is_not_scored(record):
    found = record("likelihood", "--against", "a dog ran", texts=("the cats sat",))
    first, second = figure_of(found).data
    assert len(first.y) == len(found["texts"][0]["tokens"]) - 2 and sum(second.y) == pytest.approx(
        found["texts"][1]["total"], abs=1e-3
    )


def test_user_text_is_not_taken_for_markup(record, tmp_path):
    record("likelihood", "--html", tmp_path / "a.html", texts=("the <b>cat</b> </script>",))
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<b>cat</b>" not in page and "cat</b> </script>" not in page


def test_a_kind_without_a_figure_is_refused():
    with pytest.raises(ValueError, match="no figure for 'magic'"):
        figure_of({"kind": "magic"})


def test_neuron_gives_the_numbers_of_the_library(record, tiny_bert):
    found = record("neuron", *ARGUMENTS["neuron"])
    vectors = explain.head_vectors(tiny_bert, tiny_bert.trace(*TEXTS), 1, 2)
    np.testing.assert_allclose(found["weights"], vectors.weights(3), atol=1e-5)
    np.testing.assert_allclose(found["keys"], vectors.keys, atol=1e-4)
    keys, products, bars = figure_of(found).data
    np.testing.assert_allclose(products.z, vectors.products(3), atol=1e-4)
    np.testing.assert_allclose(bars.x, vectors.weights(3), atol=1e-5)


def test_heads_gives_the_numbers_of_the_library(record, tiny_bert):
    found = record("heads")
    summary = explain.summarise_heads(tiny_bert.trace(*TEXTS))
    np.testing.assert_allclose(found["measures"]["entropy"], summary.entropy, atol=1e-4)
    np.testing.assert_allclose(figure_of(found).data[0].z, summary.entropy, atol=1e-4)
    assert np.shape(found["clusters"]) == (2, 4)


def test_flow_is_a_method_of_attention(record, tiny_bert):
    trace = tiny_bert.trace(*TEXTS)
    found = record("attention", "--method", "flow")
    np.testing.assert_allclose(found["layers"][-1], explain.attention_flow(trace), atol=1e-4)


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["neuron", "the cat", "--head", "1"], "LAYER.HEAD"),
        (["neuron", "the cat", "--head", "0.9"], "no head 9 in layer 0"),
        (["neuron", "the cat", "--token", "7"], "There is no token 7"),
        (["heads", "the cat", "--html", "FOLDER"], "is a folder"),
        (["heads", "the cat", "--html", "FOLDER/none/a.html"], "No such file or directory"),
    ],
)
def test_each_mistake_is_told_in_one_line(capsys, tiny_folder, tmp_path, arguments, says):
    given = [one.replace("FOLDER", str(tmp_path)) for one in arguments]
    assert main(["explain", *given, "--model", str(tiny_folder)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and says in lines[0]
    assert not list(tmp_path.iterdir())
