"""A model folder whose files have changed since they were written is refused, though it looks like a good one."""

import json
import random
import shutil
import struct

import pytest
from safetensors.numpy import load_file, save_file

from bert_tf import cli
from bert_tf.checkpoints import CheckpointError, convert, read, save
from bert_tf.checkpoints.delta import save_delta
from bert_tf.checkpoints.library import embedded_dir
from bert_tf.checkpoints.reading import open_folder
from bert_tf.checksums import CHECKSUMS, find_damage, has_checksums


@pytest.fixture
def folder(tiny_folder, tmp_path):
    """A good folder, to be damaged."""
    return shutil.copytree(tiny_folder, tmp_path / "model")


def flip_a_bit(path, seed=0):
    content = bytearray(path.read_bytes())
    start = 8 + struct.unpack("<Q", content[:8])[0]  # after the header of a safetensors file
    content[random.Random(seed).randrange(start, len(content))] ^= 1
    path.write_bytes(content)


def exchange_tensors(path):
    """Exchange the places of two tensors of one shape in the header, so that each is read as the other."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    one, other = (f"bert.encoder.layer.{layer}.attention.self.query.weight" for layer in (0, 1))
    offsets = header[one]["data_offsets"], header[other]["data_offsets"]
    header[other]["data_offsets"], header[one]["data_offsets"] = offsets
    path.write_bytes(content[:8] + json.dumps(header, separators=(",", ":")).encode().ljust(size) + content[8 + size :])


def exchange_lines(path):
    lines = path.read_text().splitlines(keepends=True)
    lines[-1], lines[-2] = lines[-2], lines[-1]
    path.write_text("".join(lines))


def change_number_of_heads(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "num_attention_heads": 1}))


DAMAGE = {
    "a flipped bit": ("model.safetensors", flip_a_bit),
    "exchanged tensors": ("model.safetensors", exchange_tensors),
    "exchanged words": ("vocab.txt", exchange_lines),
    "another number of heads": ("config.json", change_number_of_heads),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_that_would_only_change_the_numbers_is_refused(folder, kind):
    name, damage = DAMAGE[kind]
    damage(folder / name)
    with pytest.raises(CheckpointError, match=f"{name} is damaged.*Get the model again.*check .*--write"):
        read(folder)
    (folder / CHECKSUMS).unlink()
    read(folder)  # without the checksums nobody would have noticed


@pytest.mark.parametrize("kind", DAMAGE)
def test_the_command_check_names_the_damaged_file(folder, kind, capsys):
    name, damage = DAMAGE[kind]
    assert cli.main(["check", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder}: whole.\n"
    damage(folder / name)
    assert cli.main(["check", str(folder)]) == 1
    assert f"{folder / name} is damaged" in capsys.readouterr().out
    # A change that is meant gets new checksums.
    assert cli.main(["check", str(folder), "--write"]) == 0
    read(folder)


def test_the_command_check_says_where_it_has_nothing_to_compare(folder, tmp_path, capsys):
    (folder / CHECKSUMS).unlink()
    assert cli.main(["check", str(folder)]) == 2
    assert "has no checksums.json" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert cli.main(["check", str(tmp_path / "empty"), "--write"]) == 2
    assert "holds no weights of a model" in capsys.readouterr().err


def test_a_missing_file_is_named(folder):
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(CheckpointError, match="tokenizer_config.json is missing"):
        read(folder)


def test_the_card_may_be_edited(folder):
    (folder / "README.md").write_text("My model.")
    read(folder)


def test_a_folder_of_another_program_needs_no_checksums(folder):
    (folder / CHECKSUMS).unlink()
    flip_a_bit(folder / "model.safetensors")
    read(folder)


def test_every_file_that_the_model_needs_has_a_checksum(tiny, tmp_path):
    path = save(tmp_path / "m", tiny.config, tiny.tokenizer, tiny.model, max_shard_bytes=40_000)
    needed = {file.name for file in path.iterdir()} - {"README.md", CHECKSUMS}
    assert json.loads((path / CHECKSUMS).read_text()).keys() == needed and len(needed) > 5
    # A second save in another form leaves no checksums of files that are gone.
    save(path, tiny.config, tiny.tokenizer, tiny.model, dtype="int8")
    assert not find_damage(path)
    read(path)


def test_weights_of_ones_own_beside_the_model_have_no_checksum(tiny, tmp_path):
    (tmp_path / "model_best.safetensors").write_bytes(b"one's own")
    for size in (None, 40_000):
        save(tmp_path, tiny.config, tiny.tokenizer, tiny.model, max_shard_bytes=size)
        assert "model_best.safetensors" not in json.loads((tmp_path / CHECKSUMS).read_text())
    (tmp_path / "model_best.safetensors").unlink()
    read(tmp_path)


def test_a_save_that_is_killed_half_way_is_not_taken_for_damage(folder, tiny, monkeypatch):
    from bert_tf.checkpoints import saving

    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(saving, "write_json", fail)
    with pytest.raises(KeyboardInterrupt):
        save(folder, tiny.config, tiny.tokenizer, tiny.model, dtype="float16")
    read(folder)


@pytest.mark.parametrize("has_task", [True, False])
def test_a_delta_that_is_killed_half_way_is_not_taken_for_damage(tiny, tmp_path, monkeypatch, has_task):
    from bert_tf.checkpoints import delta
    from bert_tf.finetuning import task_folder
    from bert_tf.finetuning.task_network import network_over
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.registry import task_type

    def fail(*_, **__):
        raise KeyboardInterrupt

    base = save(tmp_path / "base", tiny.config, tiny.tokenizer, tiny.model)
    monkeypatch.setattr(task_folder if has_task else delta, "write_json", fail)
    model = tiny.config, tiny.tokenizer, tiny.model
    with pytest.raises(KeyboardInterrupt):
        if has_task:
            settings = TaskSettings("classify", ("no", "yes"))
            network = network_over(tiny.model, task_type("classify"), settings)
            task_folder.save_task(tmp_path / "delta", *model[:2], network, settings, delta_of=base)
        else:
            save_delta(tmp_path / "delta", *model, base, open_folder)
    assert not (tmp_path / "delta" / "vocab.txt").exists() and not has_checksums(tmp_path / "delta")


def test_damage_of_the_base_model_is_noticed_where_a_model_is_stored_over_it(tiny, tmp_path):
    base = save(tmp_path / "base", tiny.config, tiny.tokenizer, tiny.model)
    delta = save_delta(tmp_path / "delta", tiny.config, tiny.tokenizer, tiny.model, base, open_folder)
    assert not (delta / "vocab.txt").exists() and not find_damage(delta)
    read(delta)
    flip_a_bit(base / "model.safetensors")
    with pytest.raises(CheckpointError, match="base/model.safetensors is damaged"):
        read(delta)


def test_a_converted_folder_has_checksums_of_its_own(folder, tmp_path):
    done = convert(folder, tmp_path / "other", dtype="float16")
    assert has_checksums(done.path) and not find_damage(done.path)


@pytest.mark.parametrize(
    "kind, weights", [("keras-nlp", "model.weights.h5"), ("google", "bert_model.ckpt.data-00000-of-00001")]
)
def test_the_weights_of_other_formats_have_checksums_too(tiny_folder, tmp_path, capsys, kind, weights):
    folder = tmp_path / "other"
    assert cli.main(["convert", str(tiny_folder), str(folder), "--to", kind]) == 0
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    assert cli.main(["check", str(folder), "--write"]) == 0
    path = folder / weights
    assert weights in json.loads((folder / CHECKSUMS).read_text()) and not find_damage(folder)
    assert "pytorch_model.bin" not in (folder / CHECKSUMS).read_text()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert cli.main(["check", str(folder)]) != 0 and f"{weights} is damaged" in capsys.readouterr().out


def test_other_weights_with_new_values_are_refused(folder):
    path = folder / "model.safetensors"
    values = {name: value.copy() for name, value in load_file(path).items()}
    values["cls.predictions.bias"] += 1
    save_file(values, path)
    with pytest.raises(CheckpointError, match="model.safetensors is damaged"):
        read(folder)


@pytest.mark.parametrize("name", sorted(path.name for path in embedded_dir().iterdir()))
def test_the_shipped_models_are_whole(name):
    assert has_checksums(embedded_dir() / name) and find_damage(embedded_dir() / name) == []
