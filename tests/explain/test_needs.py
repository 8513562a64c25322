"""`Analysis.needs`: a model without the heads is refused with one sentence, on the command line and in the service."""

import pytest

from bert_tf import checkpoints
from bert_tf.analyses import analysis, catalogue, check_model
from bert_tf.cli import main
from bert_tf.errors import InputError, MissingHead
from bert_tf.model_outputs import ALL_HEADS
from bert_tf.serving.analysis_request import answer
from bert_tf.serving.limits import ServiceLimits
from bert_tf.serving.model_store import ModelStore

NEEDY = [record.name for record in catalogue().values() if record.needs]


def sentence(name, bert):
    with pytest.raises(MissingHead) as caught:
        check_model(analysis(name), bert)
    return str(caught.value)


def test_every_need_is_a_head():
    needs = [need.split("|") for name in NEEDY for need in analysis(name).needs]
    assert {head for heads in needs for head in heads} <= {*ALL_HEADS, "classes"}


@pytest.mark.parametrize("name", [record.name for record in catalogue().values() if record.attentions])
def test_the_analyses_that_read_attention_maps_need_them(name, tiny_bert):
    """That the others do without them is seen where the command line runs each of them."""
    trace = tiny_bert.trace("the cat [MASK]", attentions=False)
    values = {"pair": (trace,), "pair or file": (trace, None), "pair with file": (trace, None)}[analysis(name).inputs]
    options = {"compare": {"other": tiny_bert}, "attention-divergence": {"before": tiny_bert}}.get(name, {})
    with pytest.raises(InputError, match="holds no attention maps"):
        analysis(name).function(tiny_bert, *values, **options)


@pytest.mark.parametrize("name", NEEDY)
def test_a_model_with_one_of_the_heads_is_enough(name, headless_bert, monkeypatch):
    heads = {need.split("|")[-1] for need in analysis(name).needs}
    monkeypatch.setattr("bert_tf.analyses.heads_of", lambda bert: frozenset(heads))
    check_model(analysis(name), headless_bert)
    monkeypatch.setattr("bert_tf.analyses.heads_of", lambda bert: frozenset({"pooler"}))
    assert sentence(name, headless_bert).startswith("tiny-headless has no ")


def test_every_alternative_is_named(headless_bert):
    assert sentence("logit-lens", headless_bert) == (
        "tiny-headless has no masked language model head and no head of a text classifier in its checkpoint, so it "
        "cannot predict masked words or classify texts; choose a model that has one."
    )


def test_the_command_line_says_it(headless_bert, headless_folder, capsys):
    assert main(["explain", "logit-lens", "the [MASK] sat", "--model", str(headless_folder)]) == 2
    assert capsys.readouterr().err.strip().removeprefix("python -m bert_tf: ") == sentence("logit-lens", headless_bert)


def test_the_service_says_it(headless_bert, tmp_path, monkeypatch):
    checkpoints.save(tmp_path / "tiny-headless", headless_bert.config, headless_bert.tokenizer, headless_bert.model)
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    limits = ServiceLimits()
    with pytest.raises(MissingHead) as caught:
        answer("logit-lens", {"text_a": "the [MASK] sat"}, ModelStore("tiny-headless", limits), limits)
    assert str(caught.value) == sentence("logit-lens", headless_bert)
