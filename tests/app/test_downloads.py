"""Models fetched from a page: the real download, from a hub on this machine."""

import importlib
import re
import time
import types

import pytest

from bert_tf.checkpoints import partial_download_bytes
from bert_tf.checkpoints.registry import released
from tests.app.conftest import LIMITS, save_tiny
from tests.app.page_reading import PATIENCE, page_text
from tests.checkpoints.conftest import Hub
from ui.widgets.formatting import megabytes

NAME = released("bert-tiny").name
SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.fixture
def hub(environment, explorer_home, tmp_path, monkeypatch):
    """A hub with one model, and an explorer that may fetch it into an empty folder."""
    from huggingface_hub import constants, file_download
    from huggingface_hub.utils import _http

    from ui.session import downloads, model_store, state

    hub = Hub()
    save_tiny(tmp_path, "served", "bert-small-uncased-embedded", **SIZES)
    hub.add_model(released(NAME).repo, tmp_path / "served")
    home = tmp_path / "home"
    home.mkdir()
    (home / "explorer.toml").write_text(
        re.sub("offered = .*", f'offered = ["bert-base-cased-embedded", "{NAME}"]', LIMITS)
    )
    monkeypatch.setenv("BERT_TF_HOME", str(home))
    monkeypatch.setenv("BERT_TF_EXPLORER", str(home / "explorer.toml"))
    # The hub's library reads HF_ENDPOINT when it is imported, writes 10 MB at a time, and waits before it tries again.
    monkeypatch.setattr(constants, "ENDPOINT", hub.endpoint)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 600)
    # A machine that is busy with other tests may take longer than a hub may.
    monkeypatch.setattr(importlib.import_module("bert_tf.checkpoints.hub"), "_PATIENCE", 600.0)
    at_once = types.SimpleNamespace(**{**vars(time), "sleep": lambda seconds: None})
    for module in (file_download, _http):
        monkeypatch.setattr(module, "time", at_once)
    for cache in (state.limits, model_store.catalogue, downloads.shared_downloads):
        cache.clear()
    yield hub
    hub.gate.set()
    ended()
    hub.close()
    downloads.shared_downloads.clear()


def ended():
    from ui.session.downloads import shared_downloads

    deadline = time.monotonic() + PATIENCE
    while (actual := shared_downloads().get(NAME)) and actual.running and time.monotonic() < deadline:
        time.sleep(0.01)
    return actual


def half_way():
    """Wait until the first half of the weights is here, and nothing more arrives."""
    from ui.session.downloads import shared_downloads

    deadline, before, actual = time.monotonic() + PATIENCE, 0, shared_downloads().get(NAME)
    while not (now := actual.done) or now < actual.total / 2 - 5000 or now != before:
        assert actual.running, actual.problem
        assert time.monotonic() < deadline
        before = now
        time.sleep(0.3)


def asked_for(hub):
    return [wanted for method, name, wanted in hub.requests if (method, name) == ("GET", "model.safetensors")]


def key(what):
    return f"w_{what}_models_{NAME}"


def offers(app):
    return any(button.key == key("get") for button in app.button)


def bar(app):
    """What stands beside the bar, or None."""
    return next((one.proto.text for one in app.get("progress")), None)


def test_a_download_goes_on_whatever_is_pressed_and_others_watch_it(open_app, hub):
    hub.gate.clear()
    app = open_app(page="models")
    app.button(key=key("get")).click().run()
    half_way()
    for _ in range(3):
        app.run()
    assert re.fullmatch(rf"{NAME}: \d+ (k|M)B of \d+ (k|M)B(, \d+ (k|M)B a second)?", bar(app)) and not offers(app)
    other = open_app(page="models")
    assert bar(other).startswith(f"{NAME}: ") and not offers(other)
    # Whoever pressed at the same moment begins no second one.
    from ui.session.downloads import shared_downloads

    shared_downloads().start(NAME)
    elsewhere = open_app(page="predict", a="The bunny ate the carrot.", mask="a1")
    assert not elsewhere.exception and NAME not in elsewhere.selectbox(key="w_model").options
    hub.gate.set()
    assert ended().status == "done" and len(asked_for(hub)) == 1
    for one in (app, other):
        one.run()
        assert bar(one) is None and not offers(one) and f"{NAME} ·" in page_text(one).replace("\\", "")
    assert NAME in elsewhere.run().selectbox(key="w_model").options


def test_a_download_that_is_stopped_says_what_is_here_and_goes_on_from_there(open_app, hub):
    hub.gate.clear()
    app = open_app(page="models")
    app.button(key=key("get")).click().run()
    half_way()
    app.run()
    app.button(key=key("stop")).click().run()
    # The download may have ended before the page was drawn again.
    if bar(app) is not None:
        assert bar(app) == f"{NAME} stops …" and app.button(key=key("stop")).disabled
    hub.gate.set()
    actual = ended()
    app.run()
    held = partial_download_bytes(NAME)
    assert actual.status == "stopped" and 0 < held < sum(map(len, hub.files.values()))
    caption = f"{megabytes(held)} of it are downloaded already; the download continues from there."
    assert offers(app) and not app.error and caption in page_text(app)
    before = len(asked_for(hub))
    app.button(key=key("get")).click().run()
    assert ended().status == "done"
    # Bytes that were on their way when it was stopped are kept too: what is asked for again begins after them.
    assert all(re.fullmatch(r"bytes=[1-9]\d+-", part or "") for part in asked_for(hub)[before:]), asked_for(hub)
    assert not offers(app.run())


def test_a_download_that_fails_says_so_until_it_is_pressed_again(open_app, hub):
    hub.status = 503
    app = open_app(page="models")
    app.button(key=key("get")).click().run()
    ended()
    for _ in range(3):
        app.run()
        assert "the hub answered 503" in page_text(app).replace("\\", "") and offers(app)
    other = open_app(page="models")
    assert offers(other) and not other.error
    hub.status = 200
    hub.gate.clear()
    app.button(key=key("get")).click().run()
    assert not app.error and bar(app) is not None
    hub.gate.set()
    assert ended().status == "done"
    assert not offers(app.run()) and not app.error


def test_a_download_that_fails_says_how_to_bring_the_model(open_app, hub, tmp_path):
    from ui.session import model_store

    hub.status = 503
    app = open_app(page="models")
    app.button(key=key("get")).click().run()
    ended()
    (output,) = [error.value for error in app.run().error]
    assert f"`python -m bert_tf download {NAME}`" in output and "rrno" not in output
    assert f"the folder `{NAME}` with config.json, vocab.txt and model.safetensors" in output
    assert f"into `{tmp_path / 'home'}`" in output
    # What the sentence names is enough: the model is there afterwards.
    (tmp_path / "home" / NAME).mkdir()
    for file in ("config.json", "vocab.txt", "model.safetensors"):
        (tmp_path / "home" / NAME / file).write_bytes((tmp_path / "served" / file).read_bytes())
    model_store.catalogue.clear()  # it is read again every ten seconds
    assert not app.run().error and not offers(app)


def test_the_message_of_a_failed_download_goes_with_the_comparison_it_was_pressed_under(open_app, hub, monkeypatch):
    from ui.widgets import comparison

    monkeypatch.setattr(comparison, "RECOMMENDED", (NAME,))
    hub.status = 503
    app = open_app(page="side_by_side", a="The bunny ate the carrot.")
    app.button(key=f"w_get_side_by_side_{NAME}").click().run()
    ended()
    assert "the hub answered 503" in page_text(app.run()).replace("\\", "")
    app.button_group(key="w_side_by_side_what").set_value("texts").run()
    assert not app.error and not app.exception
    app.button_group(key="w_side_by_side_what").set_value("models").run()
    assert not app.error


REPO = "someone/tiny-bert"


def look_up(open_app, name):
    """The page Models after a repository was looked up."""
    app = open_app(page="models")
    next(field for field in app.text_input if field.key == "w_hub_name").set_value(name)
    next(button for button in app.button if button.label == "Look it up").click()
    return app.run()


def text_of(app):
    """The text of the page without the backslashes that keep Markdown from being read."""
    return page_text(app).replace("\\", "")


def test_any_repository_is_looked_up_then_downloaded(open_app, hub, tmp_path):
    from ui.session.downloads import shared_downloads

    hub.add_model(REPO, tmp_path / "served")
    hub.cards[REPO] = {"license": "mit"}
    app = look_up(open_app, REPO)
    output = text_of(app)
    assert "BERT, 2 layers of" in output and "licence: mit" in output and not asked_for(hub)
    field = next(field for field in app.text_input if field.key == "w_hub_name")
    assert field.placeholder == "OWNER/NAME" and "OWNER/NAME@REVISION" in output  # a telephone has no room for both
    next(button for button in app.button if button.label.startswith(f"Get {REPO}")).click()
    app.run()
    deadline = time.monotonic() + PATIENCE
    while (actual := shared_downloads().get(REPO)).running and time.monotonic() < deadline:
        time.sleep(0.05)
    assert actual.status == "done", actual.problem
    assert (tmp_path / "home" / "someone--tiny-bert" / "model.safetensors").is_file()


def test_what_the_deployment_or_the_hub_refuses_is_said(open_app, hub, tmp_path):
    from ui.session import state

    hub.add_model(REPO, tmp_path / "served")
    del hub.files[REPO, "model.safetensors"]
    hub.files[REPO, "pytorch_model.bin"] = b"never"
    assert "only PyTorch pickle files" in text_of(look_up(open_app, REPO))
    assert "does not have someone/nothing" in text_of(look_up(open_app, "someone/nothing"))
    assert "is not the name of a repository" in text_of(look_up(open_app, "../../etc"))
    limits = state.limits()
    for allowed in ("other/*", "someone/other"):
        object.__setattr__(limits, "repositories", (allowed,))
        assert not limits.gets(REPO) and limits.gets(allowed.replace("*", "name"))
    hub.requests.clear()
    assert f"does not download {REPO}" in text_of(look_up(open_app, REPO)) and not hub.requests
    object.__setattr__(limits, "repositories", ())
    assert not any(field.key == "w_hub_name" for field in open_app(page="models").text_input)
    state.limits.clear()


def test_the_page_of_the_models_says_how_to_add_a_folder(open_app):
    app = open_app(page="models")
    assert app.expander[0].label == "A model of your own"
    assert "without a restart" in page_text(app) and "BERT_TF_HOME=" in app.code[0].value


def test_a_released_model_that_is_not_installed_stands_in_the_choice_and_leads_to_models(open_app):
    app = open_app(page="predict")
    assert "bert-base-uncased · get it" in app.selectbox(key="w_model").options
    app.selectbox(key="w_model").set_value("bert-base-uncased").run()
    assert not app.exception and app.title[0].value == "Models"
    assert app.selectbox(key="w_model").value == "tiny-cased"
