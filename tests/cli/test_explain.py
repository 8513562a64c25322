"""`explain KIND`: the numbers of the library, as JSON and as lines, and one line for each mistake."""

import json

import numpy as np
import pytest

from bert_tf import explain
from bert_tf.cli import main
from bert_tf.results import plain

pytestmark = pytest.mark.usefixtures("models_loaded_once")

TEXTS = ["the cats [MASK] on the mat", "it ran"]


@pytest.fixture(scope="module")
def trace(tiny_bert):
    return tiny_bert.trace(*TEXTS)


@pytest.fixture
def say(tiny_folder, capsys):
    def output_of(kind, *arguments, texts=TEXTS):
        assert main(["explain", kind, *texts, *map(str, arguments), "--model", str(tiny_folder)]) == 0
        return capsys.readouterr().out

    return output_of


@pytest.fixture
def record(say):
    return lambda *arguments, **texts: json.loads(say(*arguments, "--json", **texts))


def test_attention_maps(record, tiny_bert, trace):
    expected = {
        "raw": trace.attentions.mean(axis=1),
        "rollout": explain.attention_rollout(trace),
        "norm-weighted": explain.norm_weighted_attention(tiny_bert, trace).layers,
        "effective": explain.effective_attention(tiny_bert, trace).mean(axis=1),
    }
    for method, maps in expected.items():
        printed = record("attention", "--method", method)
        assert printed["analysis"] == "attention" and printed["tokens"] == list(trace.tokens)
        np.testing.assert_allclose(printed["maps"], maps, atol=1e-4)


def test_lens(record, tiny_bert, trace):
    lens = explain.logit_lens(tiny_bert, trace, top_k=2)
    printed = record("logit-lens", "--top-k", 2)
    assert printed["analysis"] == "logit-lens" and printed["tokens"] == list(trace.tokens)
    assert {name: printed[name] for name in lens.to_dict()} == lens.to_dict()
    assert record("lens", "--top-k", 2) == printed


@pytest.mark.parametrize(
    "method",
    ["gradient-x-input", "smoothgrad", "integrated-gradients", "deeplift", "lrp", "occlusion", "lime"],
)
def test_saliency(record, tiny_bert, trace, method):
    target = explain.mask_target(tiny_bert, trace, token="sat")
    expected = explain.SALIENCY_METHODS[method](tiny_bert, trace, target)
    printed = record("saliency", "--method", method, "--target", "sat")
    assert (printed["analysis"], printed["method"]) == ("saliency", method)
    assert printed["tokens"] == list(trace.tokens) and printed["target"] == plain(target)
    np.testing.assert_allclose(printed["scores"], expected.scores, atol=1e-3)
    assert [one["word"]["text"] for one in printed["words"]] == [word.text for word in trace.words()]
    np.testing.assert_allclose(
        [one["score"] for one in printed["words"]], [one.score for one in expected.words], atol=1e-3
    )
    assert record("saliency", "--next-sentence", "--method", method)["target"]["label"] == "IsNext"


@pytest.mark.parametrize("unit", ["word", "token"])
def test_occlusion_takes_its_unit(record, tiny_bert, trace, unit):
    expected = explain.occlusion(tiny_bert, trace, explain.mask_target(tiny_bert, trace), unit=unit)
    printed = record("saliency", "--method", "occlusion", "--unit", unit)
    np.testing.assert_allclose(printed["scores"], expected.scores, atol=1e-3)
    assert (printed["scores"][2] == printed["scores"][3]) == (unit == "word")  # "cats" is two tokens


def test_smoothgrad_takes_its_copies_and_noise(record, tiny_bert, trace):
    printed = record("saliency", "--method", "smoothgrad", "--steps", 5, "--noise", 0.1)
    expected = explain.smoothgrad(tiny_bert, trace, explain.mask_target(tiny_bert, trace), 5, 0.1)
    np.testing.assert_allclose(printed["scores"], expected.scores, atol=1e-3)
    assert printed["noisy_log_probability"] == pytest.approx(expected.noisy_log_probability, abs=1e-3)


def test_deeplift_takes_its_baseline_and_lrp_says_what_else_has_a_share(record, tiny_bert, trace):
    target = explain.mask_target(tiny_bert, trace)
    printed = record("saliency", "--method", "deeplift", "--baseline", "[MASK]")
    np.testing.assert_allclose(
        printed["scores"], explain.deeplift(tiny_bert, trace, target, "[MASK]").scores, atol=1e-3
    )
    gained = printed["log_probability"] - printed["baseline_log_probability"]
    assert sum(printed["scores"]) == pytest.approx(gained, abs=1e-4)
    printed, expected = record("saliency", "--method", "lrp"), explain.layerwise_relevance(tiny_bert, trace, target)
    assert printed["rest"] == pytest.approx(expected.rest, abs=1e-3)
    assert sum(printed["scores"]) + sum(printed["rest"].values()) == pytest.approx(printed["log_odds"], abs=1e-4)


def test_deeplift_takes_several_references(record, tiny_bert, trace, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("the dog\n\nit ran on and on\n")
    target, texts = explain.mask_target(tiny_bert, trace), ["the dog", "it ran on and on"]
    printed = record("saliency", "--method", "deeplift", "--references", path)
    expected = explain.deeplift(tiny_bert, trace, target, texts)
    np.testing.assert_allclose(printed["scores"], expected.scores, atol=1e-3)
    assert printed["baseline_log_probability"] == pytest.approx(expected.baseline_log_probability, abs=1e-3)


def test_what_rounding_leaves_has_no_sign_of_its_own(say):
    lines = say("saliency", "--method", "deeplift").splitlines()
    assert "convergence delta: +0.000" in lines and not any("-0.000" in line for line in lines)


def test_lime_takes_its_samples_and_what_covers(record, tiny_bert, trace):
    printed = record("saliency", "--method", "lime", "--samples", 40, "--baseline", "[PAD]")
    expected = explain.lime(tiny_bert, trace, explain.mask_target(tiny_bert, trace), 40, "[PAD]")
    np.testing.assert_allclose(printed["scores"], expected.scores, atol=1e-3)
    assert printed["weighted_r2"] == pytest.approx(expected.weighted_r2, abs=1e-3)


@pytest.mark.parametrize("asked, numbers", [((), (3, 2)), (("--flips", 1, "--tried", 4), (1, 4))])
def test_hotflip(record, tiny_bert, trace, asked, numbers):
    expected = explain.hotflip(tiny_bert, trace, explain.mask_target(tiny_bert, trace), *numbers)
    printed = record("saliency", "--method", "hotflip", *asked)
    assert (printed["method"], printed["target_is_top"], printed["flipped"]) == ("hotflip", True, expected.flipped)
    for name, flips in (("applied", expected.applied), ("tried", expected.tried)):
        assert [(one["word"]["text"], one["new"], one["answer"]["label"]) for one in printed[name]] == [
            (one.word.text, one.new, one.answer.label) for one in flips
        ]
        for key in ("change", "estimate", "log_probability"):
            assert [one[key] for one in printed[name]] == pytest.approx([getattr(one, key) for one in flips], abs=1e-3)
    assert printed["applied"] and printed["applied"][-1]["text_a"] == expected.applied[-1].text_a


@pytest.mark.parametrize("asked", [(), ("--target", "cat"), ("--next-sentence",)])
def test_input_reduction(record, tiny_bert, trace, asked):
    target = {
        (): lambda: explain.mask_target(tiny_bert, trace),
        ("--target", "cat"): lambda: explain.mask_target(tiny_bert, trace, token="cat"),
        ("--next-sentence",): lambda: explain.next_sentence_target(tiny_bert, trace),
    }[asked]()
    expected = explain.reduce_input(tiny_bert, trace, target)
    printed = record("saliency", "--method", "input-reduction", *asked)
    assert printed["method"] == "input-reduction" and printed["target_is_top"] == expected.target_is_top
    assert [one["word"]["text"] for one in printed["removed"]] == [one.word.text for one in expected.removed]
    assert [one["log_probability"] for one in printed["removed"]] == pytest.approx(
        [one.log_probability for one in expected.removed], abs=1e-3
    )
    assert [(one["source"], one["start"]) for one in printed["remaining"]] == [
        (word.source, word.start) for word in expected.remaining
    ]


def agrees(printed, result):
    """Whether what the command printed is the record of the library's result, up to the rounding of another pass."""
    wanted = result.to_dict()
    assert set(wanted) <= set(printed)
    close(wanted, {name: printed[name] for name in wanted})
    return True


def close(wanted, printed):
    if isinstance(wanted, dict):
        assert wanted.keys() == printed.keys()
        for name, value in wanted.items():
            close(value, printed[name])
    elif isinstance(wanted, list):
        assert len(wanted) == len(printed)
        for one, other in zip(wanted, printed):
            close(one, other)
    elif isinstance(wanted, float):
        assert printed == pytest.approx(wanted, abs=1e-3)
    else:
        assert printed == wanted


def test_ablation_of_named_parts_and_of_each(record, tiny_bert, trace):
    parts = explain.Ablation(heads=((0, 1),), feed_forward=(1,))
    effect = explain.ablate(tiny_bert, trace, parts, attention_shifts=True)
    assert agrees(record("ablation", "--heads", "0.1", "--feed-forward", 1), effect)
    actual, sweep = record("ablation"), explain.sweep(tiny_bert, trace, explain.every_head(tiny_bert.config))
    assert agrees(actual, sweep) and actual["analysis"] == "ablation"
    assert actual["ablations"][1]["heads"] == [[0, 1]]
    for parts, count in (("layers", 2), ("feed-forward", 2), ("tokens", trace.length)):
        assert len(record("ablation", "--sweep", parts)["ablations"]) == count
    assert len(record("ablation", "--heads", "0.1", "--heads", "0.2")["ablation"]["heads"]) == 2


@pytest.mark.parametrize("component", ["hidden_state", "attention", "feed-forward"])
def test_patching(record, tiny_bert, trace, component):
    other, target = (
        tiny_bert.trace("the dogs [MASK] on the mat", TEXTS[1]),
        explain.mask_target(tiny_bert, trace),
    )
    if component == "hidden_state":
        expected = explain.patch_states(tiny_bert, trace, other, target)
    else:
        expected = explain.patch_blocks(tiny_bert, trace, other, target, component.replace("-", "_"))
    actual = record("patching", "--corrupted", other.text_a, "--component", component)
    assert agrees(actual, expected) and actual["corrupted_tokens"] == list(other.tokens)
    earlier = component.replace("hidden_state", "state")
    assert record("patching", "--against", other.text_a, "--carry", earlier) == actual


def test_patching_hides_the_same_words_of_the_corrupted_text(record, tiny_bert):
    trace, other = tiny_bert.trace("the cats sat", mask=["sat"]), tiny_bert.trace("the dogs ran", mask=["ran"])
    expected = explain.patch_states(tiny_bert, trace, other, explain.mask_target(tiny_bert, trace))
    actual = record("patching", "--corrupted", "the dogs ran", "--mask", "sat", texts=["the cats sat"])
    assert agrees(actual, expected)


@pytest.mark.parametrize("at", [None, 4])
def test_patching_of_heads(record, tiny_bert, trace, at):
    other = tiny_bert.trace("the dogs [MASK] on the mat", TEXTS[1])
    expected = explain.patch_heads(tiny_bert, trace, other, explain.mask_target(tiny_bert, trace), at)
    options = ["--component", "head", *([] if at is None else ["--at", at])]
    actual = record("patching", "--corrupted", other.text_a, *options)
    assert agrees(actual, expected) and np.shape(actual["recovered"]) == (2, 4)
    assert (actual["component"], actual["position"]) == ("head", at)


@pytest.mark.parametrize(
    "to, receiver, at",
    [
        (None, None, None),
        ("1.2.keys", explain.Receiver("keys", 1, 2), None),
        ("1.feed-forward", explain.Receiver("feed_forward", 1), 4),
    ],
)
def test_path_patching(record, tiny_bert, trace, to, receiver, at):
    other = tiny_bert.trace("the dogs [MASK] on the mat", TEXTS[1])
    expected = explain.patch_paths(tiny_bert, trace, other, explain.mask_target(tiny_bert, trace), receiver, at)
    options = ["--corrupted", other.text_a, *([] if at is None else ["--at", at])]
    actual = record("path-patching", *options, *([] if to is None else ["--receiver", to]))
    assert agrees(actual, expected) and actual["position"] == at
    assert record("paths", *options, *(["--to", to or "answer"])) == actual


def test_contributions(record, tiny_bert, trace):
    expected = explain.contributions(tiny_bert, trace, explain.mask_target(tiny_bert, trace, token="cat"))
    assert agrees(record("contributions", "--target", "cat"), expected)
    assert record("contributions", "--next-sentence", "--opposite")["target"]["label"] == "NotNext"


def test_counterfactuals(record, tiny_bert, trace):
    actual = record("counterfactual", "--replace", "cats=big dogs")
    assert agrees(actual, explain.counterfactuals(tiny_bert, trace, [("cats", "big dogs")]))
    labels = [one["variant"]["label"] for one in actual["variants"]]
    assert labels[:4] == [
        "A and B swapped",
        "only what stands before",
        "only what stands after",
        '"big dogs" for "cats"',
    ]
    assert labels[4:] == [f'without "{word}"' for word in ("the", "cats", "on", "the", "mat", "it", "ran")]
    assert actual["variants"][3]["variant"]["tokens"][2:5] == ["big", "dog", "##s"]
    assert actual["variants"][1]["nsp"] is None


def test_likelihood_of_one_text_and_of_two(record, tiny_bert):
    texts = ("the cats sat", "a dog ran")
    good, bad = (explain.pseudo_likelihood(tiny_bert, text) for text in texts)
    actual = record("pseudo-likelihood", "--other-text", texts[1], texts=texts[:1])
    assert agrees(actual, explain.MinimalPair(good, bad))
    assert record("likelihood", "--against", texts[1], texts=texts[:1]) == actual
    single = record("likelihood", texts=texts[:1])
    assert agrees(single, good) and single["log_probabilities"][0] is None
    alone = explain.pseudo_likelihood(tiny_bert, texts[0], within_word=False)
    assert agrees(record("pseudo-likelihood", "--single-tokens", texts=texts[:1]), alone)


def test_vectors_and_similarity(record, tiny_bert, trace, tiny_folder):
    actual = record("vectors", "--top-k", 2)
    parts = explain.embedding_parts(tiny_bert, trace)
    np.testing.assert_allclose(actual["shares"], parts.shares, atol=1e-4)
    assert record("input-embeddings", "--top-k", 2) == actual
    assert all(len(near) == 2 and token != near[0]["token"] for token, near in zip(actual["tokens"], actual["nearest"]))
    similarity = record("similarity", "--other", tiny_folder)
    np.testing.assert_allclose(np.diag(similarity["similarity"]), 1, atol=1e-4)
    assert similarity["analysis"] == "layer-similarity"


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (("attention",), "attends most to"),
        (("lens",), "answer_rank"),
        (("saliency",), "convergence delta"),
        (("saliency", "--method", "smoothgrad"), "log-probability with noise"),
        (("saliency", "--method", "deeplift"), "convergence delta"),
        (("saliency", "--method", "lrp"), "biases: "),
        (("saliency", "--method", "lime"), "weighted R²"),
        (("saliency", "--method", "input-reduction"), "order"),
        (("saliency", "--method", "hotflip"), "estimate"),
        (("ablation", "--layers", "0"), "is_next"),
        (("ablation", "--layers", "0"), "of its attention goes elsewhere"),
        (("ablation",), "divergence_bits"),
        (("vectors",), "segment_share"),
        (("patching", "--against", "the dogs [MASK] on the mat"), "##s"),
        (("patching", "--against", "the dogs [MASK] on the mat", "--carry", "head"), "layer"),
        (("paths", "--against", "the dogs [MASK] on the mat", "--to", "1.0.values"), "everything"),
        (("contributions",), "all feed-forward blocks"),
        (("counterfactual",), "only what stands before"),
    ],
)
def test_lines_for_a_person(say, arguments, expected):
    lines = say(*arguments).splitlines()
    assert lines[0].endswith("[CLS] the cat ##s [MASK] on the mat [SEP] it ran [SEP]")
    assert any(expected in line for line in lines) and len(lines) > 2


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ([], "required: ANALYSIS"),
        (["magic", "a"], "invalid choice: 'magic'"),
        (["counterfactuals", "a"], "'counterfactuals'. Did you mean counterfactual?"),
        (["lens", " "], "text_a is empty"),
        (["lens", "the [MASK]", "--top-k", "0"], "top_k must be"),
        (["lens", "the cat"], "no position to look at"),
        (["saliency", "the [MASK]", "--target", "cats"], "made of: cat ##s"),
        (["saliency", "the [MASK]", "--steps", "0"], "steps must be"),
        (["saliency", "the [MASK]", "--method", "smoothgrad", "--noise", "2"], "noise must be"),
        (["saliency", "the [MASK]", "--method", "lime", "--samples", "1"], "samples must be"),
        (["saliency", "the [MASK]", "--method", "hotflip", "--flips", "11"], "flips must be"),
        (["saliency", "the [MASK]", "--references", __file__], "--references goes with --method deeplift"),
        (["saliency", "the [MASK]", "--method", "deeplift", "--references", "no-such-file"], "no-such-file"),
        (["saliency", "the cat", "--next-sentence"], "give a second text"),
        (["ablation", "the [MASK]", "--heads", "seven"], "LAYER.HEAD"),
        (["ablation", "the [MASK]", "--heads", "0.9"], "no head 9"),
        (["ablation", "the cat"], "nothing to predict"),
        (["patching", "the [MASK]"], "required: --corrupted"),
        (["patching", "the [MASK]", "--against", "the big [MASK]"], "equally many tokens"),
        (["patching", "the big cat", "--against", "a cat", "--mask", "cat"], "the first has 5, the second 4"),
        (["patching", "the [MASK]", "--against", " "], "--corrupted is empty"),
        (["patching", "the [MASK]", "--against", "a [MASK]", "--at", "1"], "--at goes with --component head"),
        (["patching", "the [MASK]", "--against", "a [MASK]", "--carry", "head", "--at", "9"], "no token 9"),
        (["paths", "the [MASK]"], "required: --corrupted"),
        (
            ["paths", "the [MASK]", "--against", "a [MASK]", "--to", "queries"],
            "A receiver is answer, LAYER.HEAD.queries",
        ),
        (["paths", "the [MASK]", "--against", "a [MASK]", "--to", "1.feed-forward.2"], "not '1.feed-forward.2'"),
        (["paths", "the [MASK]", "--against", "a [MASK]", "--to", "1.keys"], "not '1.keys'"),
        (["paths", "the [MASK]", "--against", "a [MASK]", "--to", "2.0.keys"], "no layer 2"),
        (["paths", "the [MASK]", "--against", "a [MASK]", "--at", "9"], "no token 9"),
        (["contributions", "the [MASK]", "--target", "cats"], "made of: cat ##s"),
        (["contributions", "the [MASK]", "--target", "cat", "--next-sentence"], "only one of"),
        (["counterfactual", "the [MASK]", "--replace", "the"], "OLD=NEW"),
        (["counterfactual", "the [MASK]", "--replace", "dog=cat"], "'dog' is not in the text"),
        (["similarity", "the cat", "--other", "no-such-model"], "no-such-model"),
        (["similarity", "the cat", "--other", "M", "--measure", "cca"], "invalid choice: 'cca'"),
        (["factors", "the cat", "--factors", "13"], "factors must be at least 2 and at most 12"),
        (["factors", "the cat", "--layers", "1", "2"], "has layers 0 to 1"),
    ],
)
def test_each_mistake_is_told_in_one_line(capsys, tiny_folder, arguments, sentence):
    model = ["--model", str(tiny_folder)] if len(arguments) > 1 else []
    assert main(["explain", *arguments, *model]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and sentence in lines[0] and "Traceback" not in lines[0], lines


def test_standard_output_takes_a_file_instead_of_the_lines(say, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    say("attention", "--csv", "maps.csv", "--html", "maps.html")
    assert say("attention", "--csv", "-") == (tmp_path / "maps.csv").read_text(encoding="utf-8")
    assert say("attention", "--html", "-").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["maps.csv", "maps.html"]
    assert main(["explain", "attention", "the [MASK]", "--csv", "-", "--json"]) == 2
    assert "Standard output takes one thing: give only one of --json and --csv -." in capsys.readouterr().err


@pytest.mark.parametrize(
    "files, sentence",
    [
        (["--csv", "FOLDER"], "is a folder: give the name of a file"),
        (["--html", "FOLDER/none/a.html"], "none/a.html: The folder to write it to does not exist."),
        (["--csv", "FOLDER/a", "--html", "FOLDER/./a"], "--csv and --html are the same file"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(capsys, tmp_path, files, sentence):
    files = [part.replace("FOLDER", str(tmp_path)) for part in files]
    # No model is looked for: it would be refused too.
    assert main(["explain", "attention", "the [MASK]", "--model", "no-such-model", *files]) == 2
    assert sentence in capsys.readouterr().err


def test_a_text_that_is_cut_is_reported(capsys, tiny_folder):
    assert main(["explain", "attention", "cat " * 300, "--model", str(tiny_folder), "--csv", "-"]) == 0
    assert "Cut off at the end: 174 tokens of text A, 0 of text B." in capsys.readouterr().err
    for times, expected in ((300, {"tokens_a": 174, "tokens_b": 0}), (3, None)):
        assert main(["explain", "attention", "cat " * times, "--model", str(tiny_folder), "--json"]) == 0
        assert json.loads(capsys.readouterr().out).get("truncated") == expected


def test_a_csv_cell_is_written_as_it_is(capsys, tmp_path, tiny_folder):
    path = tmp_path / "rows.txt"
    path.write_text("=cat sat\n", encoding="utf-8")
    assert main(["explain", "dataset", "--input", str(path), "--csv", "-", "--model", str(tiny_folder)]) == 0
    assert ",=cat sat," in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--csv", "--html"])
def test_the_texts_are_not_overwritten_with_the_result(capsys, tmp_path, tiny_folder, option):
    path = tmp_path / "rows.txt"
    path.write_text("the cats sat\n", encoding="utf-8")
    assert main(["explain", "dataset", "--input", str(path), option, str(path), "--model", str(tiny_folder)]) == 2
    assert f"--input and {option} are the same file" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "the cats sat\n"
