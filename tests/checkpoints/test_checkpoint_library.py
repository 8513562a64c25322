"""Models found by name, and the list of them."""

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bert_tf import load
from bert_tf.checkpoints import UnknownModel, convert, find, library, list_models, models_dir, read


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty models folder, and an empty folder of embedded models beside it."""
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(library, "embedded_dir", lambda: tmp_path / "embedded")
    for name in ("home", "embedded"):
        (tmp_path / name).mkdir()
    return tmp_path / "home"


def test_the_models_folder_is_that_of_the_environment_else_of_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    assert models_dir() == tmp_path
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BERT_TF_HOME", "models")  # a training that the explorer starts runs in another folder
    assert models_dir() == tmp_path / "models"
    monkeypatch.setenv("BERT_TF_HOME", "~no-such-user/models")  # `Path.expanduser` would raise RuntimeError
    assert models_dir() == tmp_path / "~no-such-user/models"
    monkeypatch.delenv("BERT_TF_HOME")
    assert models_dir().is_absolute() and "bert_tf" in str(models_dir())
    monkeypatch.setattr(library.platformdirs, "user_cache_path", lambda *_, **__: Path("~/.cache/bert_tf"))
    assert models_dir() == tmp_path / "~/.cache/bert_tf"  # a process without HOME


def test_a_folder_dropped_into_the_models_folder_is_found_and_described(home, tiny_folder):
    shutil.copytree(tiny_folder, home / "my-bert")
    assert find("my-bert") == home / "my-bert"
    info = next(model for model in list_models() if model.name == "my-bert")
    assert info.installed and info.kind == "folder" and info.path == home / "my-bert" and info.problem is None
    assert info.heads == {"pooler", "mlm", "nsp"} and info.config.hidden_size == 32
    assert info.size_bytes > 4 * info.parameters > 0


def test_a_folder_that_may_not_be_read_hides_no_other(home, tiny_folder, monkeypatch):
    """As lost+found of a volume, which is its administrator's alone; then the models folder itself."""
    shutil.copytree(tiny_folder, home / "my-bert")
    (home / "lost+found").mkdir()
    refused = home / "lost+found"

    def refusing(function):
        def run(path, *args, **options):
            if refused in path.parents or function is iterdir and path == refused:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path, *args, **options)

        return run

    def installed():
        with pytest.raises(UnknownModel, match="There is no model or folder called 'unknown'"):
            find("unknown")
        return [model.name for model in list_models() if model.installed]

    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", refusing(iterdir))
    monkeypatch.setattr(Path, "stat", refusing(Path.stat))
    assert installed() == ["my-bert"] and library.describe("my-bert").problem is None
    refused = home
    assert installed() == []


def test_an_embedded_model_comes_first(home, tiny_folder):
    for root in (home, library.embedded_dir()):
        shutil.copytree(tiny_folder, root / "same")
    assert find("same") == library.embedded_dir() / "same"
    assert [(model.name, model.kind) for model in list_models()][0] == ("same", "embedded")


def test_heads_that_are_not_stored_are_not_listed(home, headless_folder):
    shutil.copytree(headless_folder, home / "headless")
    assert list_models()[0].heads == {"pooler"}


def test_heads_are_those_of_the_weights_that_are_read(home, tiny_folder, headless_folder):
    """A folder with weights in two formats, whose safetensors are read."""
    shutil.copytree(headless_folder, home / "both")
    convert(tiny_folder, home / "google", to="google")
    for path in (home / "google").glob("bert_model.ckpt*"):
        path.replace(home / "both" / path.name)
    info = next(model for model in list_models() if model.name == "both")
    assert info.heads == read(home / "both")[2].bert_heads == {"pooler"}


def test_licence_and_source_come_from_the_model_card(home, tiny_folder):
    shutil.copytree(tiny_folder, home / "carded")
    (home / "carded" / "README.md").write_text("---\nlicense: cc-by-sa-4.0\nbase_model: somebody/bert\n---\n")
    info = list_models()[0]
    assert (info.licence, info.source) == ("cc-by-sa-4.0", "somebody/bert")


def test_a_released_model_is_listed_once_installed_or_not(home, tiny_folder):
    before = [model for model in list_models() if model.name == "bert-base-cased"]
    assert len(before) == 1 and not before[0].installed and before[0].path is None
    shutil.copytree(tiny_folder, home / "bert-base-cased")
    after = [model for model in list_models() if model.name == "bert-base-cased"]
    assert len(after) == 1 and after[0].installed
    assert find("google-bert/bert-base-cased", allow_paths=False) == home / "bert-base-cased"


def test_a_broken_folder_is_listed_with_what_is_wrong(home, tiny_folder):
    shutil.copytree(tiny_folder, home / "broken")
    (home / "broken" / "model.safetensors").write_bytes(b"short")
    (home / "no-config").mkdir()
    (home / "no-config" / "model.safetensors").write_bytes(b"")
    problems = {model.name: model.problem for model in list_models() if model.kind == "folder"}
    assert "complete safetensors" in problems["broken"] and "config.json" in problems["no-config"]


def test_other_folders_are_not_models(home):
    (home / "notes").mkdir()
    (home / ".partial" / "bert-base-cased").mkdir(parents=True)
    assert all(model.kind == "released" for model in list_models())


def test_a_path_is_taken_only_where_paths_are_allowed(home, tiny_folder):
    assert find(tiny_folder) == tiny_folder and find(str(tiny_folder)) == tiny_folder
    with pytest.raises(UnknownModel):
        find(str(tiny_folder), allow_paths=False)


@pytest.mark.parametrize(
    "name",
    ["../home/inside", "..", ".", "", "inside/../inside", "a\\b", "~", "inside\0", "inside/", "./inside", "x" * 5000],
)
def test_a_name_never_becomes_a_path(home, tiny_folder, name, monkeypatch):
    shutil.copytree(tiny_folder, home / "inside")
    monkeypatch.chdir(home)
    with pytest.raises(UnknownModel):
        find(name, allow_paths=False)


def test_an_absolute_path_is_no_name(home, tiny_folder):
    shutil.copytree(tiny_folder, home / "inside")
    with pytest.raises(UnknownModel):
        find(str(home / "inside"), allow_paths=False)


@pytest.mark.parametrize("name", ["", " ", "~nobody-of-this-name/x", "a\0b", "x" * 5000, "/" + "x" * 5000])
def test_what_cannot_be_a_path_is_no_model_either(home, name):
    with pytest.raises(UnknownModel):
        find(name)


@pytest.mark.parametrize("value", [None, 5, [], True, b"x"])
def test_what_is_neither_text_nor_path_is_told_what_to_give(value):
    for read_model in (load, find, library.describe):
        with pytest.raises(
            UnknownModel, match=f"Give the name or the folder of a model, not {re.escape(repr(value))}; "
        ):
            read_model(value)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_file_of_a_model_is_answered_with_its_folder(home, tiny_folder, name, monkeypatch):
    monkeypatch.chdir(tiny_folder.parent)
    for path in (tiny_folder / name, f"{tiny_folder.name}/{name}"):
        with pytest.raises(UnknownModel, match=f"{name} is not a folder; give the folder that holds"):
            load(path)
        with pytest.raises(UnknownModel, match="There is no model called|not on this machine"):
            find(path, allow_paths=False)


def test_an_unknown_name_is_answered_with_the_nearest(home):
    with pytest.raises(UnknownModel, match="bert-base-uncased"):
        find("bert-base-uncase")


def test_a_released_model_that_is_not_here_is_answered_with_the_command(home):
    with pytest.raises(UnknownModel, match="440 MB.*python -m bert_tf download bert-base-uncased"):
        find("bert-base-uncased")


def test_listing_imports_no_tensorflow():
    code = (
        "import sys, bert_tf.checkpoints as c; c.list_models(); "
        "print([name for name in ('tensorflow', 'keras', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


@pytest.mark.parametrize("name", ["bert-tiny", "BERT-Base-Uncased", "bert-base-uncased"])
def test_a_folder_is_found_under_its_own_name_though_a_released_model_has_it_too(home, tiny_folder, name, monkeypatch):
    shutil.copytree(tiny_folder, home / name)
    assert find(name) == find(name, allow_paths=False) == home / name
    assert [model.name for model in list_models() if model.installed] == [name]
    shutil.rmtree(home / name)
    with pytest.raises(UnknownModel, match="not on this machine"):
        find(name)
    (home / "clone" / name).mkdir(parents=True)
    monkeypatch.chdir(home / "clone")
    with pytest.raises(UnknownModel, match="not on this machine"):
        find(name)  # a folder, but no model
    shutil.copytree(tiny_folder, home / "clone" / name, dirs_exist_ok=True)
    assert find(name).resolve() == home / "clone" / name
    with pytest.raises(UnknownModel):
        find(name, allow_paths=False)


def test_an_alias_still_leads_to_the_released_models_folder(home, tiny_folder):
    shutil.copytree(tiny_folder, home / "bert_uncased_L-2_H-128_A-2")
    for name in ("bert-tiny", "BERT-Tiny", "google/bert_uncased_L-2_H-128_A-2"):
        assert find(name) == home / "bert_uncased_L-2_H-128_A-2"


@pytest.mark.parametrize(
    "settings",
    [
        '{"hidden_act": ["gelu"]}',
        '{"model_type": ["bert"]}',
        '{"num_hidden_layers": 10000000000}',
        "[" * 100_000,
        "[]",
        '{"vocab_size": ' + "9" * 5000 + "}",
        '{"id2label": 7, "num_hidden_layers": null}',
    ],
)
def test_settings_of_any_content_leave_the_other_models_listed(home, tiny_folder, settings):
    for name in ("bad", "good"):
        shutil.copytree(tiny_folder, home / name)
    (home / "bad" / "config.json").write_text(settings)
    bad, good = list_models()[:2]
    assert bad.problem and "config.json" in bad.problem and bad.config is None
    assert good.name == "good" and good.problem is None


def test_a_fault_in_looking_at_one_folder_leaves_the_others_listed(home, tiny_folder, monkeypatch):
    for name in ("bad", "good"):
        shutil.copytree(tiny_folder, home / name)
    read_config = library.read_config

    def fails(folder):
        return read_config(folder) if folder.name == "good" else {}[0]

    monkeypatch.setattr(library, "read_config", fails)
    bad, good = list_models()[:2]
    assert "KeyError" in bad.problem and good.problem is None


@pytest.mark.parametrize("name", ["My BERT", "bert (1)", "_bert", "größe", "a" * 101, "line\nbreak"])
def test_a_folder_whose_name_cannot_be_asked_for_is_listed_and_says_so(home, tiny_folder, name):
    shutil.copytree(tiny_folder, home / name)
    info = list_models()[0]
    assert info.name == name.replace("\n", "?") and info.path == home / name and "rename it" in info.problem
    with pytest.raises(UnknownModel, match="rename it"):
        find(name, allow_paths=False)


def test_a_hidden_folder_is_a_model_on_its_way_and_not_listed(home, tiny_folder):
    shutil.copytree(tiny_folder, home / ".new.unfinished")
    (home / "half").mkdir()
    (home / "half" / ".123-model.safetensors").write_bytes(b"half")
    assert all(model.kind == "released" for model in list_models())
