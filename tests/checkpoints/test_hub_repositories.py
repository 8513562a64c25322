"""Any repository of the hub, looked up and downloaded from a hub on this machine."""

import json
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_tf.checkpoints import (
    CheckpointError,
    DownloadError,
    UnknownModel,
    download,
    find,
    look_up,
    partial_download_bytes,
    read,
)
from bert_tf.checkpoints.formats.keras_h5 import open_h5
from bert_tf.checkpoints.hub_repository import folder_name, parse_name
from bert_tf.checkpoints.library import read_config, stored_heads

DEBERTA = Path(__file__).parents[1] / "golden" / "family" / "deberta"
REPO = "someone/tiny-bert"
FILES = ("config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors")


@pytest.fixture
def served(hub, tiny_folder):
    """The hub with a small model under a name that no registry has."""
    hub.add_model(REPO, tiny_folder)
    hub.cards[REPO] = {"license": "mit"}
    return hub


@pytest.mark.parametrize(
    "name, parsed",
    [
        ("owner/name", ("owner/name", None)),
        ("owner/name@v1.0", ("owner/name", "v1.0")),
        ("owner/na.me_-1@refs/pr/3", ("owner/na.me_-1", "refs/pr/3")),
        ("name", None),
        ("a/b/c", None),
        ("../b", None),
        ("a/..", None),
        ("a/b@../../c", None),
        ("a/b?x", None),
        ("https://huggingface.co/a/b", None),
        ("a/b\n", ("a/b", None)),
    ],
)
def test_names_of_repositories(name, parsed):
    assert parse_name(name) == parsed


@pytest.mark.parametrize("answer", [{}, [], None, {"id": REPO, "siblings": [{"name": "config.json"}]}])
def test_a_description_that_is_none_is_one_sentence(served, monkeypatch, answer):
    monkeypatch.setattr(served, "_answer_api", lambda handler: served._send_json(handler, answer))
    with pytest.raises(DownloadError, match=f"{REPO} was not looked up: the hub's answer cannot be read."):
        look_up(REPO, served.endpoint)


def test_a_message_names_the_repository_as_it_was_asked_for(served, tmp_path):
    (tmp_path / ".partial").write_text("a file where the folder of downloads should be")
    with pytest.raises(DownloadError, match=f"^{REPO} was not downloaded: "):
        download(REPO, endpoint=served.endpoint, folder=tmp_path)


def test_what_a_repository_holds_is_known_before_its_weights(served):
    actual = look_up(REPO, served.endpoint)
    assert actual.problem is None and actual.licence == "mit" and actual.config.num_hidden_layers == 2
    assert set(actual.heads) == {"pooler", "mlm", "nsp"} and {file.name for file in actual.files} == set(FILES)
    assert actual.size_bytes == sum(len(served.files[REPO, name]) for name in FILES)
    facts = " · ".join(actual.facts())
    assert "BERT, 2 layers of 32" in facts and "licence: mit" in facts and "model.safetensors" in facts
    assert not any(name == "model.safetensors" for _, name, _ in served.requests)


@pytest.mark.parametrize("redirect", [False, True])
def test_any_repository_is_downloaded_and_found_by_its_name(served, tmp_path, monkeypatch, redirect):
    served.redirect = served.xet = redirect
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    notes = []
    folder = download(REPO, endpoint=served.endpoint, note=notes.append)
    assert folder == tmp_path / "someone--tiny-bert" and notes and notes[0].startswith(REPO)
    assert read(folder)[2].bert_heads == {"pooler", "mlm", "nsp"}
    assert find(REPO) == find("someone--tiny-bert") == folder
    card = (folder / "README.md").read_text()
    assert "license: mit" in card and REPO in card and "0123456789abcdef" in card
    served.requests.clear()
    assert download(REPO, endpoint=served.endpoint) == folder and not served.requests
    with pytest.raises(UnknownModel, match="python -m bert_tf download someone/other"):
        find("someone/other")


def test_an_outdated_part_in_a_folder_of_the_repository_is_counted_and_does_not_become_a_part_of_the_model(
    served, tmp_path
):
    outdated = tmp_path / ".partial" / "someone--tiny-bert" / "1_Pooling" / "config.json.older.part"
    outdated.parent.mkdir(parents=True)
    outdated.write_bytes(b"{" * 7)
    assert partial_download_bytes(REPO, tmp_path) == 7
    assert not list(download(REPO, endpoint=served.endpoint, folder=tmp_path).rglob("*.part"))


def test_a_revision_has_a_folder_of_its_own(served, tmp_path):
    for name, data in ((name, served.files[REPO, name]) for name in FILES):
        served.files[f"{REPO}@v2", name] = data
    folder = download(f"{REPO}@v2", endpoint=served.endpoint, folder=tmp_path)
    assert folder.name == "someone--tiny-bert--v2" == folder_name(REPO, "v2")
    assert served.commit(f"{REPO}@v2") in (folder / "README.md").read_text()


@pytest.mark.parametrize("ending", ["", "@" + 40 * "a", "@" + 20 * "a/b"])
def test_a_long_name_has_a_folder_that_is_found(ending, monkeypatch, tmp_path):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    names = [f"distilbert/{90 * 'x'}{letter}{ending}" for letter in "ab"]
    folders = [folder_name(*parse_name(name)) for name in names]
    assert len(set(folders)) == 2 and all(len(folder) <= 100 for folder in folders)
    (tmp_path / folders[0]).mkdir()
    (tmp_path / folders[0] / "model.safetensors").touch()
    assert find(names[0]) == find(folders[0]) == tmp_path / folders[0]
    with pytest.raises(UnknownModel, match="is not on this machine; `python -m bert_tf download"):
        find(names[1])


def test_a_name_of_a_hundred_characters_keeps_its_folder():
    assert folder_name(f"owner/{51 * 'x'}", 40 * "a") == f"owner--{51 * 'x'}--{40 * 'a'}"


def test_branches_with_a_slash_have_folders_of_their_own():
    names = {folder_name(REPO, revision) for revision in ("x/y", "x-y", "x/y/z", "x-y/z", None)}
    assert len(names) == 5 and not any("/" in name for name in names)


def test_a_file_that_would_leave_the_folder_on_windows_is_not_fetched(served, tmp_path):
    weights = served.files.pop((REPO, "model.safetensors"))
    for name in ("..\\..\\model.safetensors", "..\\x-00001-of-00001.safetensors"):
        served.files[REPO, name] = weights
    served.files[REPO, "model.safetensors.index.json"] = b"{}"
    assert not any("\\" in file.name for file in look_up(REPO, served.endpoint).files)
    del served.files[REPO, "model.safetensors.index.json"], served.files[REPO, name]
    assert look_up(REPO, served.endpoint).problem


def pickled(hub):
    hub.files[REPO, "pytorch_model.bin"] = b"a pickle"
    return hub.files.pop((REPO, "model.safetensors"))


def converted(hub, weights, pickle=b"a pickle", author="SFconvertbot"):
    """The hub's own conversion as an open pull request."""
    for (repo, name), data in list(hub.files.items()):
        if repo == REPO:
            hub.files[f"{REPO}@refs/pr/7", name] = data
    hub.files[f"{REPO}@refs/pr/7", "model.safetensors"] = weights
    hub.files[f"{REPO}@refs/pr/7", "pytorch_model.bin"] = pickle
    hub.discussions[REPO] = [
        {
            "num": 7,
            "title": "Adding `safetensors` variant of this model",
            "author": {"name": author},
            "isPullRequest": True,
            "status": "open",
            "createdAt": "2023-05-01T00:00:00.000Z",
            "repo": {"name": REPO, "type": "model"},
        }
    ]


def test_the_hubs_own_conversion_is_taken_where_main_has_a_pickle(served, tmp_path):
    converted(served, pickled(served))
    assert "refs/pr/7" in look_up(REPO, served.endpoint).weights
    folder = download(REPO, endpoint=served.endpoint, folder=tmp_path)
    assert "mlm" in read(folder)[2].bert_heads and not (folder / "pytorch_model.bin").exists()


@pytest.mark.parametrize("other", [{"pickle": b"older weights"}, {"author": "somebody"}])
def test_a_conversion_of_other_weights_or_by_somebody_else_is_not_taken(served, tmp_path, other):
    converted(served, pickled(served), **other)
    actual = look_up(REPO, served.endpoint)
    assert not actual.files and "only PyTorch pickle files (*.bin)" in actual.problem
    assert f'transformers.BertForPreTraining.from_pretrained("{REPO}")' in actual.problem
    with pytest.raises(DownloadError, match="are never read. Convert it with Transformers"):
        download(REPO, endpoint=served.endpoint, folder=tmp_path)
    assert not any(name == "pytorch_model.bin" for _, name, _ in served.requests)


def write_h5(path, tensors):
    """The layout of Transformers' TFBertForPreTraining, from a model.safetensors."""
    model, last = "tf_bert_for_pre_training", {"embeddings.weight": "embeddings/embeddings:0"}
    with h5py.File(path, "w") as file:
        for name, value in tensors.items():
            parts = name.split(".")
            layer = {"bert": "bert", "cls": "mlm___cls"}[parts[0]]
            if parts[1] == "seq_relationship":
                layer = "nsp___cls"
            parts[0] = layer
            if "layer" in parts:
                at = parts.index("layer")
                parts[at : at + 2] = [f"layer_._{parts[at + 1]}"]
            if "LayerNorm" in parts:
                parts[-1] = {"weight": "gamma", "bias": "beta"}[parts[-1]]
            elif parts[-2] in ("position_embeddings", "token_type_embeddings"):
                parts[-1] = "embeddings"
            elif parts[-1] == "weight" and parts[-2] != "word_embeddings":
                parts[-1], value = "kernel", value.T
            file[f"{layer}/{model}/{'/'.join(parts)}:0"] = value
        file["optimizer_weights/iter:0"] = np.zeros(3)
    return last


def test_keras_weights_of_older_transformers_are_read(tiny, tiny_folder, tmp_path, outputs_of):
    folder = shutil.copytree(tiny_folder, tmp_path / "h5")
    (folder / "checksums.json").unlink()
    write_h5(folder / "tf_model.h5", load_file(folder / "model.safetensors"))
    (folder / "model.safetensors").unlink()
    assert stored_heads(folder, read_config(folder)) == {"pooler", "mlm", "nsp"}
    _, _, model = read(folder)
    wanted = outputs_of(tiny.model)
    for name, value in outputs_of(model).items():
        np.testing.assert_array_equal(value, wanted[name])
    data = (folder / "tf_model.h5").read_bytes()
    (folder / "tf_model.h5").write_bytes(data[: len(data) // 2])
    with pytest.raises(CheckpointError, match="tf_model.h5 is not a complete HDF5 file"):
        read(folder)


def test_keras_weights_with_values_in_another_file_or_many_more_than_its_bytes_are_refused(tmp_path):
    (tmp_path / "secret").write_bytes(b"S" * 64)
    path = tmp_path / "tf_model.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a/bert/x:0", (16,), "f4", external=[(str(tmp_path / "secret"), 0, 64)])
    with pytest.raises(CheckpointError, match="keeps a/bert/x:0 in another file"):
        open_h5(tmp_path)
    layout = h5py.VirtualLayout((16,), "f4")
    layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "x", (16,))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("a/bert/x:0", layout)
    with pytest.raises(CheckpointError, match="in another file"):
        open_h5(tmp_path)
    with h5py.File(path, "w") as file:
        file.create_dataset("a/bert/x:0", (100_000, 100_000), "f4", chunks=(1000, 1000), compression="gzip")
    with pytest.raises(CheckpointError, match="declares 40,000,000,000 bytes"):
        open_h5(tmp_path)


def test_keras_weights_with_a_name_that_is_no_text_are_refused(tmp_path):
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file[b"a/bert/\xff:0"] = np.zeros(3, np.float32)
    with pytest.raises(CheckpointError, match="not a complete HDF5 file .the name .* is no text"):
        open_h5(tmp_path)


def test_keras_weights_are_fetched_where_there_is_nothing_else(served, tmp_path, tiny_folder):
    write_h5(tmp_path / "tf_model.h5", load_file(tiny_folder / "model.safetensors"))
    pickled(served)
    served.files[REPO, "tf_model.h5"] = (tmp_path / "tf_model.h5").read_bytes()
    folder = download(REPO, endpoint=served.endpoint, folder=tmp_path / "models")
    assert "mlm" in read(folder)[2].bert_heads


def test_weights_in_several_files_are_fetched_by_their_index(hub, tiny, tmp_path):
    from bert_tf.checkpoints import save

    save(tmp_path / "shards", tiny.config, tiny.tokenizer, tiny.model, max_shard_bytes=40_000)
    hub.add_model(REPO, tmp_path / "shards")
    folder = download(REPO, endpoint=hub.endpoint, folder=tmp_path / "models")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    read(folder)


def test_a_gated_model_needs_the_users_own_login(served, tmp_path, monkeypatch):
    served.gated.add(REPO)
    with pytest.raises(DownloadError, match="only to accounts that have accepted its terms"):
        download(REPO, endpoint=served.endpoint, folder=tmp_path)
    monkeypatch.setenv("HF_TOKEN", "accepted")
    folder = download(REPO, endpoint=served.endpoint, folder=tmp_path)
    assert not any("accepted" in path.read_text("utf-8", "replace") for path in folder.iterdir())
    assert look_up(REPO, served.endpoint).gated


@pytest.mark.parametrize(
    "change, problem",
    [
        ({"model_type": "t5"}, "model_type is 't5'"),
        ({"position_embedding_type": "relative_key"}, "changes the network"),
    ],
)
def test_what_cannot_be_read_is_said_before_anything_is_fetched(served, tmp_path, change, problem):
    values = json.loads(served.files[REPO, "config.json"]) | change
    served.files[REPO, "config.json"] = json.dumps(values).encode()
    assert problem in look_up(REPO, served.endpoint).problem
    with pytest.raises(DownloadError, match=problem):
        download(REPO, endpoint=served.endpoint, folder=tmp_path)
    assert not list(tmp_path.rglob("*.safetensors*"))


@pytest.mark.parametrize(
    "missing, problem", [("config.json", "no config.json"), ("vocab.txt", "sentencepiece.bpe.model, spm.model).")]
)
def test_missing_files_are_named(served, missing, problem):
    del served.files[REPO, missing]  # the tokenizer_config.json that stays is no vocabulary
    assert problem in look_up(REPO, served.endpoint).problem


def test_a_vocabulary_that_is_a_sentencepiece_model_alone_is_fetched(hub, tmp_path):
    hub.add_model(REPO, DEBERTA)
    folder = download(REPO, endpoint=hub.endpoint, folder=tmp_path)
    assert (folder / "spm.model").is_file()
    assert read(folder)[1].vocab == read(DEBERTA)[1].vocab


def test_settings_that_are_no_json_are_said(served):
    served.files[REPO, "config.json"] = b"{"
    assert "is not JSON" in look_up(REPO, served.endpoint).problem
    served.files[REPO, "config.json"] = b"[" * 200_000
    assert "is not JSON" in look_up(REPO, served.endpoint).problem
    served.files[REPO, "config.json"] = b"[]"
    assert "not a JSON object" in look_up(REPO, served.endpoint).problem


def test_a_repository_that_is_not_there_and_no_network_are_sentences(served):
    with pytest.raises(DownloadError, match="does not have someone/nothing at revision main"):
        look_up("someone/nothing", served.endpoint)
    with pytest.raises(DownloadError, match=f"{REPO} was not looked up: .*no connection"):
        look_up(REPO, "http://127.0.0.1:9")
    with pytest.raises(UnknownModel, match="OWNER/NAME"):
        look_up("tiny-bert", served.endpoint)


def test_the_command_says_what_there_is_before_it_downloads(served, tmp_path, monkeypatch, capsys):
    from bert_tf.cli import main

    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    # The hub's library reads HF_ENDPOINT when it is imported.
    template = served.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", served.endpoint)
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
    assert main(["download", REPO, "--look"]) == 0
    assert "heads: pooler, mlm, nsp" in capsys.readouterr().out and not list(tmp_path.iterdir())
    assert main(["download", REPO, "--quiet"]) == 0
    output = capsys.readouterr()
    assert output.err.startswith(REPO) and output.out.strip() == str(tmp_path / "someone--tiny-bert")
    del served.files[REPO, "model.safetensors"]
    assert main(["download", f"{REPO}@main", "--look"]) == 2
    assert "holds no weights" in capsys.readouterr().err
