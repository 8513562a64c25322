"""Every page with every member of the family: what it has is drawn, what it has not is said, and nothing fails."""

import json
import shutil

import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.models import build_pretraining_model
from tests.app.family_models import DEBERTA_TEXT, GOLDEN_FOLDERS, MODERN_TEXT, ONE_WAY, TEXTS
from tests.app.page_reading import component, page_text, run_until_done, run_until_message
from ui.shell.catalogue import pages

#: What stands on a page whatever the member, below its title and question.
SIGNS = {
    "predict": "the address of this page is a link to this view",
    "all_heads": "Layer 1, head 1",
    "model_view": "In each drawing the tokens run down both sides",
    "neuron": "The query says what a token looks for",
    "attention_methods": "after layer 1",
    "head_profiles": "Heads with similar attention lie together",
    "ablation": "Switch off",
    "contributions": "Layer by part",
    "patching": "The other input",
    "input_embeddings": "The table of positions",
    "word_senses": "At which layer the senses separate",
    "factors": "The most active units of factor",
    "side_by_side": "Size and speed",
    "layer_similarity": "is most similar to",
    "agreement": "The rows where they differ most come first",
    "dataset": "26 rows",
    "architecture": "Beside the other sizes",
    "directionality": "What each predicts there",
}
#: Pages that need models of their own or trainings, or show the same whatever the visitor's model.
OTHERS = {
    "task_predictions",
    "fine_tuning_changes",
    "fine_tune",
    "training_curves",
    "time_lapse",
    "replaced_token_detection",
    "architectures",
    "guide",
    "glossary",
    "guided_lessons",
    "models",
}


# All pages of a model follow each other, as few models stay loaded.
@pytest.mark.parametrize("page", [name for name in pages() if name not in OTHERS])
@pytest.mark.parametrize("name", (*TEXTS, *ONE_WAY))
def test_every_member_opens_the_page(open_app, family_home, name, page):
    text = TEXTS.get(name, "the man went to the store")
    app = run_until_done(open_app(page=page, model=name, a=text, b=text, mask="a1"))
    assert not app.exception and not app.error, page_text(app)
    assert SIGNS.get(page, pages()[page].question) in page_text(app), page_text(app)


def test_the_neuron_view_of_a_one_way_reader_has_no_scores_of_later_tokens(open_app, family_home):
    app = open_app(page="neuron", model=ONE_WAY[0], a="the man went to the store", **{"neuron.query": "2"})
    assert not app.exception and not app.error, page_text(app)
    drawn = component(app, "neuron")
    assert [score is None for score in drawn["scores"]] == [place > 2 for place in range(len(drawn["keys"]))]
    assert not any(drawn["weights"][3:]) and sum(drawn["weights"]) == pytest.approx(1, abs=1e-4)


#: What ModernBERT's pages say where its layers make an analysis impossible; otherwise as `SIGNS`.
REFUSED = {"contributions": "The residual decomposition needs BERT's encoder layer"}
MODERN_SIGNS = SIGNS | REFUSED | {"input_embeddings": "it has no table of positions; its layers rotate queries"}


@pytest.mark.parametrize("page", [name for name in pages() if name not in OTHERS])
def test_modernbert_opens_the_page(open_app, modernbert_home, page):
    app = open_app(page=page, model="modernbert", a=MODERN_TEXT, b=MODERN_TEXT, mask="a1")
    app = run_until_message(app, REFUSED[page]) if page in REFUSED else run_until_done(app)
    assert not app.exception, page_text(app)
    assert MODERN_SIGNS.get(page, pages()[page].question) in page_text(app), page_text(app)
    assert page in REFUSED or not app.error


#: What DeBERTa-v3's pages say where positions in its scores make an analysis impossible; otherwise as `SIGNS`.
SCORES_REFUSED = {"neuron": "The neuron view needs attention scores that compare the contents of two tokens alone"}
_NO_TABLE = "it has no table of positions; its attention scores also compare contents with relative positions"
DEBERTA_SIGNS = SIGNS | SCORES_REFUSED | {"input_embeddings": _NO_TABLE}
DEBERTA_PAGES = ("predict", "contributions", "input_embeddings", "architecture", "walk_through", *SCORES_REFUSED)


@pytest.mark.parametrize("page", DEBERTA_PAGES)
def test_deberta_opens_the_page(open_app, deberta_home, page):
    app = open_app(page=page, model="deberta", a=DEBERTA_TEXT, b=DEBERTA_TEXT, mask="a1")
    app = run_until_message(app, SCORES_REFUSED[page]) if page in SCORES_REFUSED else run_until_done(app)
    assert not app.exception, page_text(app)
    assert DEBERTA_SIGNS.get(page, pages()[page].question) in page_text(app), page_text(app)
    assert page in SCORES_REFUSED or not app.error


def test_the_time_lapse_of_a_discriminator_follows_its_scores(open_app, family_home, tmp_path, monkeypatch, saved):
    from ui.session import runs

    name = "electra-discriminator"
    folder = tmp_path / "runs" / "electra"
    for step in (0, 10):
        shutil.copytree(GOLDEN_FOLDERS / name, folder / "snapshots" / f"step-{step}")
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 10, "loss": 1.0}))
    monkeypatch.setattr(runs, "SHIPPED", folder.parent)
    app = open_app(page="time_lapse", model=name, a=TEXTS[name], **{"time_lapse.run": "electra"})
    assert not app.exception and not app.error, page_text(app)
    trace = bert_tf.load(GOLDEN_FOLDERS / name).trace(TEXTS[name])
    drawn = [one["shade"] for one in component(app, "marks")["a"] if "shade" in one]
    assert drawn == pytest.approx(trace.replaced[1:-1].tolist(), abs=1e-3)
    assert saved["replaced-or-original"]["json"]["model"] == "electra/step-10"


def test_the_box_of_the_pooler_names_the_member_s_own_first_token(open_app, family_home):
    app = open_app(page="architecture", model="roberta", a=TEXTS["roberta"], **{"architecture.open": "pooler"})
    assert not app.exception and not app.error, page_text(app)
    (drawn,) = (
        one
        for one in map(lambda one: json.loads(one.proto.spec)["data"][0], app.get("plotly_chart"))
        if one["type"] == "heatmap"
    )
    (row,) = drawn["y"]
    assert row.startswith("&lt;s&gt;")


def test_layers_that_share_one_set_of_weights_are_counted_once_and_worked_in_every_time(
    open_app, own_family_home, tmp_path
):
    """Sharing saves memory, not time."""
    bert = bert_tf.load(GOLDEN_FOLDERS / "albert")
    layers = bert.config.num_hidden_layers
    config = bert.config.replace(num_hidden_groups=1)
    checkpoints.save(tmp_path / "one-set", config, bert.tokenizer, build_pretraining_model(config, heads=bert.heads))
    app = open_app(page="architecture", model="one-set", a=TEXTS["albert"], **{"architecture.open": "attention"})
    assert not app.exception and not app.error, page_text(app)
    output = page_text(app)
    assert (
        f"All {layers} layers share one set of weights: parameters count once, and every layer does its work." in output
    )
    assert f"the same in all {layers} layers" in output
