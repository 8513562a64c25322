"""The choice of the model: groups, facts, the offer of Large; notes about texts that the model reads badly."""

import dataclasses

import pytest

from bert_tf.checkpoints import list_models
from bert_tf.runtime import runtime
from tests.app.page_reading import page_text
from ui.elements.text_notes import seems_foreign
from ui.session import model_store
from ui.shell import sidebar


def embedded():
    return [info for info in list_models() if info.kind == "embedded"]


def captions(app):
    return [caption.value for caption in app.sidebar.caption]


def test_the_facts_are_size_shape_and_language_and_not_the_licence(open_app):
    app = open_app(page="guide", model="tiny-cased")
    output = captions(app)[0]
    assert "parameters" in output and "3 layers × 4 heads" in output
    assert "8 bits" not in output and "licen" not in output.lower()


@pytest.mark.parametrize(
    "page, actual, expected",
    [
        ("predict", "float32", ["The processor here cannot compute in int8; it computes in float32."]),
        ("predict", "int8", []),
        ("ablation", "float32", ["This page computes in float32."]),
    ],
)
def test_the_sidebar_says_where_another_precision_is_computed_in_float32(open_app, monkeypatch, page, actual, expected):
    monkeypatch.setattr(runtime, "actual_precision", lambda precision: actual)
    app = open_app(page=page, model="tiny-cased", a="A cat sat.", precision="int8")
    assert [caption for caption in captions(app) if "compute" in caption] == expected
    if page == "predict":
        assert any(f", {actual} · " in caption.value for caption in app.main.caption)


def test_an_embedded_model_says_that_it_is_in_8_bits_and_its_heads_are_new(open_app, monkeypatch, tmp_path):
    (tmp_path / "none.toml").touch()
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "none.toml"))
    model_store.catalogue.clear()
    from ui.session import state

    state.limits.clear()
    output = captions(open_app(page="guide", model="bert-base-cased-embedded"))[0]
    assert output == (
        "108.9 M parameters · 12 layers × 12 heads · English · heads trained anew for this explorer · stored in 8 bits"
    )


def test_the_models_are_grouped_by_what_they_are():
    here = {info.name: info for info in embedded()}
    groups = {name: [] for name in ("BERT", "Family", "Tasks", "Teaching")}
    installed = [
        here["bert-base-cased-embedded"],
        *(info for info in here.values() if "base-cased-emb" not in info.name),
    ]
    for group, members in _grouped(installed, tasks={"sentiment-base-cased"}).items():
        groups[group] = [info.name for info in members]
    assert groups["BERT"][0] == "bert-base-cased-embedded"
    assert "sentiment-base-cased" in groups["Tasks"] and "electra-base-cased-embedded" in _family(here)
    assert sum(map(len, groups.values())) == len(installed)


def _grouped(installed, tasks):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_store, "installed", lambda: installed)
        patch.setattr(sidebar.task_models, "names", lambda: tasks)
        return sidebar._groups(installed)


def _family(here):
    groups = _grouped([here["bert-base-cased-embedded"], here["electra-base-cased-embedded"]], tasks={})
    return [info.name for info in groups["Family"]]


def test_the_readers_of_one_side_are_for_teaching():
    groups = _grouped([info for info in embedded() if "bert-base-cased-emb" in info.name or "reader" in info.name], {})
    assert [info.name for info in groups["Teaching"]] == [
        "reader-both-ways",
        "reader-left-to-right",
        "reader-two-one-way",
    ]
    assert [info.name for info in groups["BERT"]] == ["bert-base-cased-embedded"]


def test_what_is_not_here_is_named_with_a_way_to_models(open_app):
    app = open_app(page="guide")
    assert app.button(key="w_get_models").label == "Get the released Base"
    app.button(key="w_get_models").click().run()
    assert not app.exception and app.title[0].value == "Models", page_text(app)


def test_nothing_is_offered_where_nobody_may_download(open_app, monkeypatch):
    from ui.session import downloads

    monkeypatch.setattr(downloads, "downloads_allowed", lambda: False)
    app = open_app(page="guide")
    assert "w_get_models" not in [button.key for button in app.button]


def test_words_behind_unk_are_named(open_app):
    app = open_app(page="all_heads", a="The 🐇 ate ☃ and 🐇.")
    assert "2 words not in the vocabulary, read as [UNK]: “🐇”, “☃”." in page_text(app)
    assert "[UNK]:" not in page_text(open_app(page="all_heads", a="The [UNK] ate it."))


@pytest.mark.parametrize(
    "text, foreign",
    [
        ("The bunny ate the carrot.", False),
        ("Der Hund und die Katze sind nicht in dem Haus.", True),
        ("Le chat est dans la maison avec les enfants.", True),
        ("Кошка спала на диване.", True),
        ("猫はソファの上で寝ていた", True),
        ("Don Quixote de la Mancha is a novel by Cervantes.", False),
        ("Guten Tag", False),
        ("", False),
    ],
)
def test_a_text_seems_foreign_by_its_letters_and_frequent_words(text, foreign):
    assert seems_foreign(text) == foreign


def test_a_foreign_text_is_noted_for_an_english_model_alone(open_app, monkeypatch):
    german = "Der Hund und die Katze sind nicht in dem Haus."
    assert "does not seem English" not in page_text(open_app(page="all_heads", a=german))
    known = [dataclasses.replace(info, languages=("en",)) for info in model_store.installed()]
    monkeypatch.setattr(model_store, "installed", lambda: known)
    assert "does not seem English" in page_text(open_app(page="all_heads", a=german))


def test_a_misspelt_model_of_the_limits_is_named(monkeypatch, tmp_path):
    from ui.session import state

    limits = '[models]\ndefault = "tiny-cased"\noffered = ["tiny-case", "bert-base-cased"]\n'
    (tmp_path / "limits.toml").write_text(limits)
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "limits.toml"))
    state.limits.clear()
    assert model_store.unknown_names() == ["tiny-case"]


def test_models_of_the_limits_may_be_named_by_their_repository_or_an_alias(monkeypatch, tmp_path):
    from ui.session import state

    limits = '[models]\ndefault = "tiny-cased"\noffered = ["tiny-cased", "Google-BERT/bert-base-cased", "owner/tiny"]\n'
    (tmp_path / "limits.toml").write_text(limits)
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "limits.toml"))
    state.limits.clear()
    assert state.limits().offered == ("tiny-cased", "bert-base-cased", "owner--tiny")
    assert model_store.unknown_names() == ["owner--tiny"]
    (tmp_path / "limits.toml").write_text('[models]\ndefault = "Google-BERT/bert-base-cased"\n')
    state.limits.clear()
    assert state.limits().default == "bert-base-cased"
