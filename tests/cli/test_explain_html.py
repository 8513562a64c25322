"""`explain KIND --html FILE`: a figure of every kind in one file without a network."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bert_tf.cli import main
from bert_tf.cli.explain import KINDS
from bert_tf.plots.explained import figure_of

CONCEPTS = Path(__file__).parents[2] / "assets" / "samples" / "concepts"
TEXTS = ("the cats [MASK] on the mat", "it ran")
ARGUMENTS = {
    "patching": ["--against", "the dogs [MASK] on the mat"],
    "paths": ["--against", "the dogs [MASK] on the mat", "--to", "1.feed-forward"],
    "similarity": ["--other", "MODEL"],
    "compare": ["--other", "MODEL"],
    "agreement": ["--other", "MODEL", "--input", "FILE"],
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
    "dataset": ["--input", "FILE"],
    "pairs": ["--input", "FILE", "--rows", "1"],
}
#: Kinds that take other texts than a pair; None stands for those that other tests draw, with models of their own.
OTHER_TEXTS = {
    "meaning": ("bank", "the bank of money", "the river bank"),
    "agreement": (),
    "concepts": (),
    "dataset": (),
    "pairs": (),
    "positions": (),
    "family": None,
    "timelapse": None,
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
