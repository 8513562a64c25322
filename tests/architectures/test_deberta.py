"""DeBERTa-v3: relative positions, both layouts of the MLM head, folders, refusals.

Parity of all outputs with Transformers is in `test_architectures.py`, that of the heads of tasks in
`tests/finetuning/test_round_trips_family.py`.
"""

import json
import shutil

import numpy as np
import pytest

from bert_tf import checkpoints, explain
from bert_tf.config import BertConfig, ConfigError
from bert_tf.errors import InputError
from bert_tf.inference.bert import load
from bert_tf.layers.deberta.positions import bucket_rows
from bert_tf.models import build_pretraining_model, named_variables, view
from bert_tf.parameters import POSITIONS_TABLE
from bert_tf.runtime import Runtime
from tests.architectures.test_architectures import GOLDEN

FOLDER = GOLDEN / "deberta"


@pytest.fixture(scope="module")
def bert():
    return load(FOLDER)


def test_near_distances_have_a_row_each_and_far_ones_share():
    rows = bucket_rows(256, 512, 512)  # as released; the distances 511 to -511
    at = dict(zip(range(511, -512, -1), rows.tolist(), strict=True))
    assert [at[distance] for distance in (0, 1, -1, 128, -128)] == [256, 257, 255, 384, 128]
    assert (at[511], at[-511]) == (511, 1)
    assert len(set(rows.tolist())) == 511 and at[300] == at[301]
    assert (np.diff(rows) <= 0).all()


def test_buckets_equal_transformers():
    import torch
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    for buckets, most, tokens in ((256, 512, 512), (256, 512, 2048), (8, 32, 64)):
        wanted = make_log_bucket_position(torch.arange(tokens - 1, -tokens, -1), buckets, most).long() + buckets
        assert bucket_rows(buckets, most, tokens).tolist() == wanted.clamp(0, 2 * buckets - 1).tolist()


def test_the_openvino_graph_for_large_batches_equals_the_keras_model(bert):
    ids = np.random.default_rng(1).integers(5, bert.config.vocab_size, (12, 29)).astype(np.int32)
    mask = np.ones_like(ids)
    mask[1, 20:] = 0
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": mask}
    wanted = view(bert.model, ("sequence_output",))(batch)["sequence_output"]
    states = Runtime(bert.model, engine="openvino").run(batch, ("sequence_output",))["sequence_output"]
    real = mask.astype(bool)
    np.testing.assert_allclose(states[real], np.asarray(wanted)[real], atol=1e-5, rtol=0)


def test_layers_share_one_table_of_positions_and_training_reaches_it(bert):
    import tensorflow as tf

    model = build_pretraining_model(bert.config)
    layers = [model.bert_layers[f"layer_{index}"] for index in range(bert.config.num_hidden_layers)]
    assert len({id(layer.relative) for layer in layers}) == 1
    table = named_variables(model)[POSITIONS_TABLE]
    assert sum(variable is table for variable in model.trainable_variables) == 1
    ids = tf.ones((2, 9), tf.int32)
    with tf.GradientTape() as tape:
        outputs = model({"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}, training=True)
        loss = tf.reduce_sum(outputs["replaced_logits"] ** 2)
    assert np.abs(np.asarray(tf.convert_to_tensor(tape.gradient(loss, table.value)))).max() > 0


def test_the_legacy_mlm_head_is_read_and_transformers_reads_what_is_saved(bert, tmp_path):
    import torch
    import transformers

    config = transformers.DebertaV2Config.from_pretrained(FOLDER)
    config.legacy = True
    torch.manual_seed(3)
    model = transformers.DebertaV2ForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path / "legacy")
    for name in ("spm.model", "tokenizer_config.json"):
        shutil.copy(FOLDER / name, tmp_path / "legacy")
    ours = load(tmp_path / "legacy")
    assert ours.heads == {"mlm"}
    trace = ours.trace("the license of [MASK]", "the work")
    ids = torch.tensor(trace.token_ids[None].astype(np.int64))
    with torch.no_grad():
        wanted = model(ids).logits[0, list(trace.masks)].numpy()
    np.testing.assert_allclose(trace.logits, wanted, atol=2e-5)
    checkpoints.save(tmp_path / "saved", ours.config, ours.tokenizer, ours.model)
    again, output = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert not any(output[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with torch.no_grad():
        np.testing.assert_allclose(again.eval()(ids).logits[0, list(trace.masks)].numpy(), wanted, atol=2e-5)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    for text in ("ﬁne ½ the license", "one [MASK] two", "don't"):
        assert tokenizer(text, add_special_tokens=False).input_ids == ours.tokenizer.tokenize(text).ids.tolist()


def test_both_heads_are_saved_and_read_again(bert, tmp_path):
    checkpoints.save(tmp_path, bert.config, bert.tokenizer, bert.model)
    again = load(tmp_path)
    assert again.config == bert.config and again.heads == {"mlm", "replaced"}
    first, second = (one.trace("the [MASK] of the work") for one in (bert, again))
    np.testing.assert_array_equal(first.logits, second.logits)
    np.testing.assert_array_equal(first.replaced, second.replaced)
    assert json.loads((tmp_path / "config.json").read_text())["legacy"] is False


def test_steps_of_the_layers_equal_the_engine_and_scores_hold_the_positions(bert):
    trace, cache = bert.hooked().run_with_cache("the [MASK] of the work")
    for index in range(bert.config.num_hidden_layers):
        q, k = cache[f"layer_{index}.q"], cache[f"layer_{index}.k"]
        contents = q @ k.swapaxes(2, 3) / np.sqrt(3 * bert.config.head_size)
        rest = cache[f"layer_{index}.scores"] - contents
        assert np.abs(rest).max() > 1e-3
    states = bert.hooked().states(trace.token_ids[None], trace.segments[None])
    for index, state in enumerate(states):
        np.testing.assert_allclose(state[0], trace.hidden_states[index], atol=1e-4)


def test_analyses_of_scores_refuse_with_one_sentence(bert):
    trace = bert.trace("the [MASK] of the work")
    target = explain.mask_target(bert, trace, trace.masks[0], " the")
    for run in (
        lambda: explain.deeplift(bert, trace, target),
        lambda: explain.neuron_view(bert, trace),
    ):
        with pytest.raises(InputError, match="attention scores that compare the contents of two tokens alone"):
            run()
    assert len(explain.contributions(bert, trace, target).to_frame())


RELEASED = {  # microsoft/deberta-v3-base
    "model_type": "deberta-v2",
    "attention_probs_dropout_prob": 0.1,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": 3072,
    "max_position_embeddings": 512,
    "relative_attention": True,
    "position_buckets": 256,
    "norm_rel_ebd": "layer_norm",
    "share_att_key": True,
    "pos_att_type": "p2c|c2p",
    "layer_norm_eps": 1e-7,
    "max_relative_positions": -1,
    "position_biased_input": False,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "type_vocab_size": 0,
    "vocab_size": 128100,
}


def test_the_released_settings_are_read():
    assert BertConfig.from_dict(RELEASED) == BertConfig.named("base", "deberta-v2")


@pytest.mark.parametrize(
    "change",
    [
        {"conv_kernel_size": 3},
        {"position_biased_input": True},
        {"share_att_key": False},
        {"pos_att_type": ["c2p"]},
        {"norm_rel_ebd": "none"},
        {"norm_rel_ebd": 5},
        {"pos_att_type": True},
        {"relative_attention": False},
        {"pooler_hidden_act": "tanh"},
    ],
)
def test_another_network_of_the_family_is_refused_by_name(change):
    (name,) = change
    with pytest.raises(ConfigError, match=name):
        BertConfig.from_dict({**RELEASED, **change})
