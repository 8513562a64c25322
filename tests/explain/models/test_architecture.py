"""The parts of a model and the values that pass through them."""

import numpy as np
import pytest

from bert_tf.config import BertConfig
from bert_tf.explain.models.architecture import (
    all_sizes,
    choice_scores,
    layer_activations,
    parts,
    parts_of,
    task_head_activations,
)
from bert_tf.models import build_encoder, build_pretraining_model


@pytest.fixture(scope="module")
def bert():
    from bert_tf.inference.bert import Bert
    from bert_tf.tokenizers import Tokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "here"]
    config = BertConfig(
        vocab_size=len(words), hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20
    )
    return Bert(config, Tokenizer(words, lower_case=True), build_pretraining_model(config))


def test_the_parts_hold_every_weight_of_the_model(bert):
    assert sum(part.parameters for part in parts(bert.model, 7)) == bert.model.count_params()


def test_an_encoder_has_no_heads_and_no_weights_beside_its_parts():
    model = build_encoder(BertConfig.tiny(), outputs=("sequence_output",))
    actual = parts(model, 7)
    assert [part.name for part in actual] == [
        "embeddings",
        "attention",
        "attention_norm",
        "feed_forward",
        "feed_forward_norm",
    ]
    assert sum(part.parameters for part in actual) == model.count_params()


def test_the_work_of_base_is_counted_by_its_matrix_products():
    config = BertConfig(vocab_size=9, num_hidden_layers=3)
    actual = {part.name: part for part in parts(build_pretraining_model(config), 100, masks=2)}
    assert actual["attention"].flops == 3 * (4 * 2 * 100 * 768 * 768 + 2 * 2 * 100 * 100 * 768)
    assert actual["feed_forward"].flops == 3 * 2 * 2 * 100 * 768 * 3072
    assert actual["mlm"].flops == 2 * 2 * 768 * (768 + 9)
    assert actual["mlm"].shape == (("P", 2), ("V", 9))


def test_the_work_of_scores_by_relative_positions_is_counted_and_their_table_is_not():
    config = BertConfig.named("base", "deberta-v2", num_hidden_layers=3)
    actual = {part.name: part for part in parts_of(config, ("replaced",), 10)}
    dense, contents, positions = 4 * 2 * 10 * 768 * 768, 2 * 2 * 10 * 10 * 768, 2 * 2 * 10 * 19 * 768
    assert actual["attention"].flops == 3 * (dense + contents + positions) == 144_230_400
    assert actual["feed_forward"].flops == 3 * 2 * 2 * 10 * 768 * 3072


def test_what_passes_a_layer_ends_as_the_next_hidden_state(bert):
    trace = bert.trace("the cat sat", "here", attentions=True)
    for layer in range(2):
        values = layer_activations(bert, trace, layer)
        np.testing.assert_allclose(values["input"], trace.hidden_states[layer], atol=1e-6)
        np.testing.assert_allclose(values["feed_forward_norm"], trace.hidden_states[layer + 1], atol=1e-5)
        np.testing.assert_allclose(values["attentions"], trace.attentions[layer], atol=1e-5)
        tokens = trace.length
        assert values["queries"].shape == (3, tokens, 4) and values["feed_forward_wide"].shape == (tokens, 20)


def test_a_layer_that_is_not_there_and_a_bare_trace_are_refused(bert):
    trace = bert.trace("the cat")
    with pytest.raises(ValueError, match="There is no layer 2; the model has layers 0 to 1"):
        layer_activations(bert, trace, 2)
    with pytest.raises(ValueError, match="hidden_states=True"):
        layer_activations(bert, bert.trace("the cat", hidden_states=False), 0)


def test_what_follows_attention_is_normalised_in_a_pre_norm_model_as_on_a_walk():
    import bert_tf
    from bert_tf.explain.models.architecture import architecture
    from bert_tf.explain.models.walk_through import walk_through
    from tests.app.family_models import MODERN_FOLDER, MODERN_TEXT

    bert = bert_tf.load(MODERN_FOLDER)
    trace = bert.trace(MODERN_TEXT, hidden_states=True)
    walk = walk_through(bert, trace, 1)
    values = layer_activations(bert, trace, 1)
    np.testing.assert_array_equal(values["attention_norm"], walk.attention_norm)
    assert not np.allclose(values["attention_norm"], values["input"] + values["attention"], atol=0.1)
    np.testing.assert_array_equal(architecture(bert, trace, "attention_norm", 1).values, walk.attention_norm)


def test_a_part_of_a_pre_norm_layer_counts_the_normalisation_that_it_computes():
    config = BertConfig.named("base", "modernbert", hidden_size=24, num_hidden_layers=3, num_attention_heads=2)
    boxes = {part.name: part for part in parts_of(config, (), 8)}
    matrices = 3 * 4 * 24 * 24
    assert boxes["attention"].parameters == matrices + 2 * 24  # the first layer reads the normalised embeddings
    assert (boxes["attention_norm"].title, boxes["attention_norm"].parameters) == ("Add & norm", 3 * 24)
    assert (boxes["feed_forward_norm"].title, boxes["feed_forward_norm"].parameters) == ("Add", 24)  # after the last


@pytest.mark.parametrize("member", ["albert", "electra", "distilbert", "roberta"])
def test_the_parts_of_every_member_hold_all_its_weights_once(member):
    config = BertConfig.named(
        "base",
        member,
        vocab_size=40,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=20,
        num_hidden_layers=2,
        **({"embedding_size": 8} if member in ("albert", "electra") else {}),
    )
    model = build_pretraining_model(config)
    actual = parts(model, 5)
    assert sum(part.parameters for part in actual) == model.count_params()
    assert {part.name for part in actual} >= set(config.architecture.trained)


def test_shared_weights_are_counted_by_their_sets():
    config = BertConfig.named(
        "base",
        "albert",
        vocab_size=40,
        hidden_size=16,
        num_attention_heads=2,
        intermediate_size=20,
        num_hidden_layers=4,
        num_hidden_groups=2,
        embedding_size=8,
    )
    attention = {part.name: part for part in parts(build_pretraining_model(config), 5)}["attention"]
    assert (attention.repeats, attention.sets) == (4, 2)
    assert attention.parameters == 2 * 4 * (16 * 16 + 16)


def test_every_size_has_the_heads_of_its_own_pre_training():
    sizes = {one.name: one for one in all_sizes(BertConfig.named("small", "electra"), 9, masks=2)}
    counts = {name: one.parameters["total"] for name, one in sizes.items()}
    assert [counts[f"{size}-generator"] for size in ("small", "base", "large")] == [13_546_682, 33_740_602, 51_295_290]
    assert counts["base"] == 109_483_009
    assert set(sizes["base-generator"].flops) == {"embeddings", "attention", "feed_forward", "mlm"}
    assert sizes["base"].flops["replaced"] == 2 * 9 * 768 * 769


@pytest.mark.parametrize(
    "member, sizes",
    [
        ("bert", {}),
        ("albert", {"embedding_size": 8, "num_hidden_groups": 2}),
        ("electra", {"embedding_size": 8}),
        ("distilbert", {}),
        ("roberta", {}),
        ("two-one-way", {}),
    ],
)
def test_the_parts_of_a_size_are_those_of_a_real_model_of_it(member, sizes):
    for layers, hidden in ((2, 16), (4, 24)):
        config = BertConfig.named(
            "base",
            member,
            vocab_size=40,
            hidden_size=hidden,
            num_attention_heads=2,
            intermediate_size=20,
            num_hidden_layers=layers,
            **sizes,
        )
        model = build_pretraining_model(config)
        actual = parts_of(config, model.bert_heads, 5, masks=2)
        assert actual == parts(model, 5, masks=2)
        assert sum(part.parameters for part in actual) == model.count_params()


def test_every_size_is_made_of_its_parts():
    for size in all_sizes(BertConfig.named("base", "electra"), 9, masks=2):
        assert sum(part.parameters for part in size.parts) == size.parameters["total"]
        assert {part.name: part.flops for part in size.parts if part.flops} == {
            name: spent for name, spent in size.flops.items() if spent
        }


TASKS = {
    "classify": {"labels": ("bad", "good"), "pooling": "attention"},
    "tag": {"labels": ("O", "B-place", "I-place")},
    "answer": {"pair": True, "max_length": 64},
    "choose": {"pair": True},
}


@pytest.mark.parametrize("task", TASKS)
def test_the_task_head_is_a_part_and_its_values_are_those_of_the_whole_network(task):
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type
    from bert_tf.inference.bert import Bert
    from tests.conftest import make_bert, randomise

    plain, settings = make_bert(seed=3), TaskSettings(task, **TASKS[task])
    network = network_over(plain.model, task_type(task), settings)
    randomise(network, 1)
    task_model = TaskModel(settings, network, plain.tokenizer, plain.runtime)
    bert = Bert(plain.config, plain.tokenizer, plain.model, plain.runtime, "tuned", task=task_model)
    trace = bert.trace("the cat sat on the mat", "a dog ran")
    head = parts(bert.model, trace.length, task=bert.task)[-1]
    assert head.name == "task" and head.parameters == network.head.count_params()
    actual = task_head_activations(bert, trace)
    wide = 32
    outputs = {"classify": 2, "tag": 3, "answer": 2, "choose": 1}[task]
    assert (
        dict(head.shape)
        == {
            "classify": {"classes": 2},
            "tag": {"T": trace.length, "labels": 3},
            "answer": {"T": trace.length, "ends": 2},
            "choose": {"scores": 1},
        }[task]
    )
    pooling = 4 * trace.length * wide if task == "classify" else 0
    assert head.flops == 2 * wide * outputs * (trace.length if "T" in dict(head.shape) else 1) + pooling
    batch = {
        "token_ids": trace.token_ids,
        "segment_ids": trace.segments,
        "padding_mask": np.ones(trace.length, np.int32),
    }
    axes = (None, None) if task == "choose" else (None,)
    wanted = network({name: value[axes] for name, value in batch.items()}, training=False)
    for name, value in actual.items():
        np.testing.assert_allclose(value, np.asarray(wanted[name]).reshape(value.shape), atol=1e-5)
    if task == "choose":
        scores = choice_scores(bert, "the cat sat on the mat", ["a dog ran", "money"])
        np.testing.assert_allclose(scores[0], actual["logits"], atol=1e-5)
        assert scores.shape == (2,)


def test_a_model_without_a_task_has_no_task_values(bert):
    with pytest.raises(ValueError, match="not fine-tuned"):
        task_head_activations(bert, bert.trace("the cat"))


@pytest.fixture(scope="module")
def rows():
    from bert_tf.explain.models.architecture_table import architecture_rows

    return {row.name: row for row in architecture_rows()}


def test_the_family_table_has_every_size_and_shared_layers_save_no_work(rows):
    from bert_tf.architectures import ARCHITECTURES

    assert len(rows) == sum(len(member.sizes) for member in ARCHITECTURES.values())
    albert, bert = rows["ALBERT base"], rows["BERT base"]
    assert albert.parameters["total"] < bert.parameters["total"] / 8
    assert albert.flops == pytest.approx(bert.flops, rel=0.01)
    assert all(sum(row.parts.values()) == row.parameters["total"] for row in rows.values())


def test_generators_are_counted_with_the_head_that_fills_masks(rows):
    # ELECTRA's released generators, whose output table is the token table.
    totals = [rows[f"ELECTRA {size}-generator"].parameters["total"] for size in ("small", "base", "large")]
    assert totals == [13_546_682, 33_740_602, 51_295_290]
    assert rows["ELECTRA small"].parameters["total"] == 13_549_057


@pytest.mark.parametrize(
    "name",
    [
        "ELECTRA small",
        "ELECTRA base-generator",
        "ALBERT base",
        "DistilBERT base",
        "RoBERTa base",
        "Two one-way readers base",
    ],
)
def test_a_row_counts_what_keras_counts(rows, name):
    from bert_tf.parameters import parameter_counts

    row = rows[name]
    stacks = row.config.stacks
    small = {
        "vocab_size": 40,
        "hidden_size": 8 * stacks,
        "num_attention_heads": 2 * stacks,
        "intermediate_size": 12 * stacks,
        "num_hidden_layers": 2,
        "max_position_embeddings": 9,
    }
    if row.config.embedding_size:
        small["embedding_size"] = 24
    config = row.config.replace(**small)
    model = build_pretraining_model(config, heads=row.heads)
    assert parameter_counts(config, row.heads)["total"] == model.count_params()


def test_what_a_size_changed_from_bert_follows_from_its_settings(rows):
    from bert_tf.explain.models.architecture_table import changed, objectives

    assert all(bool(changed(row)) == (row.architecture.model_type != "bert") for row in rows.values())
    assert {"no next sentence", "byte-level pieces", "positions from 2"} <= set(changed(rows["RoBERTa large"]))
    assert {"6 layers instead of 12", "no segments", "no pooler"} <= set(changed(rows["DistilBERT base"]))
    assert {"all layers share their weights", "embeddings projected from 128"} <= set(changed(rows["ALBERT xxlarge"]))
    assert "embeddings projected from 128" in changed(rows["ELECTRA small"])
    assert not any("projected" in words for words in changed(rows["ELECTRA base"]))
    modern, relative = set(changed(rows["ModernBERT base"])), set(changed(rows["DeBERTa-v3 base"]))
    layers = {"normalisation before each block", "gated feed-forward blocks", "no biases in the encoder"}
    assert {"rotary positions", "local attention in 14 of 22 layers", "up to 8,192 tokens", *layers} <= modern
    assert "relative positions in the scores" in relative and not relative & {"rotary positions", *layers}
    named = set().union(*(changed(row) for row in rows.values() if row.architecture.has_position_table))
    assert not named & {"rotary positions", "relative positions in the scores", *layers}
    assert objectives(rows["BERT base"]) == ("hidden words", "next sentence")
    assert objectives(rows["ELECTRA base"]) == ("replaced words",)
    assert objectives(rows["ELECTRA base-generator"]) == ("hidden words",)
    assert objectives(rows["DistilBERT base"]) == ("hidden words", "its teacher")


def test_a_new_member_has_its_row(monkeypatch):
    import dataclasses

    from bert_tf.architectures import ARCHITECTURES, BERT
    from bert_tf.explain.models.architecture_table import architecture_rows, changed, objectives

    new = dataclasses.replace(
        BERT,
        model_type="new",
        title="New",
        sizes={size: BERT.sizes[size] for size in ("base", "tiny")},
        defaults={"vocab_size": 77},
        heads=("mlm", "nsp"),
        trained=("mlm",),
        trained_otherwise={"tiny": ("nsp",)},
        learns_besides=("a friend",),
    )
    monkeypatch.setitem(ARCHITECTURES, "new", new)
    row, small = [row for row in architecture_rows() if row.architecture is new]
    assert row.config.vocab_size == 77 and changed(row) == ("no pooler",)
    assert objectives(row) == ("hidden words", "a friend") and objectives(small) == ("next sentence", "a friend")


def test_the_speed_of_encoders_is_measured_whole_or_by_layers(monkeypatch):
    import dataclasses

    from bert_tf.architectures import ARCHITECTURES
    from bert_tf.explain.models import architecture_table

    row = architecture_table.ArchitectureRow(
        ARCHITECTURES["bert"], "tiny", BertConfig.named("tiny"), (), {"encoder": 9}, 0, 8
    )
    (seconds,) = architecture_table.measure_speed([row], passes=2)
    assert seconds > 0
    # A layer takes 2 s, the rest 1 s.
    monkeypatch.setattr(architecture_table, "_seconds", lambda config, *_: 1.0 + 2 * config.num_hidden_layers)
    large = dataclasses.replace(row, config=BertConfig.named("large"), flops=10**11)
    messages = []
    heavy = dataclasses.replace(large, parameters={"encoder": 24 * 10**9})
    actual = architecture_table.measure_speed([row, large, heavy], progress=lambda *at: messages.append(at))
    assert actual == [5.0, 49.0, None]
    assert messages == [(1, 3), (2, 3), (3, 3)] and not large.timed_whole and not heavy.timed
    assert [row.name for row in architecture_table.architecture_rows() if not row.timed] == ["ALBERT xxlarge"]


def test_the_speed_of_every_size_of_every_architecture_is_measured(monkeypatch):
    from bert_tf.explain.models import architecture_table

    rows = architecture_table.architecture_rows()
    monkeypatch.setattr(architecture_table, "_seconds", lambda *_: 1.0)
    assert architecture_table.measure_speed(rows) == [1.0 if row.timed else None for row in rows]
