"""`explain` of two models, of files, of a training's snapshots, of models' parts: the library's numbers and figures."""

import json
from pathlib import Path

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints, explain
from bert_tf.cli import main
from tests.conftest import make_bert, randomise

pytestmark = pytest.mark.usefixtures("models_loaded_once")

GOLDEN_FOLDERS = Path(__file__).parent.parent / "golden" / "family"
TEXTS = ("the cats [MASK] on the mat", "it ran")
ROWS = "the cats sat on the mat\tit ran\nthe river bank was big\n\nshe has money\tso it ended\n"


@pytest.fixture(scope="module")
def other_folder(other_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / other_bert.name
    checkpoints.save(folder, other_bert.config, other_bert.tokenizer, other_bert.model)
    return folder


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "rows.txt"
    path.write_text(ROWS)
    return path


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A training's folder with two snapshots."""
    home = tmp_path_factory.mktemp("runs") / "small-run"
    for step, seed in ((0, 7), (10, 8)):
        bert = make_bert(seed=seed)
        checkpoints.save(home / "snapshots" / f"step-{step}", bert.config, bert.tokenizer, bert.model)
    (home / "settings.json").write_text('{"settings": {"steps": 10}}')
    return home


@pytest.fixture
def say(tiny_folder, capsys):
    def output_of(kind, *arguments, model=tiny_folder):
        own = [] if model is None else ["--model", str(model)]
        assert main(["explain", kind, *map(str, arguments), *own, "--quiet"]) == 0
        return capsys.readouterr().out

    return output_of


@pytest.fixture
def record(say):
    return lambda *arguments, **model: json.loads(say(*arguments, "--json", **model))


def test_two_models_on_one_text(record, say, tiny_bert, other_bert, other_folder, tmp_path):
    traces = [bert.trace(*TEXTS) for bert in (tiny_bert, other_bert)]
    expected = explain.compare(*traces, tiny_bert.tokenizer, other_bert.tokenizer, 2, 3)
    actual = record("compare", *TEXTS, "--other", other_folder, "--html", tmp_path / "a.html")
    comparison, (lenses,) = actual["comparison"], actual["lenses"]
    (mask,), (same,) = comparison["masks"], expected.masks
    assert mask["divergence"] == pytest.approx(same.divergence, abs=1e-5) and comparison["case_folded"]
    for side in ("predictions_a", "predictions_b"):
        assert [one["token"] for one in mask[side]] == [one.token for one in getattr(same, side)]
    assert comparison["layers"] == [list(pair) for pair in expected.layers]
    for side, trace in zip((actual["a"], actual["b"]), traces):
        assert side["is_next"] == pytest.approx(trace.nsp.is_next, abs=1e-5)
        np.testing.assert_allclose(side["entropy"], explain.summarise_heads(trace).entropy.mean(axis=1), atol=1e-4)
    lens = explain.logit_lens(other_bert, traces[1], top_k=1)
    np.testing.assert_allclose(lenses[1]["answer_probabilities"], lens.answer_probabilities, atol=1e-5)
    result = explain.side_by_side(tiny_bert, traces[0], other_bert)
    assert [bars.name for bars in result.figure().data] == ["tiny-cased", "tiny-uncased"] * 2
    assert [len(curve.y) for curve in result.figure("lens").data] == [3, 4]
    assert [len(curve.y) for curve in result.figure("entropy").data] == [2, 3]
    table = result.to_frame().query("question == 'mask'")
    assert table["answer_a"].tolist() == [one.token for one in same.predictions_a]
    assert table["divergence_bits"].tolist() == [same.divergence] * 5
    drawn = tmp_path / "lens.html"
    record("compare", *TEXTS, "--other", other_folder, "--show", "lens", "--html", drawn)
    assert "relative depth" in drawn.read_text("utf-8")
    assert "divergence_bits" in say("compare", *TEXTS, "--other", other_folder)


def test_one_model_on_two_texts(record, tiny_bert):
    asked = ("compare", "the cat sat", "--mask", "cat", "--other-text", "the dog sat", "--other-mask", "dog")
    actual = record(*asked, "--show", "difference", "--layer", 0, "--head", 3)
    one, two = tiny_bert.trace("the cat sat", mask=["cat"]), tiny_bert.trace("the dog sat", mask=["dog"])
    expected = one.attentions[0, 3] - two.attentions[0, 3]
    np.testing.assert_allclose(actual["attention"]["difference"], expected, atol=1e-5)
    result = explain.side_by_side(tiny_bert, one, None, ("the dog sat",), ("dog",), 0, 3)
    np.testing.assert_allclose(result.figure("difference").data[0].z, expected, atol=1e-5)
    assert actual["comparison"]["masks"][0]["divergence"] == pytest.approx(0, abs=1e-6)
    shorter = record("compare", "the cat sat", "--other-text", "the dog")
    assert shorter["attention"] is None and [len(shorter[side]["tokens"]) for side in "ab"] == [5, 4]


def test_the_order_of_sentences_side_by_side(record):
    pair, albert = ("the license of the work", "the work"), GOLDEN_FOLDERS / "albert"
    actual = record("compare", *pair, "--other-text", *reversed(pair), model=albert)
    bert = bert_tf.load(albert)
    shares = [bert.trace(*texts).sop.in_order for texts in (pair, pair[::-1])]
    assert [actual[side]["in_order"] for side in "ab"] == pytest.approx(shares, abs=1e-5)
    result = explain.side_by_side(bert, bert.trace(*pair), None, pair[::-1])
    assert [bars.y[0] for bars in result.figure().data] == pytest.approx(shares, abs=1e-5)


def test_layers_alike_over_a_file(record, tiny_bert, other_bert, other_folder, file):
    texts = [tuple(line.split("\t")) for line in ROWS.splitlines() if line]
    traces = [[bert.trace(*text) for text in texts] for bert in (tiny_bert, other_bert)]
    actual = record("similarity", "--input", file, "--other", other_folder)
    np.testing.assert_allclose(actual["similarity"], explain.layer_similarity(*traces), atol=1e-4)
    assert actual["texts"] == 3 and actual["words"] == sum(len(trace.words()) for trace in traces[0])
    for measure in ("svcca", "pwcca"):
        actual = record("similarity", "--input", file, "--other", other_folder, "--measure", measure)
        wanted = explain.layer_similarity(*traces, measure=measure)
        np.testing.assert_allclose(actual["similarity"], wanted, atol=1e-3)
        assert actual["chance_similarity"] == pytest.approx(explain.chance_similarity(*traces, measure), abs=1e-3)


def test_every_row_of_a_file(record, say, tiny_bert, file):
    rows = explain.read_rows(ROWS).rows
    expected = explain.score_rows(tiny_bert, rows, hide="last")
    asked = ("masks", "next", "perplexity")
    actual = record("dataset", "--input", file, "--ask", *asked, "--hide", "last")
    for one, same in zip(actual["rows"], expected, strict=True):
        assert [mask["original_rank"] for mask in one["masks"]] == [mask.original_rank for mask in same.masks]
        assert one["perplexity"] == pytest.approx(same.perplexity, rel=1e-3)
        assert one["row"]["text_b"] == same.row.text_b
    assert actual["summary"]["masks"] == 3 and actual["summary"]["next"] == 2
    part = record("dataset", "--input", file, "--ask", "masks", "--hide", "last", "--subset", "ends=2-3,4")["subsets"]
    own = explain.summarise_rows([one for one in expected if one.row.number in (2, 4)])
    assert part["ends"]["rows"] == [2, 4] and part["ends"]["summary"]["masks"] == own.masks == 2
    assert part["ends"]["summary"]["first"] == own.first
    result = explain.predict_dataset(tiny_bert, rows, asked, "last", [("ends", "2-4")])
    assert [len(bars.x) for bars in result.figure().data] == [3, 2, 3]
    table = result.to_frame()
    assert table["row"].tolist() == [1, 2, 4] and table["subsets"].tolist() == ["", "ends", "ends"]
    assert table["original_rank"].tolist() == [str(one.masks[0].original_rank) for one in expected]
    np.testing.assert_allclose(table["perplexity"], [one["perplexity"] for one in result.to_dict()["rows"]], rtol=1e-5)
    plain = record("dataset", "--input", file, "--rows", 1)
    assert len(plain["rows"]) == 1 and plain["rows"][0]["perplexity"] is None
    assert [line.split()[0] for line in say("dataset", "--input", file).splitlines()[2:]] == ["1", "2", "4"]


def test_the_rows_of_a_file_are_laid_out(record, say, tiny_bert, file):
    rows = explain.read_rows(ROWS).rows
    vectors = explain.row_vectors(tiny_bert, rows, "first").vectors[1]
    options = ("--show", "map", "--pooling", "first", "--layer", 1, "--colour", "is_next")
    actual = record("dataset", "--input", file, *options)
    coordinates, shares = explain.principal_components(vectors)
    np.testing.assert_allclose(actual["map"]["coordinates"], coordinates, atol=1e-4)
    np.testing.assert_allclose(actual["map"]["explained_variance"], shares, atol=1e-4)
    assert actual["map"]["values"] == [row["is_next"] for row in actual["rows"]]
    result = explain.predict_dataset(tiny_bert, rows, show="map", pooling="first", layer=1, colour="is_next")
    known, unknown = result.figure().data
    assert len(known.x) + len(unknown.x) == len(rows) == 3
    assert list(known.marker.color) == [value for value in result.map.values if value is not None]
    np.testing.assert_allclose(result.to_frame()[["x", "y"]], result.map.coordinates)
    space = record("dataset", "--input", file, "--show", "map", "--dimensions", 3)["map"]
    wanted = explain.project_to_plane(explain.row_vectors(tiny_bert, rows).vectors[-1], "pca", 3)[0]
    np.testing.assert_allclose(space["coordinates"], wanted, atol=1e-4)
    result = explain.predict_dataset(tiny_bert, rows, show="map", dimensions=3)
    assert {trace.type for trace in result.figure().data} == {"scatter3d"}
    table = say("dataset", "--input", file, "--show", "map", "--dimensions", 3).splitlines()
    assert table[1].split()[:4] == ["row", "x", "y", "z"]
    number = rows[1].number
    near = record("dataset", "--input", file, "--show", "map", "--near", number)["map"]
    last = explain.row_vectors(tiny_bert, rows).vectors[-1]
    wanted = explain.nearest_rows(last, 1)
    assert [row for row, _ in near["nearest"]] == [rows[index].number for index, _ in wanted]
    assert [cosine for _, cosine in near["nearest"]] == pytest.approx([cosine for _, cosine in wanted], abs=1e-4)
    lines = say("dataset", "--input", file, "--show", "map", "--near", number, "--top-k", 1).splitlines()
    assert lines[2].split()[0] == str(rows[wanted[0][0]].number) and float(lines[2].split()[1]) == pytest.approx(
        wanted[0][1], abs=1e-3
    )
    lines = say("dataset", "--input", file, "--show", "map", "--colour", "tokens").splitlines()
    assert [line.split()[0] for line in lines[2:]] == [str(row.number) for row in rows]


@pytest.fixture(scope="module")
def concept(tmp_path_factory):
    """What `explain concepts` takes of a concept: sentences with a word, and others."""
    folder, ends = tmp_path_factory.mktemp("concept"), ("sat", "ran", "is big", "was small", "is red", "ate", "ended")
    (folder / "cat.txt").write_text("".join(f"the cat {end}\n" for end in ends))
    (folder / "rest.txt").write_text("".join(f"{who} {end}\n" for who in ("she", "a dog") for end in ends))
    return "--concept", folder / "cat.txt", "--against", folder / "rest.txt"


def test_a_concept_and_a_word_or_a_verdict(record, say, tiny_bert, file, concept):
    texts = [[row.text_a for row in explain.read_rows(path.read_bytes()).rows] for path in concept[1::2]]
    rows = explain.read_rows(ROWS).rows
    for options, asked in (
        (("--target", "dog", "--hide", "last"), {"of": "word", "answer": "dog", "hide": "last"}),
        (("--next-sentence", "--opposite"), {"of": "next", "answer": "NotNext"}),
    ):
        actual = record("concepts", "--input", file, *concept, "--runs", 3, *options)
        expected = explain.concept_test(tiny_bert, rows, *texts, runs=3, **asked)
        assert actual["target"]["label"] == asked["answer"]
        assert actual["is_significant"] == expected.is_significant.tolist()
        assert actual["rows"] == [rows[place].number for place in expected.places]
        for name in ("scores", "random_scores", "accuracies", "slopes", "p_values"):
            np.testing.assert_allclose(actual[name], getattr(expected, name), atol=1e-4)
    lines = say("concepts", "--input", file, *concept, "--runs", 3, "--next-sentence").splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["hidden_state", "0", "1", "2"]
    assert lines[1].endswith("significant")


def test_a_concept_for_the_rows_of_one_label(record, tiny_bert, concept, tmp_path):
    path = tmp_path / "labelled.csv"
    path.write_text("text,label\nthe cat sat,x\nthe dog ran,y\nit ate the cat,x\n")
    options = ("--target", "dog", "--hide", "last", "--runs", 3)
    actual = record("concepts", "--input", path, "--labelled", "x", *concept, *options)
    texts = [[row.text_a for row in explain.read_rows(one.read_bytes()).rows] for one in concept[1::2]]
    rows = [row for row in explain.read_rows(path.read_bytes(), "table").rows if row.label == "x"]
    expected = explain.concept_test(tiny_bert, rows, *texts, "word", "dog", "last", 3)
    assert actual["rows"] == [1, 3] == [row.number for row in rows]
    np.testing.assert_allclose(actual["slopes"], expected.slopes, atol=1e-4)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ((), "no classes: name the answer that is tested with --target or --next-sentence"),
        (("--labelled", "x", "--target", "dog"), "No row of the file is labelled 'x'"),
        (("--target", "dog", "--label", "good"), "only one of --target and --label"),
        (("--opposite",), "--opposite goes with"),
        (("--runs", "1"), "runs must be at least 2"),
        (("--sentence-order",), "no head for --sentence-order"),
    ],
)
def test_a_concept_that_cannot_be_tested(capsys, tiny_folder, file, concept, arguments, sentence):
    command = ["concepts", "--input", file, *concept, *arguments, "--model", tiny_folder, "--quiet"]
    assert main(["explain", *map(str, command)]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("--layer", 9), "no layer 9"),
        (("--colour", "mood"), "label, first_prediction"),
        (("--colour", "is_next"), "not 'is_next'"),
        (("--near", 2), "Row 2 cannot be read"),
        (("--by", "tsne"), "t-SNE needs at least 5 points, not 2"),
        (("--pooling", "first", "--layer", 0), "the first token is the same in every row: choose the mean"),
    ],
)
def test_a_map_that_cannot_be_made_is_told_before_a_row_is_asked(
    capsys, monkeypatch, tiny_folder, tmp_path, arguments, sentence
):
    path = tmp_path / "rows.csv"
    path.write_text("text,label\nthe cat sat,x\n\u200b,y\nthe dog ran,x\n")
    monkeypatch.setattr("bert_tf.explain.datasets.dataset.score_rows", lambda *_: pytest.fail("the file was asked"))
    command = ["dataset", "--input", str(path), "--show", "map", *map(str, arguments), "--model", str(tiny_folder)]
    assert main(["explain", *command, "--quiet"]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("--label", "bad"), "--label goes with --show curve"),
        (("--show", "curve", "--ask", "masks"), "add classes to --ask"),
        (("--show", "curve"), "not fine-tuned to classify"),
    ],
)
def test_a_curve_that_cannot_be_drawn_is_told_before_a_row_is_asked(
    capsys, monkeypatch, tiny_folder, file, arguments, sentence
):
    monkeypatch.setattr("bert_tf.explain.datasets.dataset.score_rows", lambda *_: pytest.fail("the file was asked"))
    assert main(["explain", "dataset", "--input", str(file), *arguments, "--model", str(tiny_folder), "--quiet"]) == 2
    assert sentence in capsys.readouterr().err


def test_a_row_that_is_not_there_is_told_before_the_model_is_read(capsys, file):
    command = ["dataset", "--input", str(file), "--show", "map", "--near", "3", "--model", "no-such-model"]
    assert main(["explain", *command]) == 2
    assert "There is no row 3 in the file" in capsys.readouterr().err


def test_the_rows_of_a_file_by_tsne_and_umap(record, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("".join(f"the cat number {number} sat\n" for number in range(7)))
    for way in ("tsne", "umap"):
        option = {"tsne": "--by", "umap": "--projection"}[way]  # the earlier name works as well
        actual = record("dataset", "--input", path, "--show", "map", option, way)["map"]
        # The layout hangs on the last bits of the vectors.
        assert np.shape(actual["coordinates"]) == (7, 2) and np.ptp(actual["coordinates"], axis=0).all()
        assert actual["projection"] == way and actual["explained_variance"] is None


def test_every_row_of_a_file_is_classified(record, say, tmp_path):
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type

    settings, bert = TaskSettings("classify", ("bad", "good"), pooling="mean"), make_bert(seed=3)
    network = network_over(bert.model, task_type("classify"), settings)
    randomise(network, 5)
    save_task(tmp_path / "judge", bert.config, bert.tokenizer, network, settings)
    texts, labels = ["the cat sat", "it ran", "money in the bank", "a dog"], ["good", "bad", "bad", "odd"]
    path = tmp_path / "rows.csv"
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in zip(texts, labels)))
    predicted = bert_tf.load(tmp_path / "judge").task.predict(texts)
    actual = record("dataset", "--input", path, "--ask", "classes", model=tmp_path / "judge")
    assert [row["row"]["label"] for row in actual["rows"]] == labels
    assert [row["task_prediction"]["label"] for row in actual["rows"]] == [one["label"] for one in predicted]
    right = sum(one["label"] == label for one, label in zip(predicted[:3], labels))
    assert actual["classes"]["scores"]["accuracy"] == pytest.approx(right / 3, abs=1e-6)
    assert actual["classes"]["unknown"] == {"odd": 1} and actual["classes"]["rows"] == 3
    judge, rows = bert_tf.load(tmp_path / "judge"), explain.read_rows(path.read_bytes(), "table").rows
    bars, cells = explain.predict_dataset(judge, rows, ("classes",)).figure().data
    np.testing.assert_allclose(bars.x, [one["probability"] for one in predicted], atol=1e-5)
    counts = actual["classes"]["confusion"][1]
    assert np.sum(counts) == 3 and np.array_equal(cells.text, counts)
    lines = say("dataset", "--input", path, "--ask", "classes", model=tmp_path / "judge").splitlines()
    assert f" good {predicted[0]['label']} " in " ".join(lines[2].split())
    asked = ("dataset", "--input", path, "--ask", "classes", "--show", "curve")
    curve = record(*asked, "--label", "bad", model=tmp_path / "judge")["curve"]
    values = [one["probabilities"]["bad"] for one in predicted[:3]]
    assert (curve["label"], len(curve["is_positive"])) == ("bad", 3)
    assert curve["auc"] == np.mean([values[1] > values[0], values[2] > values[0]])
    np.testing.assert_allclose(curve["thresholds"], sorted(values), atol=1e-5)
    result = explain.predict_dataset(judge, rows, ("classes",), show="curve", label="bad")
    drawn = result.figure().data
    np.testing.assert_array_equal(result.to_frame()["precision"], result.curve.precision)
    np.testing.assert_allclose(drawn[0].y[:-1], curve["precision"])
    np.testing.assert_allclose(drawn[1].x[:-1], curve["false_positive_rate"])
    lines = say(*asked, model=tmp_path / "judge").splitlines()
    assert len(lines) == 5 and lines[1].split()[:2] == ["threshold", "precision"]
    path.write_text("text,text_b,label\nthe cat sat,it ran,good\na dog,so it ended,bad\nmoney,in the bank,bad\n")
    plane = record("dataset", "--input", path, "--ask", "classes", "--show", "map", model=tmp_path / "judge")["map"]
    judge = bert_tf.load(tmp_path / "judge")
    states = [judge.trace(text).hidden_states[-1].mean(axis=0) for text in ("the cat sat", "a dog", "money")]
    np.testing.assert_allclose(plane["coordinates"], explain.principal_components(states)[0], atol=1e-4)
    assert plane["texts"][1] == "a dog · so it ended"


def test_rows_and_sides_by_the_heads_that_a_model_has(record, tmp_path):
    path, judge = tmp_path / "rows.txt", GOLDEN_FOLDERS / "electra-discriminator"
    path.write_text("w1 w2 w3\nw4 w5\n")
    bert = bert_tf.load(judge)
    expected = explain.score_rows(bert, explain.read_rows(path.read_text()).rows)
    actual = record("dataset", "--input", path, model=judge)
    for one, same in zip(actual["rows"], expected, strict=True):
        assert [token for token, _ in one["replaced"]] == [token for token, _ in same.replaced]
        assert [score for _, score in one["replaced"]] == pytest.approx([s for _, s in same.replaced], abs=1e-5)
    assert actual["summary"]["scored"] == 5
    agreed = record("agreement", "--input", path, "--other", judge, model=judge)
    assert agreed["replaced_rows"] == 2 and [one["replaced_difference"] for one in agreed["rows"]] == [0, 0]
    sides = record("compare", "w1 w2", "--other", judge, model=judge)
    assert sides["comparison"]["replaced_difference"] == 0 and sides["comparison"]["is_next_difference"] is None
    result = explain.side_by_side(bert, bert.trace("w1 w2"), bert)
    scores = pytest.approx(bert.trace("w1 w2").replaced.tolist(), abs=1e-5)
    assert [list(bars.y) for bars in result.figure().data] == [scores] * 2
    assert result.to_frame()["probability_b"].tolist() == scores and sides["b"]["replaced"] == scores
    path.write_text("the work\tthe license\n")
    order = record("dataset", "--input", path, "--ask", "order", model=GOLDEN_FOLDERS / "albert")["rows"][0]["in_order"]
    trace = bert_tf.load(GOLDEN_FOLDERS / "albert").trace("the work", "the license")
    assert order == pytest.approx(trace.sop.in_order, abs=1e-5)


def test_minimal_pairs_of_a_file(record, say, tiny_bert, tmp_path):
    path, pairs = tmp_path / "pairs.txt", [("the cat sat", "the cat mat"), ("it ran", "ran it")]
    path.write_text("\n".join("\t".join(pair) for pair in pairs))
    expected, actual = explain.minimal_pairs(tiny_bert, pairs), record("minimal-pairs", "--input", path)
    margins = [one["margin"] for one in actual["pairs"]]
    assert margins == pytest.approx([pair.margin for pair in expected], abs=1e-3) and actual["names"] == [1, 2]
    assert actual["accuracy"] == sum(margin > 0 for margin in margins) / 2 and len(expected) == 2
    assert list(expected.figure().data[0].x) == expected.to_frame()["margin"].tolist()
    assert record("pairs", "--input", path) == actual
    assert "ran it" in say("pairs", "--input", path).splitlines()[-1]


def test_the_sizes_of_architectures(record, say, tmp_path):
    from bert_tf.explain.models.architecture_table import architecture_rows

    expected = architecture_rows(64)
    actual = record("architectures", "--length", 64, "--html", tmp_path / "a.html", model=None)
    assert [(one["size"], one["flops"]) for one in actual["sizes"]] == [(row.size, row.flops) for row in expected]
    (albert,) = (one for one in actual["sizes"] if (one["architecture"], one["size"]) == ("ALBERT", "base"))
    assert albert["learns_from"] == ["hidden words", "sentence order"] and "tanh GELU" in albert["changed"]
    assert record("family", "--length", 64, "--show", "work", model=None) == actual
    timed = record("architectures", "--largest", 4.5, "--speed", "--length", 8, model=None)["sizes"]
    assert timed and all(one["seconds"] > 0 and one["parameters"]["total"] <= 4.5e6 for one in timed)
    assert say("architectures", model=None).splitlines()[2].split()[0] == "BERT"


def test_two_models_on_every_row(record, say, tiny_bert, other_bert, other_folder, file):
    expected = explain.agreement(tiny_bert, other_bert, explain.read_rows(ROWS).rows)
    actual = record("agreement", "--input", file, "--other", other_folder)
    assert [one["row"]["number"] for one in actual["rows"]] == [one.row.number for one in expected.rows]
    divergences = [row["divergence"] for row in actual["rows"]]
    assert divergences == pytest.approx([one.divergence for one in expected.rows], abs=1e-5)
    assert actual["divergence"] == pytest.approx(expected.divergence, abs=1e-5)
    assert list(expected.figure().data[0].x) == [one.divergence for one in expected.rows]
    lines = say("agreement", "--input", file, "--other", other_folder).splitlines()
    assert lines[0] == f"{tiny_bert.name} and {other_bert.name}"
    assert [int(line.split()[0]) for line in lines[2:]] == [one.row.number for one in expected.rows]


def test_a_text_through_a_training(record, say, run_folder, tmp_path):
    berts = [make_bert(seed=seed) for seed in (7, 8)]
    traces = [bert.trace(*TEXTS) for bert in berts]
    asked = (run_folder, *TEXTS, "--target", "sat")
    actual = record("time-lapse", *asked, "--html", tmp_path / "x.html", model=None)
    assert actual["model"] == "small-run" and actual["steps"] == [0, 10]
    (trajectory,) = actual["trajectories"]
    token = berts[0].tokenizer.token_to_id("sat")
    assert trajectory["ranks"] == [1 + int((trace.logits[0] > trace.logits[0, token]).sum()) for trace in traces]
    assert [one["is_next"] for one in actual["snapshots"]] == pytest.approx([t.nsp.is_next for t in traces], abs=1e-4)
    assert (tmp_path / "x.html").stat().st_size > 1000 and record("timelapse", *asked, model=None) == actual
    result = explain.time_lapse(*TEXTS, (), run_folder, "sat")
    assert result.to_dict() == {name: actual[name] for name in result.to_dict()}
    assert result.to_frame()["rank"].tolist() == list(result.figure().data[0].y) == trajectory["ranks"]
    result = explain.time_lapse("the cat", None, (), run_folder, head=(1, 2))
    actual = record("time-lapse", run_folder, "the cat", "--head", "1.2", model=None)
    np.testing.assert_allclose(actual["attention"], result.attention, atol=1e-5)
    np.testing.assert_allclose(actual["attention"][1], berts[1].trace("the cat").attentions[1, 2], atol=1e-4)
    assert [cells.visible for cells in result.figure().data] == [False, True] and (actual["layer"], actual["head"]) == (
        1,
        2,
    )
    lines = say("time-lapse", run_folder, *TEXTS, model=None).splitlines()
    assert lines[0] == "small-run" and [line.split()[0] for line in lines[2:]] == ["0", "10"]


def test_the_parts_of_a_model(record, say, tiny_bert):
    from bert_tf.explain.models.architecture import all_sizes, layer_activations, parts

    trace = tiny_bert.trace(*TEXTS)
    expected = parts(tiny_bert.model, trace.length)
    actual = record("architecture", *TEXTS)
    assert [(one["name"], one["parameters"], one["flops"]) for one in actual["parts"]] == [
        (one.name, one.parameters, one.flops) for one in expected
    ]
    assert sum(one["flops_share"] for one in actual["parts"]) == pytest.approx(1, abs=1e-5)
    result = explain.architecture(tiny_bert, trace)
    assert list(result.figure().data[0].x) == [one.parameters for one in expected]
    assert list(result.figure("flops").data[0].x) == result.to_frame()["flops"].tolist()
    actual = record("architecture", *TEXTS, "--show", "sizes")
    sizes = all_sizes(tiny_bert.config, trace.length)
    assert [size["flops"] for size in actual["sizes"]] == [size.flops for size in sizes]
    assert len(explain.architecture(tiny_bert, trace, "sizes").figure().data[0].y) == len(sizes) > 5
    values = layer_activations(tiny_bert, trace, 1)
    for name in ("feed_forward_norm", "queries", "attentions"):
        np.testing.assert_allclose(
            record("architecture", *TEXTS, "--show", name, "--layer", 1)["values"], values[name], atol=1e-4
        )
        result = explain.architecture(tiny_bert, trace, name, 1)
        units = [column for column in result.to_frame() if column not in ("head", "position", "token")]
        np.testing.assert_array_equal(result.to_frame()[units].to_numpy().reshape(values[name].shape), values[name])
        assert result.figure().data[0].z.shape == (trace.length, {"attentions": trace.length}.get(name, 32))
    assert say("architecture", *TEXTS).splitlines()[2].split()[0] == "embeddings"


def test_readers_of_one_side_and_of_both(record, say, tiny_folder, other_folder, tiny_bert):
    text, models = "the cat sat on the mat", ("--models", tiny_folder, other_folder)
    actual = record("directionality", text, "--hide", "sat", *models, model=None)
    expected = explain.predict_span(tiny_bert, text, 8, 11)
    first = actual["readers"][0]
    assert (actual["start"], actual["end"], first["attention_direction"]) == (8, 11, "bidirectional")
    assert first["answer"]["original_rank"] == expected.answer.original_rank
    assert [tuple(part) for part in first["visible_spans"]] == list(expected.visible_spans)
    predicted = [one["token"] for one in first["answer"]["predictions"]]
    assert predicted == [one.token for one in expected.answer.predictions]
    result = explain.directionality(text, [tiny_bert, tiny_bert], "sat")
    assert [len(bars.x) for bars in result.figure().data] == [5, 5]
    assert result.to_frame()["prediction"].tolist() == predicted * 2
    masked = record("one-way", "the cat [MASK] on the mat", *models, model=None)
    assert masked["readers"][0]["answer"]["predictions"] == first["answer"]["predictions"] and masked["end"] == 14
    assert "sat" in say("one-way", text, "--hide", "sat", *models, model=None).splitlines()[-1].split()


def test_the_game_of_replaced_words(record, say):
    judge, writer = GOLDEN_FOLDERS / "electra-discriminator", GOLDEN_FOLDERS / "electra-generator"
    text = "w1 w2 w3 w4 w5"
    game = explain.replace_and_detect(bert_tf.load(writer), bert_tf.load(judge), text, 0.5, seed=3)
    options = (text, "--generator", writer, "--share", 0.5, "--seed", 3)
    actual = record("replaced-token-detection", *options, model=judge)
    assert actual["tokens"] == list(game.tokens) and actual["replaced"] == game.replaced.tolist()
    np.testing.assert_allclose(actual["scores"], game.scores, atol=1e-5)
    assert actual["true_positives"] == game.true_positives and actual["positions"] == list(game.positions)
    table = game.to_frame()
    assert table["token"].tolist() == list(game.tokens[1:-1])
    np.testing.assert_array_equal(table["score"], game.scores[1:-1])
    assert len(game.figure().data[0].y) == 5
    assert len(say("replaced", *options, model=judge).splitlines()) == 7
    assert record("replaced", text, "--generator", writer, "--mask", "w2", model=judge)["positions"] == [2]


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("compare", "the cat"), "Give --other M"),
        (("compare", "the cat", "--other-text", "a", "b", "c"), "one text or two"),
        (("compare", "the cat", "--other-text", " "), "text_a is empty"),
        (
            ("compare", "the cat", "--other-text", "the dog ran", "--show", "difference", "--html", "FOLDER/a.html"),
            "equal numbers of tokens",
        ),
        (
            ("compare", "the cat", "--other-text", "the dog", "--show", "lens", "--html", "FOLDER/a.html"),
            "masked words",
        ),
        (("compare", "the cat", "--other-text", "the dog", "--layer", "2"), "no layer 2"),
        (("compare", "the cat", "--other-text", "the dog", "--head", "4"), "no head 4"),
        (("compare", "the cat", "--other", "MODEL", "--other-mask", "cat"), "--other-mask hides"),
        (("dataset",), "required: --input"),
        (("dataset", "--input", "none.txt"), "none.txt: No such file"),
        (("dataset", "--input", "LATIN"), "latin.txt is not text in UTF-8 (byte 3): save it as UTF-8."),
        (("tcav", "--input", "FILE", "--concept", "LATIN", "--against", "FILE"), "latin.txt is not text in UTF-8"),
        (("dataset", "--input", "FILE", "--ask", "sense"), "--ask takes"),
        (("dataset", "--input", "FILE", "--near", "1"), "go with --show map"),
        (("dataset", "--input", "FILE", "--pooling", "first"), "go with --show map"),
        (("dataset", "--input", "FILE", "--by", "pca"), "go with --show map"),
        (("dataset", "--input", "FILE", "--dimensions", "3"), "go with --show map"),
        (("dataset", "--input", "FILE", "--subset", "short"), "takes NAME=ROWS"),
        (("dataset", "--input", "FILE", "--subset", "short=77"), "none of the rows '77'"),
        (("dataset", "--input", "FILE", "--show", "map", "--near", "99"), "no row 99"),
        (("dataset", "--input", "FILE", "--show", "map", "--layer", "9"), "no layer 9"),
        (("dataset", "--input", "FILE", "--show", "map", "--colour", "mood"), "--colour takes an attribute"),
        (("dataset", "--input", "FILE", "--show", "map", "--by", "tsne"), "t-SNE needs at least 5"),
        (("dataset", "--input", "FILE", "--rows", "0"), "--rows must be at least 1"),
        (("agreement", "--input", "FILE", "--other", "no-such-model"), "no-such-model"),
        (("pairs", "--input", "FILE"), "Line 2 has one text only"),
        (("architectures", "--largest", "0.1"), "No size has at most 0.1"),
        (("time-lapse", "no-run", "the cat"), "no-run holds no"),
        (("time-lapse", "RUN", "the cat", "--head", "5.0"), "no head 5.0"),
        (("time-lapse", "RUN", "the [MASK]", "--target", "zebra"), "no token 'zebra'"),
        (("architecture", "the cat", "--show", "queries", "--layer", "2"), "no layer 2"),
        (("one-way", "the cat", "--models", "MODEL"), "Nothing is hidden"),
        (("one-way", "the cat", "--hide", "dog", "--models", "MODEL"), "'dog' is not in the text"),
        (("replaced", "the cat", "--generator", "MODEL"), "no replaced-token head"),
    ],
)
def test_each_mistake_is_told_in_one_line(capsys, tiny_folder, run_folder, file, tmp_path, arguments, sentence):
    named = {
        "FOLDER/a.html": str(tmp_path / "a.html"),
        "MODEL": str(tiny_folder),
        "RUN": str(run_folder),
        "FILE": str(file),
        "LATIN": str(tmp_path / "latin.txt"),
    }
    (tmp_path / "latin.txt").write_bytes("café".encode("latin-1"))
    own = [] if arguments[0] in ("time-lapse", "one-way", "architectures") else ["--model", str(tiny_folder)]
    assert main(["explain", *(named.get(one, one) for one in arguments), *own]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and sentence in lines[0], lines
