"""How much a page sends to the browser for 512 tokens."""

import pytest

from tests.app.conftest import LIMITS, save_tiny
from tests.app.page_reading import page_text, run_until_done, walk
from ui.shell.frame import _TEXTLESS
from ui.shell.view import PAGES

LONG = {side: "The bunny ate a carrot today . " * 45 for side in "ab"}
MASKED = {"mask": "a1,b3"}
#: Pages that need models of their own (fine-tuned ones, readers of one side, a discriminator).
_OTHERS = {"tasks", "finetuned", "oneway", "electra"}
CASES = [
    ("predict", MASKED),
    ("attention", {}),
    ("attention", {"attention.as": "map", "attention.several": "1", "attention.more": "1.1,3.4,2.2"}),
    ("modelview", {}),
    ("modelview", {"modelview.as": "maps"}),
    ("modelview", {"modelview.zoom": "1"}),
    ("neuron", {}),
    ("methods", {}),
    ("heads", {}),
    ("lens", MASKED),
    ("lens", {**MASKED, "lens.rows": "all"}),
    ("ablation", {**MASKED, "ablation.off": "1-2.3", "ablation.kind": "tokens"}),
    ("ablation", {**MASKED, "ablation.off": "1-2.3", "ablation.colour": "effect"}),
    ("contributions", MASKED),
    ("saliency", MASKED),
    ("patching", MASKED),
    ("whatif", MASKED),
    ("whatif", {**MASKED, "whatif.kind": "word", "whatif.word": "a4", "whatif.with": "town"}),
    ("whatif", {**MASKED, "whatif.kind": "swap"}),
    ("whatif", {"whatif.kind": "pairs"}),
    ("inputsum", {}),
    ("neighbours", {}),
    ("factors", {"factors.count": "12"}),
    *(
        ("compare", {"with": "tiny-tall", **MASKED, **look})
        for look in (
            {"compare.drawn": "heatmap"},
            {"compare.drawn": "lines"},
            {"compare.drawn": "difference"},
            {"compare.look": "layers"},
        )
    ),
    ("cka", {"with": "tiny-tall", "cka.source": "view"}),
    ("architecture", {"architecture.open": "embeddings"}),
    ("architecture", {"architecture.open": "attention", "architecture.values": "attentions"}),
    ("architecture", {"architecture.open": "attention", "architecture.values": "queries"}),
    ("architecture", {**MASKED, "architecture.open": "mlm"}),
    ("timelapse", MASKED),
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
    from ui.session import model_store, state

    monkeypatch.setenv("BERT_TF_HOME", str(tall_home))
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tall_home / "explorer.toml"))
    state.limits.clear()
    model_store.catalogue.clear()


def size(app):
    return sum(one.proto.ByteSize() for one in walk(app._tree.root) if getattr(one, "proto", None))


def test_every_page_that_reads_the_texts_is_measured():
    assert {page for page, _ in CASES} - {"cka"} == set(PAGES) - set(_TEXTLESS) - _OTHERS


@pytest.mark.parametrize(
    "page, link", CASES, ids=lambda one: one if isinstance(one, str) else "-".join(one.values())[:40]
)
def test_512_tokens_stay_under_a_megabyte(open_app, page, link):
    from ui.session.model_store import shared_model

    app = run_until_done(open_app(page=page, **LONG, **link))
    assert shared_model("tiny-tall").encode(*LONG.values()).length == 512
    shown = size(app)
    assert 20_000 < shown < 1_000_000, page_text(app)
