"""How much a page sends to the browser for 512 tokens."""

import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.models import build_pretraining_model
from tests.app.conftest import LIMITS, save_family, save_tiny, use_models_in
from tests.app.family_models import MODERN_FOLDER
from tests.app.page_reading import page_text, run_until_done, walk
from ui.shell.catalogue import pages

LONG = {side: "The bunny ate a carrot today . " * 45 for side in "ab"}
MASKED = {"mask": "a1,b3"}
#: Pages that need models of their own (fine-tuned ones, readers of one side, a discriminator).
_OTHERS = {"task_predictions", "fine_tuning_changes", "directionality", "replaced_token_detection"}
_CASES = [
    ("predict", MASKED),
    ("all_heads", {}),
    ("all_heads", {"all_heads.as": "map", "all_heads.several": "1", "all_heads.more": "1.1,3.4,2.2"}),
    ("model_view", {}),
    ("model_view", {"model_view.as": "maps"}),
    ("model_view", {"model_view.zoom": "1"}),
    ("logit_lens", MASKED),
    ("logit_lens", {**MASKED, "logit_lens.rows": "all"}),
    ("ablation", {**MASKED, "ablation.off": "1-2.3", "ablation.kind": "tokens"}),
    ("ablation", {**MASKED, "ablation.off": "1-2.3", "ablation.colour": "effect"}),
    ("contributions", MASKED),
    ("saliency", {**MASKED, "saliency.method": "gradient"}),
    ("patching", MASKED),
    ("counterfactuals", MASKED),
    (
        "counterfactuals",
        {**MASKED, "counterfactuals.kind": "word", "counterfactuals.word": "a4", "counterfactuals.with": "town"},
    ),
    ("counterfactuals", {**MASKED, "counterfactuals.kind": "swap"}),
    ("counterfactuals", {"counterfactuals.kind": "pairs"}),
    ("factors", {"factors.count": "12"}),
    *(
        ("side_by_side", {"with": "tiny-tall", **MASKED, **look})
        for look in (
            {"side_by_side.drawn": "heatmap"},
            {"side_by_side.drawn": "lines"},
            {"side_by_side.drawn": "difference"},
            {"side_by_side.look": "layers"},
        )
    ),
    ("layer_similarity", {"with": "tiny-tall", "layer_similarity.source": "view"}),
    ("architecture", {"architecture.open": "embeddings"}),
    ("architecture", {"architecture.open": "attention", "architecture.values": "attentions"}),
    ("architecture", {"architecture.open": "attention", "architecture.values": "queries"}),
    ("architecture", {**MASKED, "architecture.open": "mlm"}),
    ("time_lapse", MASKED),
]


CASES = [
    *_CASES,
    # Every other page that reads the texts, as it opens.
    *(
        (name, {})
        for name, page in pages().items()
        if page.reads_texts and name not in _OTHERS | {name for name, _ in _CASES}
    ),
]


@pytest.fixture(scope="module")
def tall_home(tmp_path_factory):
    """A models folder with a random model of as many layers as Base: what every layer sends is there."""
    home = tmp_path_factory.mktemp("tall")
    save_tiny(home, "tiny-tall", "bert-base-cased-embedded", num_hidden_layers=12, num_attention_heads=8)
    (home / "explorer.toml").write_text(LIMITS.replace('"tiny-cased"', '"tiny-tall"'))
    return home


@pytest.fixture(autouse=True)
def own_home(environment, tall_home, monkeypatch):
    use_models_in(tall_home, monkeypatch)


def size(app):
    return sum(one.proto.ByteSize() for one in walk(app._tree.root) if getattr(one, "proto", None))


@pytest.mark.parametrize(
    "page, link", CASES, ids=lambda one: one if isinstance(one, str) else "-".join(one.values())[:40]
)
def test_512_tokens_stay_under_a_megabyte(open_app, page, link):
    from ui.session.model_store import shared_model

    app = run_until_done(open_app(page=page, **LONG, **link))
    assert shared_model("tiny-tall").encode(*LONG.values()).length == 512
    sent_bytes = size(app)
    assert 20_000 < sent_bytes < 1_000_000, page_text(app)


@pytest.fixture(scope="module")
def long_folder(tmp_path_factory):
    """A models folder with a ModernBERT that reads 2,048 tokens."""
    bert = bert_tf.load(MODERN_FOLDER)
    config = bert.config.replace(num_hidden_layers=7, max_position_embeddings=2048)
    home = save_family(tmp_path_factory.mktemp("long"))
    checkpoints.save(home / "modern-tall", config, bert.tokenizer, build_pretraining_model(config))
    return home


#: Pages with figures over all tokens or all layers. The others send less than these, as measured.
LONG_PAGES = (
    "predict",
    "all_heads",
    "model_view",
    "logit_lens",
    "neuron",
    "attention_methods",
    "head_profiles",
    "ablation",
    "patching",
    "counterfactuals",
    "input_embeddings",
    "nearest_words",
    "factors",
)


@pytest.mark.parametrize("page", LONG_PAGES)
def test_2048_tokens_stay_under_two_megabytes(open_app, long_folder, monkeypatch, page):
    from ui.session.model_store import shared_model

    use_models_in(long_folder, monkeypatch)
    text = "the license of the work " * 400
    app = run_until_done(open_app(page=page, model="modern-tall", a=text, mask="a1"))
    assert not app.exception and not app.error, page_text(app)
    assert shared_model("modern-tall").encode(text, "").length == 2048
    assert 20_000 < size(app) < 2_000_000, page_text(app)
