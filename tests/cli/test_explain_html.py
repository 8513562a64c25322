"""`explain ANALYSIS --html FILE`: a figure of every analysis in one file without a network."""

import json
import re
from pathlib import Path

import pytest

from bert_tf.analyses import catalogue
from bert_tf.cli import main

pytestmark = pytest.mark.usefixtures("models_loaded_once")

CONCEPTS = Path(__file__).parents[2] / "assets" / "samples" / "concepts"
TEXTS = ("the cats [MASK] on the mat", "it ran")
ARGUMENTS = {
    "patching": ["--corrupted", "the dogs [MASK] on the mat"],
    "path-patching": ["--corrupted", "the dogs [MASK] on the mat", "--receiver", "1.feed-forward"],
    "minimal-pairs": ["--input", "FILE", "--rows", "1"],
    "compare": ["--other", "MODEL"],
    "agreement": ["--other", "MODEL", "--input", "FILE"],
    "dataset": ["--input", "FILE"],
    "attention-divergence": ["--before", "MODEL"],
    "layer-similarity": ["--other", "MODEL"],
    "tcav": [
        "--input",
        "FILE",
        "--concept",
        f"{CONCEPTS}/places.txt",
        "--counterexamples",
        f"{CONCEPTS}/neutral.txt",
        "--next-sentence",
        "--runs",
        "2",
    ],
}
#: Analyses that take other texts than a pair; None stands for those that other tests draw, with models of their own.
OTHER_TEXTS = {
    "minimal-pairs": (),
    "agreement": (),
    "dataset": (),
    "tcav": (),
    "position-embeddings": (),
    "word-senses": ("bank", "the bank of money", "the river bank"),
    "architectures": None,
    "time-lapse": None,
    "directionality": None,
    "replaced-token-detection": None,
}


@pytest.fixture
def record(tiny_folder, tmp_path_factory, capsys):
    def asked(kind, *arguments, texts=TEXTS):
        file = tmp_path_factory.mktemp("texts") / "texts.txt"
        file.write_text("the cats sat\tit ran\nthe dog ran\n")
        named = {"MODEL": str(tiny_folder), "FILE": str(file)}
        options = [named.get(one, str(one)) for one in arguments]
        assert main(["explain", kind, *texts, *options, "--model", str(tiny_folder), "--json", "--quiet"]) == 0
        return json.loads(capsys.readouterr().out)

    return asked


def drawn(path):
    """The figure's traces and layout as they stand in an HTML page."""
    page = path.read_text("utf-8")
    start = page.rindex("Plotly.newPlot(")
    decoder, actual, at = json.JSONDecoder(), [], start + len("Plotly.newPlot(")
    while len(actual) < 3:
        at += re.match(r"[\s,]*", page[at:]).end()
        one, length = decoder.raw_decode(page[at:])
        actual.append(one)
        at += length
    return actual[1], actual[2]


@pytest.mark.parametrize("name", [name for name in catalogue() if OTHER_TEXTS.get(name, TEXTS) is not None])
def test_every_analysis_has_a_figure_in_one_file(record, tmp_path, name):
    path = tmp_path / "figure.html"
    record(name, *ARGUMENTS.get(name, ()), "--html", path, texts=OTHER_TEXTS.get(name, TEXTS))
    page = path.read_text("utf-8")
    assert "<script src=" not in page and "<link" not in page and len(list(tmp_path.iterdir())) == 1
    data, layout = drawn(path)
    assert data and layout["title"]["text"].startswith(f"{name} · ")


def test_user_text_is_not_taken_for_markup(record, tmp_path):
    record("pseudo-likelihood", "--html", tmp_path / "a.html", texts=("the <b>cat</b> </script>",))
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<b>cat</b>" not in page and "cat</b> </script>" not in page
