"""`explain` about attention and heads: the numbers of the library, their table and their figure."""

import io
import json

import numpy as np
import pandas
import pytest

from bert_tf import checkpoints, explain
from bert_tf.analyses import catalogue
from bert_tf.cli import main
from bert_tf.results import plain
from tests.conftest import make_bert

pytestmark = pytest.mark.usefixtures("models_loaded_once")

TEXTS = ("the cats [MASK] on the mat", "it ran")
TREE = "".join(
    f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
    for number, (word, head, relation) in enumerate([("the", 2, "det"), ("cat", 3, "nsubj"), ("sat", 0, "root")], 1)
)


@pytest.fixture
def say(tiny_folder, capsys):
    def output_of(name, *arguments):
        assert main(["explain", name, *map(str, arguments), "--model", str(tiny_folder), "--quiet"]) == 0
        return capsys.readouterr().out

    return output_of


@pytest.fixture
def printed(say):
    return lambda *arguments: json.loads(say(*arguments, "--json"))


def close(record, result):
    """See that the command printed the record of a result."""
    for name, value in result.to_dict().items():
        if isinstance(getattr(result, name), np.ndarray):
            np.testing.assert_allclose(np.array(record[name], float), np.array(value, float), atol=1e-4)
        elif not isinstance(value, dict):
            assert record[name] == value, name


def test_the_map_of_every_layer_is_drawn_and_the_last_is_open(tiny_bert):
    trace = tiny_bert.trace(*TEXTS)
    attention = explain.layer_attention(tiny_bert, trace, "raw")
    figure = attention.figure()
    assert [one.visible for one in figure.data] == [False, True]
    for drawn, expected in zip(figure.data, trace.attentions.mean(axis=1)):
        np.testing.assert_allclose(drawn.z, expected, atol=1e-4)
    assert len(figure.layout.sliders[0].steps) == 2 and len(set(figure.data[0].y)) == len(figure.data[0].y)
    table = attention.to_frame()
    row = table[(table.layer == 1) & (table.position == 3) & (table.attended_position == 4)]
    assert row["raw"].item() == pytest.approx(attention.maps[1, 3, 4]) and row["token"].item() == trace.tokens[3]
    assert attention.to_dict()["maps"] == plain(attention.maps)


def test_a_long_text_is_pooled():
    figure = explain.LayerAttention("raw", ("the",) * 300, np.eye(300)[None]).figure()
    assert figure.data[0].z.shape == (128, 128) and (np.diag(figure.data[0].z) == 1).all()


def test_flow_is_a_method_of_attention(printed, tiny_bert):
    record = printed("attention", *TEXTS, "--method", "flow")
    np.testing.assert_allclose(record["maps"][-1], explain.attention_flow(tiny_bert.trace(*TEXTS)), atol=1e-4)


@pytest.mark.parametrize("position", ["--position", "--token"])
def test_the_attention_of_one_head_comes_about(printed, tiny_bert, position):
    expected = explain.neuron_view(tiny_bert, tiny_bert.trace(*TEXTS), (1, 2), 3)
    vectors = explain.head_vectors(tiny_bert, tiny_bert.trace(*TEXTS), 1, 2)
    close(printed("neuron", *TEXTS, "--head", "1.2", position, 3), expected)
    np.testing.assert_allclose(expected.weights, vectors.weights(3))
    keys, products, bars = expected.figure().data
    np.testing.assert_allclose(products.z, vectors.products(3), atol=1e-4)
    np.testing.assert_allclose(bars.x, vectors.weights(3), atol=1e-5)
    table = expected.to_frame()
    np.testing.assert_array_equal(table["score"], expected.scores)
    assert list(table["token"]) == list(expected.tokens)


@pytest.mark.parametrize("name", ["attention-methods", "methods"])
def test_one_token_by_several_methods(printed, say, tiny_bert, name):
    trace = tiny_bert.trace("the cats sat")
    expected = explain.token_attention(tiny_bert, trace, 1, 2, 3, flow=True)
    close(printed(name, "the cats sat", "--layer", 1, "--token", 2, "--head", 3, "--flow"), expected)
    flow = explain.attention_flow(trace, 1, (2,))[0]
    np.testing.assert_allclose(expected.flow, flow / flow.sum())
    assert len(expected.figure().data) == 5
    table = expected.to_frame()
    for method in ("raw", "effective", "norm_weighted", "rollout", "flow"):
        np.testing.assert_array_equal(table[method], getattr(expected, method))
    lines = say(name, "the cats sat", "--position", 2).splitlines()
    assert lines[1].split() == ["position", "token", "raw", "effective", "norm_weighted", "rollout"]


def test_heads_of_one_text(printed, tiny_bert):
    trace = tiny_bert.trace(*TEXTS)
    record, expected = printed("head-profiles", *TEXTS), explain.profile_trace(trace)
    close(record, expected)
    summary = explain.summarise_heads(trace)
    np.testing.assert_allclose(record["summary"]["entropy"], summary.entropy, atol=1e-4)
    np.testing.assert_allclose(expected.figure().data[0].z, summary.entropy, atol=1e-4)
    assert record["tokens"] == list(trace.tokens) and np.shape(record["clusters"]) == (2, 4)
    table = expected.to_frame()
    for name, values in summary.to_arrays().items():
        np.testing.assert_allclose(table[name].to_numpy().reshape(2, 4), values)
        np.testing.assert_allclose(expected.to_arrays()[name], values)
    assert sum(len(one.x) for one in expected.figure("plane").data) == 8


def test_heads_over_a_file(printed, tiny_bert, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("the cat sat\na dog ran\tit ran\n")
    expected = explain.profile_heads(tiny_bert, [("the cat sat", None), ("a dog ran", "it ran")])
    record = printed("heads", "--input", file)
    close(record, expected)
    assert record["num_texts"] == 2 and record["syntax"] is None


def test_heads_that_follow_syntax(printed, say, tiny_bert, tmp_path):
    file = tmp_path / "trees.conllu"
    file.write_text(f"# one\n{TREE}\n\n{TREE}\n\n")
    expected = explain.syntax_agreement(tiny_bert, explain.read_conllu(file.read_text().splitlines()))
    syntax = printed("heads", "--input", file)["syntax"]
    assert list(syntax["relations"]) == list(expected.relations) and syntax["num_sentences"] == 2
    table = expected.to_frame().set_index("relation")
    for name, one in expected.relations.items():
        np.testing.assert_allclose(syntax["relations"][name]["head_to_dependent"], one.head_to_dependent, atol=1e-6)
        best = np.maximum(one.dependent_to_head, one.head_to_dependent)
        assert table["accuracy"][name] == best.max() == best[table["layer"][name], table["head"][name]]
    profile = explain.head_profiles(tiny_bert, rows=explain.read_rows(file.read_bytes(), "conllu").rows)
    menu = [button.label for button in profile.figure().layout.updatemenus[0].buttons]
    assert menu[-3:] == ["syntax", *(f"relation {name}" for name in expected.relations)]
    assert printed("heads", "--input", file, "--rows", 1)["num_texts"] == 1
    assert [line.split()[0] for line in say("heads", "--input", file).splitlines()[-2:]] == list(expected.relations)


@pytest.mark.parametrize("head", ["_", "0"])
def test_a_file_with_tags_and_no_trees_has_the_profile_alone(printed, tiny_bert, tmp_path, head):
    file = tmp_path / "tags.conllu"
    file.write_text("".join(f"{n}\t{word}\t_\tX\t_\t_\t{head}\t_\t_\t_\n" for n, word in ((1, "the"), (2, "cat"))))
    record = printed("heads", "--input", file)
    close(record, explain.profile_heads(tiny_bert, ["the cat"]))
    assert record["syntax"] is None


@pytest.mark.parametrize("name", ["attention-divergence", "changed"])
def test_heads_that_fine_tuning_moved(printed, say, tiny_bert, tmp_path, name):
    before = make_bert(seed=4, name="before")
    checkpoints.save(tmp_path / "before", before.config, before.tokenizer, before.model)
    text = "the cats [MASK] on the mat"
    expected = explain.attention_divergence(before.trace(text), tiny_bert.trace(text))
    close(printed(name, text, "--before", tmp_path / "before"), expected)
    np.testing.assert_array_equal(expected.figure().data[0].z, expected.divergences)
    lines = say(name, text, "--before", tmp_path / "before", "--csv", tmp_path / "a.csv").splitlines()
    layer, head = expected.ranked()[0]
    assert expected.divergences[layer, head] == expected.divergences.max() and lines[2].split()[:2] == [
        str(layer),
        str(head),
    ]
    table = pandas.read_csv(io.StringIO((tmp_path / "a.csv").read_text()))
    np.testing.assert_allclose(table["divergence_bits"], np.sort(expected.divergences.ravel())[::-1], atol=1e-5)


def test_earlier_words_for_methods_are_taken():
    (methods,) = (one for one in catalogue()["saliency"].options if one.name == "method")
    assert set(methods.value_aliases.values()) <= set(methods.choices) and not (
        methods.value_aliases.keys() & set(methods.choices)
    )


def test_an_earlier_word_is_the_one_of_now(printed):
    assert printed("attention", *TEXTS, "--method", "norms")["method"] == "norm-weighted"
    assert printed("saliency", *TEXTS, "--method", "gradient")["method"] == "gradient-x-input"


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["neuron", "the cat", "--head", "1"], "LAYER.HEAD"),
        (["neuron", "the cat", "--head", "0.9"], "no head 9 in layer 0"),
        (["neuron", "the cat", "--token", "7"], "There is no token 7"),
        (["heads", "the cat", "--html", "FOLDER"], "is a folder"),
        (["heads", "the cat", "--html", "FOLDER/none/a.html"], "The folder to write it to does not exist"),
        (["methods", "the cat", "--token", "9"], "no position 9"),
        (["heads"], "either a text or --input"),
        (["heads", "the cat", "--input", "a.txt"], "either a text or --input"),
        (["heads", "--input", "FOLDER/EMPTY.conllu"], "no sentence in"),
        (["heads", "--input", "FOLDER/EMPTY"], "no text in the file"),
        (["changed", "the cat"], "use --before"),
    ],
)
def test_each_mistake_is_told_in_one_line(capsys, tiny_folder, tmp_path, arguments, sentence):
    for name in ("EMPTY", "EMPTY.conllu"):
        (tmp_path / name).write_text("")
    options = [one.replace("FOLDER", str(tmp_path)) for one in arguments]
    assert main(["explain", *options, "--model", str(tiny_folder)]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and sentence in lines[0], lines
    assert {one.name for one in tmp_path.iterdir()} == {"EMPTY", "EMPTY.conllu"}


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (("the cat", "--first", "text"), "--first says how --input FILE is read: name a file, or leave --first out."),
        (("the cat", "--rows", "3"), "--rows says how --input FILE is read"),
        (("--input", "FILE", "--mask", "cat"), "--mask hides words of a text on the command line, not of --input"),
    ],
)
def test_an_option_without_effect_is_refused(arguments, sentence, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text("the cat\n")
    arguments = [str(tmp_path / "texts.txt") if one == "FILE" else one for one in arguments]
    assert main(["explain", "heads", *arguments, "--model", "no-such-model"]) == 2
    assert sentence in capsys.readouterr().err


def test_rows_that_are_left_out_are_told_without_a_progress_bar_too(tiny_folder, tmp_path, capsys):
    (tmp_path / "texts.txt").write_text(f"the cat\n{'a' * 2001}\n" + "the dog\n" * 1000)
    command = ["explain", "heads", "--input", str(tmp_path / "texts.txt"), "--model", str(tiny_folder), "--quiet"]
    cut = "1 of the file's lines is left out. Line 2: It has 2,001 characters"
    assert main([*command, "--rows", "2"]) == 0
    err = capsys.readouterr().err
    assert cut in err and "are read" not in err.replace("of a text are read", "")
    assert main(command) == 0
    err = capsys.readouterr().err
    assert cut in err and "The first 1,000 lines are read, 1 more is not. --rows N reads more." in err
