"""Two texts, two models with two texts, layers side by side, layer likeness, agreement over a file."""

import dataclasses
import json
import re
import threading
import types

import numpy as np
import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.errors import Cancelled
from bert_tf.explain import agreement, compare, layer_similarity, logit_lens, read_rows
from tests.app.conftest import LIMITS, save_tiny
from tests.app.page_reading import (
    PATIENCE,
    component,
    components,
    page_text,
    param,
    run_until_done,
)
from tests.conftest import make_bert
from ui.session import model_store, runs, state
from ui.shell.limits import ROOT
from ui.shell.view import View
from ui.widgets.comparison import default_models

PAIR = {"a": "The bunny ate the carrot.", "b": "It was good."}


@pytest.fixture(scope="module")
def cased(explorer_home):
    return bert_tf.load(explorer_home / "tiny-cased")


@pytest.fixture(scope="module")
def uncased(explorer_home):
    return bert_tf.load(explorer_home / "tiny-uncased")


def figures(app):
    return [json.loads(one.proto.spec) for one in app.get("plotly_chart")]


def test_each_text_may_have_as_many_characters_as_on_other_pages(open_app):
    app = open_app(page="side_by_side", **{"with": "tiny-uncased"})
    for name in "ab":
        app.text_area(key=f"w_text_{name}").set_value("word " * 600).run()  # at most 5,000
    assert component(run_until_done(app), "gauge") is not None
    app.button_group(key="w_side_by_side_what").set_value("texts").run()
    for name in "ab":
        app.text_area(key=f"w_second_{name}").set_value("word " * 600).run()
    assert component(run_until_done(app), "gauge") is not None
    app.text_area(key="w_second_b").set_value("word " * 1200).run()
    assert "Second text B has 6,000 characters; this explorer takes at most 5,000" in page_text(app)


def test_one_model_reads_two_texts(open_app, cased):
    second = {
        "side_by_side.what": "texts",
        "side_by_side.a": "The dog ate a bone.",
        "side_by_side.b": "",
        "side_by_side.mask": "a4",
    }
    app = run_until_done(open_app(page="side_by_side", **PAIR, mask="a4", **second))
    assert app.button_group(key="w_side_by_side_what").value == "texts"
    cards = [one["cards"] for one in components(app, "bars")]
    traces = [
        cased.trace(PAIR["a"], PAIR["b"], mask=["carrot"]),
        cased.trace("The dog ate a bone.", mask=["bone"]),
    ]
    actual = compare(*traces, cased.tokenizer, cased.tokenizer, 3, 3, across=True)
    assert [len(card) for card in cards] == [len(trace.masks) for trace in traces]
    for card, trace in zip(cards, traces):
        best = cased.fill_mask(trace, 5)[0].predictions
        assert [one["text"] for one in card[0]["predictions"]] == [one.token for one in best]
    table = app.dataframe[0].value
    assert list(table["divergence"]) == pytest.approx([mask.divergence for mask in actual.masks], abs=1e-4)
    theirs = {one.token for one in actual.masks[0].predictions_b}
    assert [one["alone"] for one in cards[0][0]["predictions"]] == [
        one.token not in theirs for one in actual.masks[0].predictions_a
    ]
    differing = [chip["text"] for chip in components(app, "chips")[1]["chips"] if chip["differs"]]
    assert "dog" in "".join(one.strip("#") for one in differing) and "ate" not in differing


def test_the_second_texts_are_typed_and_their_masks_kept_in_the_link(open_app):
    app = run_until_done(open_app(page="side_by_side", **PAIR, mask="a1", **{"side_by_side.what": "both"}))
    assert len(components(app, "chips")) == 2
    app.text_area(key="w_second_a").set_value("A cat slept.").run()
    app = run_until_done(app)
    assert param(app, "side_by_side.a") == "A cat slept." and param(app, "side_by_side.mask") is None
    assert "".join(chip["text"].strip("#") for chip in components(app, "chips")[1]["chips"][1:-1]) == "acatslept."
    app.text_area(key="w_second_a").set_value("   ").run()
    assert "Second text A is empty" in page_text(app) and not app.exception


def test_attention_is_drawn_as_the_difference_of_a_head(open_app, cased):
    link = {
        "side_by_side.what": "texts",
        "side_by_side.a": "The bunny ate the apple.",
        "side_by_side.b": "It was good.",
    }
    app = run_until_done(
        open_app(
            page="side_by_side",
            a="The bunny ate the carrot.",
            b="It was bad.",
            **link,
            depth="100",
            **{"side_by_side.head": "2", "side_by_side.drawn": "heatmap"},
        )
    )
    maps = [one["data"][0]["z"] for one in figures(app)[:2]]
    first = cased.trace("The bunny ate the carrot.", "It was bad.")
    assert len(maps) == 2 and "layer 3 of 3, head 2" in page_text(app)
    assert np.asarray(_array(maps[0])).max() == pytest.approx(first.attentions[2, 1].max(), abs=1e-4)


def _array(packed):
    """A matrix of a figure's JSON, packed or not."""
    if isinstance(packed, dict):
        import base64

        flat = np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
        return flat.reshape([int(size) for size in packed["shape"].split(",")])
    return np.array(packed, float)


def test_the_difference_is_that_of_the_maps(open_app, cased):
    link = {
        "side_by_side.what": "texts",
        "side_by_side.a": "The cat is good.",
        "side_by_side.b": "",
        "side_by_side.drawn": "difference",
    }
    app = run_until_done(open_app(page="side_by_side", a="The dog is good.", b="", depth="34", **link))
    traces = [cased.trace(text) for text in ("The dog is good.", "The cat is good.")]
    assert traces[0].length == traces[1].length
    wanted = traces[0].attentions[0].mean(axis=0) - traces[1].attentions[0].mean(axis=0)
    np.testing.assert_allclose(_array(figures(app)[0]["data"][0]["z"]), wanted, atol=1e-4)


def test_layers_of_two_models_stand_side_by_side(open_app, cased, uncased):
    app = run_until_done(open_app(page="side_by_side", **PAIR, mask="a2", **{"side_by_side.look": "layers"}))
    table = app.dataframe[1].value
    traces = [bert.trace(PAIR["a"], PAIR["b"], mask=["ate"]) for bert in (cased, uncased)]
    lenses = [logit_lens(bert, trace, top_k=1) for bert, trace in zip((cased, uncased), traces)]
    assert len(table) == 1 + 3
    assert list(table["one"]) == [lenses[0].predicted_tokens[0][state][0] for state in range(4)]
    assert table["other"].iloc[-1] == lenses[1].predicted_tokens[0][2][0]
    same = [one.lower() == other.lower() for one, other in zip(table["one"], table["other"])]
    assert list(table[" "]) == ["" if one else "≠" for one in same]
    curve = figures(app)[0]["data"][0]
    np.testing.assert_allclose(_array(curve["y"]), lenses[0].answer_probabilities[0], atol=1e-4)


def test_layers_take_one_pass_of_each_side(open_app, monkeypatch):
    passes = []
    real = bert_tf.Bert.trace

    def counted(self, *texts, **asked):
        passes.append(asked.get("hidden_states", False))
        return real(self, *texts, **asked)

    monkeypatch.setattr("ui.widgets.comparison.latencies", lambda pair, precision: (0.01, 0.01))
    monkeypatch.setattr(bert_tf.Bert, "trace", counted)
    run_until_done(open_app(page="side_by_side", **PAIR, mask="a2", **{"side_by_side.look": "layers"}))
    assert passes.count(True) == 2 and len(passes) == 2


def test_without_a_hidden_word_layers_say_what_to_do(open_app):
    app = run_until_done(open_app(page="side_by_side", **PAIR, **{"side_by_side.look": "layers"}))
    assert "needs a word that is hidden on both sides" in page_text(app)


ODD = (
    {"side_by_side.what": "x"},
    {"side_by_side.head": "99"},
    {"side_by_side.drawn": "x"},
    {"side_by_side.what": "texts", "side_by_side.mask": "q,a99", "side_by_side.a": "A b."},
)


@pytest.mark.parametrize("odd", ODD)
def test_odd_links_open_the_page(open_app, odd):
    run_until_done(open_app(page="side_by_side", **PAIR, mask="a1", **odd))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of two snapshots in the folder of runs; the shipped ones are left out."""
    folder = tmp_path / "runs" / "mini"
    for step in (0, 1000):
        one = make_bert(seed=step, layers=2, hidden=16, heads=2, lower_case=True)
        checkpoints.save(folder / "snapshots" / f"step-{step}", one.config, one.tokenizer, one.model, "float16")
    (folder / "metrics.jsonl").write_text(json.dumps({"step": 1000, "loss": 1.0}))
    monkeypatch.setattr(runs, "SHIPPED", tmp_path / "none")
    monkeypatch.setattr(runs, "folder", lambda: folder.parent)
    return folder


CAT = {"a": "the cat sat on the mat.", "b": "she ran.", "mask": "a1"}


def test_snapshots_of_a_run_are_compared_as_models_are(open_app, run):
    link = {"side_by_side.one": "mini/step-0", "side_by_side.other": "mini/step-1000"}
    app = run_until_done(open_app(page="side_by_side", **CAT, **link))
    assert app.selectbox(key="w_side_by_side_model").options[-2:] == ["mini · step 0", "mini · step 1,000"]
    pair = [bert_tf.load(run / "snapshots" / f"step-{step}") for step in (0, 1000)]
    traces = [bert.trace(CAT["a"], CAT["b"], mask=["cat"]) for bert in pair]
    actual = compare(*traces, *(bert.tokenizer for bert in pair), *(len(trace.attentions) for trace in traces))
    assert list(app.dataframe[0].value["divergence"]) == pytest.approx(
        [mask.divergence for mask in actual.masks], abs=1e-4
    )
    assert [one["is_next"] for one in components(app, "gauge")] == pytest.approx(
        [trace.nsp.is_next for trace in traces], abs=1e-4
    )
    code = app.code[0].value
    assert "mini/snapshots/step-0" in code and "mini/snapshots/step-1000" in code and str(run) not in code


def test_a_snapshot_is_picked_and_let_go_again(open_app, run):
    app = run_until_done(open_app(page="side_by_side", **CAT))
    app.selectbox(key="w_side_by_side_other").set_value("mini/step-1000").run()
    assert param(
        run_until_done(app), "side_by_side.other"
    ) == "mini/step-1000" and "**mini · step 1,000**" in page_text(app)
    app.selectbox(key="w_side_by_side_other").set_value("tiny-cased").run()
    assert param(run_until_done(app), "side_by_side.other") is None and param(app, "with") == "tiny-cased"


def test_a_snapshot_that_is_not_in_a_run_is_no_model(open_app, run):
    for name in ("mini/step-7", "../mini/step-0", str(run / "snapshots" / "step-0")):
        app = run_until_done(open_app(page="side_by_side", **CAT, **{"side_by_side.one": name}))
        assert app.selectbox(key="w_side_by_side_model").value == "tiny-cased"


@pytest.mark.parametrize(
    ("page", "link", "kind"),
    [
        ("side_by_side", {"with": "gone"}, "model “gone”, which is not installed here"),
        ("layer_similarity", {"layer_similarity.other": "gone"}, "model “gone”, which is not installed here"),
        ("agreement", {"with": "gone"}, "model “gone”, which is not installed here"),
        ("agreement", {"agreement.other": "gone/step-1"}, "snapshot “gone/step\\-1”, which is not here"),
        ("predict", {"with": "gone", "predict.compare": "1"}, "model “gone”, which is not installed here"),
    ],
)
def test_a_link_to_a_second_model_that_is_gone_says_which_is_used(page, link, kind, open_app):
    app = open_app(page=page, **PAIR, **link)
    asks = [one.value for one in app.warning if "The link asks" in one.value]
    assert asks == [f"The link asks for the {kind}. tiny\\-uncased is used."]
    assert [one.value for one in app.run().warning] == asks and param(app, "with") == "tiny-uncased"
    key = "w_predict_other" if page == "predict" else f"w_{page}_other"
    app.selectbox(key=key).set_value("tiny-cased").run()
    assert "The link asks" not in page_text(app)


def test_likeness_and_agreement_read_snapshots_too(open_app, run):
    pair = [bert_tf.load(run / "snapshots" / f"step-{step}") for step in (0, 1000)]
    link = {
        "layer_similarity.one": "mini/step-0",
        "layer_similarity.other": "mini/step-1000",
        "layer_similarity.source": "view",
    }
    app = run_until_done(open_app(page="layer_similarity", **CAT, **link))
    actual = layer_similarity(*([bert.trace(CAT["a"], CAT["b"])] for bert in pair))
    np.testing.assert_allclose(_array(figures(app)[0]["data"][0]["z"]), actual, atol=1e-3)
    assert "mini/snapshots/step-0" in app.code[0].value and "mini/snapshots/step-1000" in app.code[0].value

    sample = (ROOT / "assets" / "samples" / "sentences.txt").read_bytes()
    link = {"agreement.one": "mini/step-0", "agreement.other": "mini/step-7", "with": "tiny-uncased"}
    app = run_until_done(open_app(page="agreement", **link))
    assert app.selectbox(key="w_agreement_model").value == "mini/step-0"
    assert app.selectbox(key="w_agreement_other").value == "tiny-uncased"
    app.selectbox(key="w_agreement_other").set_value("mini/step-1000").run()
    app = run_until_done(app)
    assert param(app, "agreement.other") == "mini/step-1000"
    rows = app.dataframe[0].value
    # The texts are long: what differs stands before them.
    assert list(rows.columns)[:6] == ["row", "divergence_bits", "hidden", "prediction_a", "prediction_b", "text_a"]
    wanted = agreement(*pair, read_rows(sample, "text").rows)
    assert sorted(rows["divergence_bits"]) == pytest.approx(sorted(one.divergence for one in wanted.rows), abs=1e-4)
    assert app.metric[0].value == f"{100 * wanted.same_top_prediction:.1f}%"


def _infos(*names):
    layers = [types.SimpleNamespace(num_hidden_layers=24 if "large" in name else 12) for name in names]
    return [types.SimpleNamespace(name=name, config=one) for name, one in zip(names, layers)]


BASE, LARGE, ALBERT, SHIPPED = "bert-base-uncased", "bert-large-uncased", "albert-large-v2", "bert-base-cased-embedded"

STUDENT, SMALL = "bert-base-cased-student", "bert-small-uncased-embedded"


@pytest.mark.parametrize(
    "names, own, other, wanted",
    [
        ((BASE, ALBERT, LARGE), BASE, "", (BASE, LARGE)),
        ((SHIPPED, ALBERT, BASE, LARGE), SHIPPED, "", (BASE, LARGE)),
        ((SHIPPED, ALBERT, BASE, LARGE), ALBERT, "", (BASE, LARGE)),
        ((SHIPPED, ALBERT, BASE, LARGE), LARGE, "", (LARGE, BASE)),
        ((SHIPPED, ALBERT, BASE, LARGE), SHIPPED, ALBERT, (SHIPPED, ALBERT)),
        ((SHIPPED, ALBERT, BASE, LARGE, "bert-large-cased"), SHIPPED, "", (SHIPPED, "bert-large-cased")),
        ((SHIPPED, ALBERT, LARGE), SHIPPED, "", (SHIPPED, LARGE)),
        ((SHIPPED, "plain", ALBERT), SHIPPED, "gone", (SHIPPED, ALBERT)),
        ((SHIPPED, "plain"), SHIPPED, "", (SHIPPED, "plain")),
        ((SHIPPED, STUDENT, SMALL), SHIPPED, "", (SHIPPED, SMALL)),
        ((SHIPPED, STUDENT, SMALL), SMALL, "", (SMALL, SHIPPED)),
        ((SHIPPED, STUDENT, SMALL, LARGE), SHIPPED, "", (SHIPPED, LARGE)),
        (("plain",), "plain", "", ("plain", "plain")),
        ((LARGE, BASE + "-whole", "bert-large-uncased-whole-word-masking", BASE), BASE, "", (BASE, LARGE)),
    ],
)
def test_the_preset_is_base_beside_large_of_the_same_spelling(names, own, other, wanted):
    assert default_models(_infos(*names), View(model=own, other=other)) == wanted


@pytest.fixture
def base_and_large(environment, tmp_path, monkeypatch):
    """Point the explorer at a Base and a Large of the released names, and another model that is its default."""
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2}
    for name in ("tiny-own", BASE, LARGE):
        save_tiny(tmp_path, name, "bert-small-uncased-embedded", **sizes)
    offered = f"offered = {['tiny-own', BASE, LARGE]}".replace("'", '"')
    (tmp_path / "explorer.toml").write_text(re.sub("offered = .*", offered, LIMITS.replace("tiny-cased", "tiny-own")))
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "explorer.toml"))
    for cache in (state.limits, model_store.catalogue):
        cache.clear()


def test_the_preset_leaves_the_visitors_model_alone(open_app, base_and_large):
    app = run_until_done(open_app(page="side_by_side", **CAT))
    pair = [app.selectbox(key=f"w_side_by_side_{name}") for name in ("model", "other")]
    assert [one.value for one in pair] == [BASE, LARGE] and f"**{BASE}**" in page_text(app)
    assert app.selectbox(key="w_model").value == "tiny-own" and param(app, "model") in (None, "tiny-own")
    assert (param(app, "side_by_side.one"), param(app, "side_by_side.other")) == (BASE, LARGE)
    # The link opens the same pair, and another page the visitor's own model.
    again = run_until_done(open_app(**{name: param(app, name) for name in app.query_params}))
    assert [again.selectbox(key=f"w_side_by_side_{name}").value for name in ("model", "other")] == [BASE, LARGE]
    app.session_state["_view"] = dataclasses.replace(app.session_state["_view"], page="predict")
    app.session_state["_touched"] = True
    assert run_until_done(app.run()).selectbox(key="w_model").value == "tiny-own"
    assert component(app, "bars") == component(run_until_done(open_app(**CAT)), "bars")


def test_a_model_chosen_in_the_sidebar_or_on_the_page_is_both(open_app, base_and_large):
    app = run_until_done(open_app(page="side_by_side", **CAT))
    app.selectbox(key="w_model").set_value(LARGE).run()
    assert [run_until_done(app).selectbox(key=f"w_side_by_side_{name}").value for name in ("model", "other")] == [
        LARGE,
        LARGE,
    ]
    app.selectbox(key="w_side_by_side_model").set_value(BASE).run()
    assert run_until_done(app).selectbox(key="w_model").value == BASE == app.selectbox(key="w_side_by_side_model").value
    assert param(app, "side_by_side.one") is None and param(app, "side_by_side.other") == LARGE


LONG = {"a": "The bunny ate a carrot today . " * 90, "model": "tiny-cased"}


def test_lines_of_a_long_text_have_a_window_that_slides(open_app):
    app = run_until_done(open_app(page="side_by_side", **LONG, **{"side_by_side.drawn": "lines"}))
    assert [len(one["left"]) for one in components(app, "lines")] == [64, 64]
    first = components(app, "lines")[0]["left"]
    app.slider(key="w_start").set_value(102).run()
    moved = components(run_until_done(app), "lines")[0]["left"]
    assert param(app, "from") == "102" and first[0] == "[CLS]" and moved != first and "[CLS]" not in moved


def test_the_difference_of_a_long_text_is_drawn_in_parts(open_app, cased):
    text = "The bunny ate a carrot today . " * 12
    other = text.replace("today", "there")
    link = {
        "side_by_side.what": "texts",
        "side_by_side.a": other,
        "side_by_side.b": "",
        "side_by_side.drawn": "difference",
        "from": "11",
    }
    app = run_until_done(open_app(page="side_by_side", a=text, depth="34", **link))
    traces = [cased.trace(one) for one in (text, other)]
    assert traces[0].length == traces[1].length > 64
    apart = traces[0].attentions[0].mean(axis=0) - traces[1].attentions[0].mean(axis=0)
    np.testing.assert_allclose(_array(figures(app)[0]["data"][0]["z"]), apart[10:74, 10:74], atol=1e-4)


def test_sides_of_other_lengths_say_why_no_difference_is_drawn(open_app):
    link = {
        "side_by_side.what": "texts",
        "side_by_side.a": "The dog ate.",
        "side_by_side.b": "",
        "side_by_side.drawn": "difference",
    }
    app = run_until_done(open_app(page="side_by_side", a="The bunny ate the carrot.", **link))
    assert "No difference can be drawn: the sides have " in page_text(app)


def test_the_page_is_drawn_before_anything_is_timed_and_a_mask_is_not_timed_anew(open_app, monkeypatch):
    from ui.session.model_store import SharedModel

    asked, gate = [], threading.Event()

    def latency(shared, a, b, passes=5, progress=None):
        asked.append((shared.name, a, b))
        gate.wait(PATIENCE)
        return 0.25 if shared.name == "tiny-cased" else 0.5

    monkeypatch.setattr(SharedModel, "latency", latency)
    app = open_app(page="side_by_side", **PAIR, mask="a1")
    assert not app.exception and list(app.table[0].value.iloc[-1])[1:] == ["…", "…"]
    assert "Attention at the same relative depth" in page_text(app) and len(figures(app)) >= 2
    app.query_params["mask"] = "a1,a3"
    app.run()
    assert len(components(app, "bars")[1]["cards"]) == 2
    gate.set()
    app = run_until_done(app)
    assert list(app.table[0].value.iloc[-1])[1:] == ["250 ms", "500 ms"]
    app.query_params["mask"] = "a1,a4"
    app.run()
    assert list(app.table[0].value.iloc[-1])[1:] == ["250 ms", "500 ms"]
    assert asked == [("tiny-cased", *PAIR.values()), ("tiny-uncased", *PAIR.values())]


def test_the_time_of_a_text_is_the_median_of_passes_after_the_first():
    from ui.session.model_store import SharedModel

    class Bert:
        max_length, task = 512, None
        runtime = types.SimpleNamespace(runs_aside=lambda tokens: False)
        config = types.SimpleNamespace(num_hidden_layers=1, num_attention_heads=1)
        tokenizer = types.SimpleNamespace(
            normalize_mask_token=str, encode=lambda *_, max_length: types.SimpleNamespace(length=max_length)
        )

        def __init__(self):
            self.times = [9.0, 0.5, 0.25, 1.0]

        def trace(self, a, b, mask, attentions, hidden_states):
            assert (a, b, mask, attentions) == ("one", None, (), False)
            return types.SimpleNamespace(seconds=self.times.pop(0))

    marked = []
    bert = Bert()
    shared = SharedModel("m", lambda: bert)
    assert shared.latency("one", " ", progress=lambda *done: marked.append(done) or True) == 0.5
    assert marked == [(1, 6), (2, 6), (3, 6)] and shared.bert.times == []
    with pytest.raises(Cancelled):
        SharedModel("m", Bert).latency("one", "", progress=lambda *_: False)
