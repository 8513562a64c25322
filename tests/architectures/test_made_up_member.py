"""A member whose layer differs is one record and one layer: the rest of the library takes it as it is."""

import numpy as np
import pytest

from bert_tf import explain
from bert_tf.architectures import ARCHITECTURES, BERT, Architecture
from bert_tf.config import BertConfig
from bert_tf.errors import InputError
from bert_tf.inference.bert import Bert, load
from bert_tf.layers.common import register
from bert_tf.layers.encoder import EncoderLayer
from bert_tf.models import build_pretraining_model
from bert_tf.tokenizers import Tokenizer
from tests.conftest import randomise, small_vocabulary


@register
class PreNormLayer(EncoderLayer):
    """Normalises before each block (pre-LN, Xiong et al. 2020)."""

    def steps(self, x, bias, training=False):
        x = yield "resid_pre", x
        added = yield from self.attention.steps(self.attention_norm(x), bias, training)
        x = yield "resid_mid", x + self.dropout(added, training=training)
        added = yield from self.feed_forward.steps(self.feed_forward_norm(x))
        return (yield "resid_post", x + self.dropout(added, training=training))


PRE_NORM = Architecture(
    model_type="pre-norm",
    title="Pre-norm BERT",
    source="Xiong et al. 2020",
    changes=("Each layer normalises before its blocks.",),
    heads=BERT.heads,
    trained=BERT.trained,
    sizes={"base": BERT.sizes["base"]},
    transformers_classes=BERT.transformers_classes,
    layer_class=f"{__name__}.PreNormLayer",
)


@pytest.fixture(scope="module")
def bert():
    ARCHITECTURES["pre-norm"] = PRE_NORM
    tokenizer = Tokenizer(small_vocabulary())
    config = BertConfig(
        model_type="pre-norm",
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    model = build_pretraining_model(config)
    randomise(model, 3)
    yield Bert(config, tokenizer, model, name="tiny-pre-norm")
    del ARCHITECTURES["pre-norm"]


@pytest.fixture(scope="module")
def trace(bert):
    return bert.trace("The bunny ate it.", "A dog slept.", mask=[2])


def normalised(x, norm):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + norm.epsilon)
    return x * np.asarray(norm.gamma) + np.asarray(norm.beta)


def test_the_residual_stream_is_a_sum_and_the_hooks_show_it(bert, trace):
    _, cache = bert.hooked().run_with_cache(trace.text_a, trace.text_b, mask=[2])
    for index in range(3):
        at = {name: cache[f"layer_{index}.{name}"] for name in ("resid_pre", "attn_out", "resid_mid", "mlp_out")}
        layer = bert.model.bert_layers[f"layer_{index}"]
        np.testing.assert_allclose(at["resid_mid"], at["resid_pre"] + at["attn_out"], atol=1e-5)
        np.testing.assert_allclose(cache[f"layer_{index}.resid_post"], at["resid_mid"] + at["mlp_out"], atol=1e-5)
        read = np.asarray(layer.feed_forward.intermediate(normalised(at["resid_mid"], layer.feed_forward_norm)))
        np.testing.assert_allclose(cache[f"layer_{index}.mlp_pre"], read, atol=1e-4)
    np.testing.assert_allclose(cache["layer_2.resid_post"][0], trace.hidden_states[-1], atol=1e-4)


def test_it_is_saved_and_read_again(bert, trace, tmp_path):
    from bert_tf.checkpoints import save

    save(tmp_path / "model", bert.config, bert.tokenizer, bert.model)
    again = load(tmp_path / "model")
    assert again.runtime.engine == "tensorflow"  # OpenVINO's graph computes BERT's own layer
    np.testing.assert_allclose(
        again.trace(trace.text_a, trace.text_b, mask=[2]).attentions, trace.attentions, atol=1e-5
    )


def test_interventions_and_gradients_take_it(bert, trace):
    (position,) = trace.masks
    target = explain.mask_target(bert, trace, position, "dog")
    effect = explain.ablate(bert, trace, explain.Ablation(heads=((0, 1),)))
    changed = bert.hooked().run_with_hooks(
        trace.text_a, trace.text_b, mask=[2], hooks=[("layer_0.z", lambda z: z * (np.arange(4) != 1)[:, None, None])]
    )
    (after,) = [one for one in effect.after if one.position == position]
    (expected,) = bert.fill_mask(changed)
    assert after.predictions[0].id == expected.predictions[0].id
    assert after.predictions[0].probability == pytest.approx(expected.predictions[0].probability, abs=1e-5)
    whole = explain.integrated_gradients(bert, trace, target)
    assert abs(whole.convergence_delta) < 1e-2
    assert explain.logit_lens(bert, trace).probabilities[0, -1, 0] == pytest.approx(
        bert.fill_mask(trace)[0].predictions[0].probability, abs=1e-5
    )


def test_what_follows_bert_s_layer_back_refuses_another(bert, trace):
    target = explain.mask_target(bert, trace, trace.masks[0], "dog")
    for function in (explain.deeplift, explain.layerwise_relevance, explain.contributions):
        with pytest.raises(InputError, match="PreNormLayer"):
            function(bert, trace, target)
