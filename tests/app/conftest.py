"""Fixtures: small random models with a limits file, the app under test, and the files that it saves."""

import collections
import concurrent.futures
import csv
import functools
import io
import json
import pathlib
import shutil

import numpy as np
import pytest
import streamlit as st

from tests.app import family_models
from tests.app.page_reading import PATIENCE
from ui.shell import page_foot

ROOT = pathlib.Path(__file__).resolve().parents[2]
MENUS = (*page_foot.MENUS, "w_save_menu_here", "w_code_menu_here")
LIMITS = """
[text]
max_characters = 5000
[models]
default = "tiny-cased"
offered = ["tiny-cased", "tiny-uncased", "bert-base-uncased"]
warm = false
[predict]
max_masks = 6
"""


def save_tiny(home, name, vocabulary, **sizes):
    """Write a random model into ``home``.

    Args:
        home: Path of the models folder. name: of the model. vocabulary: name of the embedded model with its vocabulary.
        sizes: further settings of `BertConfig`.
    """
    from bert_tf.checkpoints import save
    from bert_tf.config import BertConfig
    from bert_tf.models import build_pretraining_model
    from bert_tf.tokenizers import Tokenizer
    from tests.conftest import randomise

    tokenizer = Tokenizer.from_folder(ROOT / "assets" / "models" / vocabulary)
    config = BertConfig(**{"vocab_size": tokenizer.vocab_size, "hidden_size": 16, "intermediate_size": 32, **sizes})
    model = build_pretraining_model(config)
    # The same weights in every run, and larger than initial ones, so that effects are larger than rounding errors.
    randomise(model, 1)
    save(home / name, config, tokenizer, model)


@pytest.fixture(scope="session")
def explorer_home(tmp_path_factory):
    """A models folder with two random models of different vocabularies, and a limits file."""
    home = tmp_path_factory.mktemp("explorer")
    save_tiny(home, "tiny-cased", "bert-base-cased-embedded", num_hidden_layers=3, num_attention_heads=4)
    save_tiny(home, "tiny-uncased", "bert-small-uncased-embedded", num_hidden_layers=2, num_attention_heads=2)
    (home / "explorer.toml").write_text(LIMITS)
    return home


@pytest.fixture(scope="session", autouse=True)
def one_component_scan():
    """Scan the installed packages for components once, not for each `AppTest`: they stay the same while tests run."""
    from streamlit.components.v2 import manifest_scanner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            manifest_scanner, "scan_component_manifests", functools.cache(manifest_scanner.scan_component_manifests)
        )
        yield


def use_models_in(home, monkeypatch):
    """Let the explorer use the models and the limits file in a folder, and forget those before. Returns: the folder."""
    from ui.session import model_store, state

    monkeypatch.setenv("BERT_TF_HOME", str(home))
    monkeypatch.setenv("BERT_TF_EXPLORER", str(home / "explorer.toml"))
    state.limits.clear()
    model_store.catalogue.clear()
    return home


@pytest.fixture(autouse=True)
def environment(explorer_home, monkeypatch):
    """Let the explorer use the small models, with nobody there."""
    from ui.session import fair_lock, model_store, state

    use_models_in(explorer_home, monkeypatch)
    fair_lock.presses.clear()
    yield
    state.limits.clear()
    model_store.catalogue.clear()


@pytest.fixture
def open_app():
    """A function that opens the explorer with the parameters of a link and returns the app after one run.

    ``menus``: whether "Save" and "Copy as Python" are open, so that what is in them is made.
    """
    from streamlit.testing.v1 import AppTest

    def open_link(menus=True, **params):
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=PATIENCE)
        for key in MENUS * menus:
            app.session_state[key] = True
        for key, value in params.items():
            app.query_params[key] = value
        return app.run()

    return open_link


class SavedFiles(collections.UserDict):
    """The files of download menus: each menu's are made when they are asked for, from what was drawn last."""

    def __getitem__(self, name):
        files = self.data[name]
        if callable(files):
            # In a thread without a session, as on the server.
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                files = self.data[name] = pool.submit(files).result()
        return files


@pytest.fixture
def saved(monkeypatch):
    """The files of the download menus that were drawn: dict from a menu's name to the contents of its files."""
    from ui.widgets import export

    files, save = SavedFiles(), export.save

    def recording_save(name, *arguments, **options):
        save(name, *arguments, **options)
        result, about, texts = st.session_state[export._RESULTS][name]
        files[name] = functools.partial(result_files, result, about, export.shown(name, result, about, texts))

    def result_files(result, about, shown):
        table = list(csv.reader(io.StringIO(export.frame_csv(result.to_frame()))))
        record = export.record_json({**about, **result.to_dict()})
        return {
            "shown": shown,
            "header": table[0],
            "rows": table[1:],
            "json": json.loads(record, parse_constant=pytest.fail),
            "npz": dict(np.load(io.BytesIO(export.npz(export.result_arrays(result))), allow_pickle=False)),
            "figures": {title.replace("-", " ").capitalize(): result.figure(title) for title in result.figures},
        }

    monkeypatch.setattr(export, "save", recording_save)
    yield files
    list(files.values())  # all of them can be made


@pytest.fixture(scope="session")
def task_home(tmp_path_factory):
    """A models folder with a random model of each task, and a limits file."""
    from tests.app.random_task_models import save_tasks

    home = tmp_path_factory.mktemp("tasks")
    save_tasks(home)
    return home


@pytest.fixture
def with_tasks(environment, task_home, monkeypatch):
    """Let the explorer use the fine-tuned models."""
    from ui.session import task_models

    use_models_in(task_home, monkeypatch)
    task_models._settings.clear()
    yield
    task_models._settings.clear()


@pytest.fixture
def trained_in_windows(with_tasks, task_home, tmp_path, monkeypatch):
    """Let the explorer use one classifier alone, trained in windows that move by 32 pieces. Returns: its folder."""
    from bert_tf.checkpoints.model_checksums import write_model_checksums
    from ui.session import task_models

    folder = shutil.copytree(task_home / "classes", tmp_path / "in-windows")
    settings = json.loads((folder / "task.json").read_text())
    (folder / "task.json").write_text(json.dumps({**settings, "extra": {"windows": "mean", "stride": 32}}))
    write_model_checksums(folder)
    (tmp_path / "explorer.toml").write_text(
        '[models]\ndefault = "in-windows"\noffered = ["in-windows"]\nwarm = false\n'
    )
    use_models_in(tmp_path, monkeypatch)
    task_models._settings.clear()
    return folder


def save_family(home, *more):
    """A folder with one small random model of each architecture, and the model folders ``more``. Returns: its path."""
    for folder in (*(family_models.GOLDEN_FOLDERS / name for name in family_models.TEXTS), *more):
        shutil.copytree(folder, home / folder.name)
    (home / "explorer.toml").write_text(family_models.LIMITS)
    return home


@pytest.fixture(scope="session")
def family_folder(tmp_path_factory):
    """Models that stay loaded from one test to the next, as their folder stays the same."""
    return save_family(tmp_path_factory.mktemp("family"))


@pytest.fixture(scope="session")
def modernbert_folder(tmp_path_factory):
    return save_family(tmp_path_factory.mktemp("modernbert"), family_models.MODERN_FOLDER)


@pytest.fixture(scope="session")
def deberta_folder(tmp_path_factory):
    return save_family(tmp_path_factory.mktemp("deberta"), family_models.GOLDEN_FOLDERS / "deberta")


@pytest.fixture
def family_home(family_folder, monkeypatch):
    """Let the explorer use a folder with one small random model of each architecture."""
    return use_models_in(family_folder, monkeypatch)


@pytest.fixture
def own_family_home(tmp_path, monkeypatch):
    """`family_home` for a test that adds or removes models: the folder is ``tmp_path``."""
    return use_models_in(save_family(tmp_path), monkeypatch)


@pytest.fixture
def modernbert_home(modernbert_folder, monkeypatch):
    """`family_home` with a small ModernBERT."""
    return use_models_in(modernbert_folder, monkeypatch)


@pytest.fixture
def deberta_home(deberta_folder, monkeypatch):
    """`family_home` with a small DeBERTa-v3."""
    return use_models_in(deberta_folder, monkeypatch)
