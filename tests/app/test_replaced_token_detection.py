"""ELECTRA's game on its page, compared with the library's; what is missing is said."""

import shutil

import pytest

import bert_tf
from bert_tf import checkpoints
from bert_tf.explain import replace_and_detect
from bert_tf.models import build_pretraining_model
from tests.app.family_models import GOLDEN_FOLDERS
from tests.app.page_reading import (
    column,
    component,
    near,
    offered,
    page_text,
    param,
    run_until_done,
)
from ui.session import model_store
from ui.widgets.formatting import count

TEXT = "w1 w2 w3 w4 w5 w6 w7 w8"
JUDGE, WRITER = "electra-discriminator", "electra-generator"
EMBEDDED, STUDENT = "electra-base-cased-embedded", "bert-base-cased-student"


@pytest.fixture
def game(own_family_home, tmp_path):
    judge, writer = (bert_tf.load(tmp_path / name) for name in (JUDGE, WRITER))
    return lambda share=0.15, mask=(), seed=0: replace_and_detect(writer, judge, TEXT, share, mask, seed)


def drawn(app):
    return [part for part in component(app, "marks")["a"] if "tip" in part]


def test_the_page_shows_the_library_s_game(game, open_app):
    app = run_until_done(
        open_app(
            page="replaced_token_detection",
            a=TEXT,
            model=JUDGE,
            **{"replaced_token_detection.share": "40", "replaced_token_detection.draw": "3"},
        )
    )
    wanted = game(0.4, seed=3)
    inside = [position for position, source in enumerate(wanted.sources) if source]
    assert [part["text"] for part in drawn(app)] == [wanted.tokens[position] for position in inside]
    assert [part["shade"] for part in drawn(app)] == pytest.approx([wanted.scores[p] for p in inside], abs=1e-3)
    assert [part["asked"] for part in drawn(app)] == [bool(wanted.replaced[position]) for position in inside]
    table = app.dataframe[0].value
    assert list(table["Original"]) == TEXT.split() and list(table["Replaced"]) == list(wanted.replaced[inside])
    right = [wanted.replaced[p] == (wanted.scores[p] > 0.5) for p in inside]
    assert list(table["Right"]) == right
    assert f"The discriminator scored {count(wanted.false_positives, 'original token')} as replaced" in page_text(app)


def test_a_text_that_is_cut_is_told(game, open_app):
    app = run_until_done(open_app(page="replaced_token_detection", a="w1 w2 " * 500, model=JUDGE))
    assert "at the end are left out" in app.warning[0].value


def test_pieces_of_sentencepiece_stand_as_in_the_text(open_app, own_family_home, tmp_path):
    config, tokenizer, _ = checkpoints.read(GOLDEN_FOLDERS / "deberta")
    for name, heads in (("deberta-judge", ("replaced",)), ("deberta-writer", ("mlm",))):
        checkpoints.save(tmp_path / name, config, tokenizer, build_pretraining_model(config, heads=heads))
    app = open_app(page="replaced_token_detection", a="the license of it", model="deberta-judge", mask="a0")
    parts = component(run_until_done(app), "marks")["a"][1:]
    assert "".join(part["text"] for part in parts).strip().endswith("▁license of ▁it")


def test_pressed_words_are_the_ones_that_are_written_anew(game, open_app):
    app = run_until_done(open_app(page="replaced_token_detection", a=TEXT, model=JUDGE, mask="a1,a5"))
    assert [part["text"] for part in drawn(app)] == list(game(mask=(2, 6)).tokens[1:-1])
    assert "predicted 2 tokens" in page_text(app)


def test_drawing_again_is_another_draw_that_a_link_holds(game, open_app):
    app = run_until_done(
        open_app(page="replaced_token_detection", a=TEXT, model=JUDGE, **{"replaced_token_detection.share": "40"})
    )
    app.button(key="w_replaced_token_detection_again").click()
    app = run_until_done(app.run())
    assert param(app, "replaced_token_detection.draw") == "1"
    assert [part["text"] for part in drawn(app)] == list(game(0.4, seed=1).tokens[1:-1])


def test_the_lines_play_the_same_game(game, open_app, capsys):
    app = run_until_done(
        open_app(
            page="replaced_token_detection",
            a=TEXT,
            model=JUDGE,
            **{"replaced_token_detection.share": "40", "replaced_token_detection.draw": "3"},
        )
    )
    names = {}
    exec(app.code[0].value, names)
    assert names["result"].tokens == game(0.4, seed=3).tokens
    app = run_until_done(open_app(page="replaced_token_detection", a=TEXT, model=JUDGE, mask="a1,a5"))
    exec(app.code[0].value, names)
    assert [part["shade"] for part in drawn(app)] == pytest.approx(names["result"].scores[1:-1], abs=1e-3)


def test_another_writer_of_the_same_pieces_may_be_chosen(game, open_app, tmp_path):
    app = run_until_done(open_app(page="replaced_token_detection", a=TEXT, model=JUDGE))
    # Its own generator first; RoBERTa and ALBERT have other pieces.
    assert app.selectbox(key="w_replaced_token_detection_writer").options == [WRITER, "distilbert"]
    app = run_until_done(app.selectbox(key="w_replaced_token_detection_writer").select("distilbert").run())
    judge, writer = (bert_tf.load(tmp_path / name) for name in (JUDGE, "distilbert"))
    assert [part["text"] for part in drawn(app)] == list(replace_and_detect(writer, judge, TEXT).tokens[1:-1])


def test_a_model_with_both_heads_writes_nothing_for_itself(game, open_app, tmp_path):
    """It would be held twice, and nobody could use it any more."""
    judge = bert_tf.load(tmp_path / JUDGE)
    both = build_pretraining_model(judge.config, heads=("mlm", "replaced"))
    checkpoints.save(tmp_path / "both", judge.config, judge.tokenizer, both)
    model_store.catalogue.clear()
    app = run_until_done(
        open_app(page="replaced_token_detection", a=TEXT, model="both", **{"replaced_token_detection.writer": WRITER})
    )
    assert app.selectbox(key="w_replaced_token_detection_writer").options == [WRITER, "distilbert"]
    for name in (WRITER, "distilbert"):
        shutil.rmtree(tmp_path / name)
    model_store.catalogue.clear()
    assert "no other model that fills masks" in page_text(
        open_app(page="replaced_token_detection", a=TEXT, model="both")
    )


def test_models_in_google_s_format_play_too(game, open_app, tmp_path):
    for name in (JUDGE, WRITER):
        shutil.rmtree(tmp_path / name)
        checkpoints.convert(GOLDEN_FOLDERS / name, tmp_path / name, to="google")
    model_store.catalogue.clear()
    app = run_until_done(
        open_app(
            page="replaced_token_detection",
            a=TEXT,
            model=JUDGE,
            **{"replaced_token_detection.share": "40", "replaced_token_detection.writer": WRITER},
        )
    )
    assert [part["text"] for part in drawn(app)] == list(game(0.4).tokens[1:-1])


def test_where_no_discriminator_is_offered_the_page_says_so(open_app):
    app = run_until_done(open_app(page="replaced_token_detection", a="The cat sat."))
    assert "needs an ELECTRA discriminator" in page_text(app) and component(app, "marks") is None


@pytest.fixture
def as_shipped(tmp_path, monkeypatch):
    """An empty models folder and the project's own limits: what is there is what is shipped."""
    from ui.session import model_store, state

    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    monkeypatch.delenv("BERT_TF_EXPLORER")
    for cache in (state.limits, model_store.catalogue):
        cache.clear()


def test_with_what_is_shipped_the_page_plays_at_once(as_shipped, open_app):
    text = "The capital of France is Paris."
    app = run_until_done(open_app(page="replaced_token_detection", a=text))
    wanted = replace_and_detect(*map(bert_tf.load, (STUDENT, EMBEDDED)), text)
    assert [part["text"] for part in drawn(app)] == [token.removeprefix("##") for token in wanted.tokens[1:-1]]
    assert [part["shade"] for part in drawn(app)] == pytest.approx(list(wanted.scores[1:-1]), abs=1e-3)
    assert "Generator: BERT Base's student. Discriminator: ELECTRA Base, cased." in page_text(app)
    # Another model stays the one that everything else is asked of.
    assert app.selectbox(key="w_model").value == "bert-base-cased-embedded"
    assert "Family · ELECTRA Base, cased" in app.selectbox(key="w_model").options


def test_writers_of_its_own_start_come_first_and_the_smaller_before_the_larger(as_shipped, open_app, tmp_path):
    from bert_tf.checkpoints import save
    from bert_tf.config import BertConfig
    from bert_tf.models import build_pretraining_model
    from ui.session import model_store

    config = BertConfig.named(
        "small-generator",
        "electra",
        hidden_size=16,
        num_attention_heads=2,
        num_hidden_layers=1,
        intermediate_size=16,
        embedding_size=16,
        vocab_size=28996,
    )
    save(
        tmp_path / "a-generator",
        config,
        bert_tf.load(STUDENT).tokenizer,
        build_pretraining_model(config, heads=("mlm",)),
    )
    model_store.catalogue.clear()
    app = run_until_done(open_app(page="replaced_token_detection", a="The cat sat."))
    writer = app.selectbox(key="w_replaced_token_detection_writer")
    assert writer.options == ["BERT Base's student", "BERT Base, cased", "a-generator"] and writer.value == STUDENT


def test_the_game_is_saved(game, open_app, saved):
    offered(
        run_until_done(
            open_app(
                page="replaced_token_detection",
                a=TEXT,
                b="It ran.",
                model=JUDGE,
                **{"replaced_token_detection.share": "40"},
            )
        ),
        saved,
        ("electra",),
    )
    assert TEXT in saved["electra"]["shown"] and "It ran." not in saved["electra"]["shown"]
    wanted = game(0.4)
    near(saved["electra"]["npz"]["scores"], wanted.scores)
    near(column(saved["electra"], "score"), wanted.scores[1:-1])
    assert saved["electra"]["npz"]["replaced"].tolist() == wanted.replaced.tolist()


def test_the_scores_of_a_text_of_ones_own_are_saved(game, open_app, saved, tmp_path):
    offered(run_until_done(open_app(page="predict", a=TEXT, model=JUDGE)), saved, ("replaced-or-original",))
    wanted = bert_tf.load(tmp_path / JUDGE).trace(TEXT).replaced
    near(saved["replaced-or-original"]["npz"]["replaced"], wanted)
