"""`prepare`: records that TensorFlow reads, the same from one process, several, a killed run, and Beam."""

import collections
import gzip
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from backports import zstd

from bert_tf.cli import main
from bert_tf.folder_lock import FolderInUse
from bert_tf.pretraining.data import chunks, shards
from bert_tf.pretraining.data.chunks import Chunk, group_files, read_chunks
from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.data.examples import ExampleSettings, make_examples
from bert_tf.pretraining.data.feed import DataPosition
from bert_tf.pretraining.data.prepare import _all_cores, prepare
from bert_tf.pretraining.data.records import FEATURES, decode, encode
from bert_tf.pretraining.data.records_feed import Records, RecordsFeed
from bert_tf.pretraining.objectives.masking import MaskSettings
from bert_tf.pretraining.run_settings import check_run
from bert_tf.tokenizers import Tokenizer
from tests.conftest import byte_level_tokenizers, save_stopped_run, small_vocabulary

TOKENIZER = Tokenizer(small_vocabulary(), lower_case=False)
SETTINGS = ExampleSettings(length=32, seed=3)


def write_text(path, documents, seed=0):
    rng = np.random.default_rng(seed)
    words = [token for token in TOKENIZER.vocab if token.isalpha() and len(token) > 1]
    sentence = lambda: " ".join(rng.choice(words, rng.integers(3, 12))) + "."  # noqa: E731
    path.write_text("\n\n".join("\n".join(sentence() for _ in range(rng.integers(2, 9))) for _ in range(documents)))
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    return [write_text(folder / f"{number}.txt", 60, number) for number in range(3)]


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of some ten documents, and a group for each file."""
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 2000)
    monkeypatch.setattr(chunks, "GROUP_BYTES", 1000)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.suffix != ".lock"}


def records_of(folder):
    import tensorflow as tf

    paths = sorted(str(path) for path in Path(folder).glob("*.tfrecord"))
    return list(tf.data.TFRecordDataset(paths).as_numpy_iterator())


def test_records_hold_the_examples_under_the_names_of_the_original(texts):
    import tensorflow as tf

    batch, counts = make_examples(next(read_chunks(0, texts)), TOKENIZER, SETTINGS)
    serialized = encode(batch)
    example = tf.train.Example.FromString(serialized[7])
    assert set(example.features.feature) == set(FEATURES.values())
    ids = example.features.feature["input_ids"].int64_list.value
    assert list(ids) == batch["token_ids"][7].tolist() and len(serialized) == counts.examples
    back = decode(serialized, 32, batch["mask_labels"].shape[1])
    for name, array in batch.items():
        assert back[name].dtype == array.dtype and np.array_equal(back[name], array)
    with pytest.raises(ValueError, match="no examples of 64 tokens"):
        decode(serialized, 64, 5)


def test_tf_data_reads_the_shards_and_the_manifest_counts_them(texts, tmp_path, small_chunks):
    counts = prepare(texts, tmp_path, TOKENIZER, SETTINGS, shards=5)
    actual = records_of(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert len(actual) == counts.examples == manifest["examples"] > 200
    assert manifest["documents"] == 180 and manifest["shards"] == 5
    per_shard = [len(list(group)) for group in map(_records_in, sorted(tmp_path.glob("*.tfrecord")))]
    assert max(per_shard) < 1.5 * min(per_shard)
    batch = decode(actual, 32, SETTINGS.masks.max_predictions(32))
    assert manifest["masked"] == batch["mask_weights"].sum()
    assert 0.4 < batch["nsp_labels"].mean() < 0.75  # a lone sentence must take a random partner
    token_counts = np.load(tmp_path / "token_counts.npy")
    assert token_counts.sum() == manifest["tokens"] and not token_counts[list(TOKENIZER.special_ids)].any()
    assert Tokenizer.from_folder(tmp_path).vocab == TOKENIZER.vocab


def _records_in(path):
    import tensorflow as tf

    return tf.data.TFRecordDataset(str(path)).as_numpy_iterator()


def test_much_text_goes_to_processes_that_have_tensorflow_text(texts, tmp_path):
    """In a process of its own: the one that others are forked from loads things once. It ends with the one it
    serves."""
    code = f"""if __name__ == "__main__":
        import os
        from bert_tf.pretraining.data import prepare as made
        from tests.pretraining.test_prepare import SETTINGS, TOKENIZER
        made._LARGE_TEXT_BYTES, before = 0, dict(os.environ)
        made.prepare({[str(path) for path in texts]}, {str(tmp_path / "two")!r}, TOKENIZER, SETTINGS, 3, processes=2)
        assert os.environ == before
        from multiprocessing.forkserver import _forkserver
        print(_forkserver._forkserver_pid, _forkserver._preload_modules)
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    prepare(texts, tmp_path / "one", TOKENIZER, SETTINGS, shards=3, processes=1)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    if sys.platform == "linux":
        number, loaded = done.stdout.split(maxsplit=1)
        assert "bert_tf.pretraining.data.preload" in loaded
        for _ in range(100):
            if not Path(f"/proc/{number}").exists():
                return
            time.sleep(0.1)
        pytest.fail("The process that others are forked from is still there.")


@pytest.mark.parametrize("system, expected", [("win32", 61), ("linux", 96)])
def test_windows_gets_no_more_processes_than_it_can_wait_for(monkeypatch, system, expected):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(os, "cpu_count", lambda: 96)
    assert _all_cores() == expected


def test_several_processes_give_the_same_files_as_one(texts, tmp_path, small_chunks):
    done = []
    prepare(
        texts,
        tmp_path / "one",
        TOKENIZER,
        SETTINGS,
        shards=3,
        processes=1,
        progress=lambda size, counts: done.append((size, counts.examples)),
    )
    prepare(texts, tmp_path / "two", TOKENIZER, SETTINGS, shards=3, processes=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert done == sorted(done) and len(done) > 9
    assert done[-1][0] == sum(os.path.getsize(path) for path in texts)


def test_a_seed_and_duplicates_change_the_examples_and_nothing_else(texts, tmp_path):
    def made(**settings):
        return make_examples(chunk, TOKENIZER, ExampleSettings(length=32, **settings))

    chunk = next(read_chunks(0, texts))
    assert encode(made(seed=1)[0]) == encode(made(seed=1)[0]) != encode(made(seed=2)[0])
    once, thrice = made()[1], made(duplicates=3)[1]
    assert (once.documents, once.tokens) == (thrice.documents, thrice.tokens)
    assert thrice.examples == pytest.approx(3 * once.examples, rel=0.1)


def test_an_interrupted_run_goes_on_and_ends_with_the_same_files(texts, tmp_path, small_chunks, monkeypatch):
    prepare(texts, tmp_path / "whole", TOKENIZER, SETTINGS, shards=3)
    monkeypatch.setattr(shards, "_SECONDS_BETWEEN_SAVES", -1)

    class Killed(Exception):
        pass

    for stop in (2, 5):
        calls = itertools.count()

        def progress(*_):
            if next(calls) == stop:
                # What was written after the last note of the progress: half of something.
                with open(tmp_path / "parts" / shards.shard_name(1, 3), "ab") as file:
                    file.write(b"half a rec")
                raise Killed

        with pytest.raises(Killed):
            prepare(texts, tmp_path / "parts", TOKENIZER, SETTINGS, shards=3, progress=progress)
        with pytest.raises(TextError, match="has not ended"):
            Records(tmp_path / "parts")
    later = []
    prepare(texts, tmp_path / "parts", TOKENIZER, SETTINGS, shards=3, progress=lambda *_: later.append(1))
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    # Done is done: nothing is made again.
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}
    prepare(texts, tmp_path / "parts", TOKENIZER, SETTINGS, shards=3, progress=pytest.fail)
    assert stamps == {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}


def test_a_shard_is_open_for_writing_when_it_is_synced(texts, tmp_path, monkeypatch):
    """Windows refuses to sync a file that is open for reading alone; so does writing nothing to it, everywhere."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(os.write(file, b"")))
    prepare(texts[:1], tmp_path, TOKENIZER, SETTINGS, 2, 1)
    assert len(synced) >= 4  # two shards, at the start and at the end


def test_a_finished_preparation_is_counted_again(texts, tmp_path, capsys):
    TOKENIZER.save(tmp_path / "vocab")
    output = []
    for _ in range(2):
        assert (
            main(
                [
                    "prepare",
                    "--input",
                    *map(str, texts),
                    "--output",
                    str(tmp_path / "records"),
                    "--vocab",
                    str(tmp_path / "vocab"),
                    "--length",
                    "32",
                    "--quiet",
                ]
            )
            == 0
        )
        output.append(capsys.readouterr().out)
    assert output[0] == output[1] and "180 documents" in output[0]
    first = prepare(texts, tmp_path / "one", TOKENIZER, SETTINGS)
    again = prepare(texts, tmp_path / "one", TOKENIZER, SETTINGS)
    assert again.numbers() == first.numbers() and np.array_equal(again.token_counts, first.token_counts)


@pytest.mark.parametrize("place", ["write_json", "unlink"])
def test_a_kill_at_the_very_end_leaves_whole_records(texts, tmp_path, monkeypatch, place):
    """Before the manifest, and after it but before the progress is removed."""

    class Killed(Exception):
        pass

    def kill(*_, **__):
        raise Killed

    prepare(texts, tmp_path / "whole", TOKENIZER, SETTINGS, shards=3)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        write_json, unlink = shards.write_json, Path.unlink
        if place == "unlink":
            patch.setattr(
                Path,
                "unlink",
                lambda path, **options: kill() if path.name == shards.PROGRESS else unlink(path, **options),
            )
        else:
            patch.setattr(
                shards,
                "write_json",
                lambda path, values: kill() if path.name == shards.MANIFEST else write_json(path, values),
            )
        prepare(texts, tmp_path / "parts", TOKENIZER, SETTINGS, shards=3)
    if place == "unlink":
        assert Records(tmp_path / "parts", TOKENIZER).examples > 0
    assert Tokenizer.from_folder(tmp_path / "parts").vocab == TOKENIZER.vocab
    prepare(texts, tmp_path / "parts", TOKENIZER, SETTINGS, shards=3)
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_two_preparations_in_one_folder_are_refused(texts, tmp_path, small_chunks):
    def another(*_):
        with pytest.raises(FolderInUse, match="Another `prepare` is writing to .*parts"):
            prepare(texts, tmp_path / "parts", TOKENIZER, SETTINGS, shards=3, progress=pytest.fail)
        seen.append(1)

    seen = []
    prepare(texts, tmp_path / "parts", TOKENIZER, SETTINGS, shards=3, progress=another)
    prepare(texts, tmp_path / "whole", TOKENIZER, SETTINGS, shards=3)
    assert seen and contents(tmp_path / "parts") == contents(tmp_path / "whole")


@pytest.mark.parametrize("name", ["roberta", "albert"])
def test_any_kind_of_vocabulary_makes_records_by_every_way(name, tmp_path, capsys):
    """One process, two (which pickle the tokenizer) and Beam mask the same whole words; the records can be read."""
    vocabulary = Path(__file__).parents[1] / "golden" / "family" / name
    (tmp_path / "text.txt").write_text("\n\n".join(["The unbelievable licences, works.\nShe redistributed it."] * 20))
    options = [
        "prepare",
        "--input",
        str(tmp_path / "text.txt"),
        "--vocab",
        str(vocabulary),
        "--length",
        "48",
        "--shards",
        "2",
        "--objective",
        "mlm",
        "--whole-words",
        "--quiet",
    ]
    for output, more in (
        ("one", ["--processes", "1"]),
        ("two", ["--processes", "2"]),
        ("beam", ["--runner", "DirectRunner"]),
    ):
        assert main([*options, "--output", str(tmp_path / output), *more]) == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    actual = [collections.Counter(records_of(tmp_path / output)) for output in ("one", "beam")]
    assert actual[0] == actual[1] and len(actual[0]) > 3
    from bert_tf.tokenizers import read_tokenizer

    tokenizer = read_tokenizer(tmp_path / "beam")
    batch = decode(list(actual[0]), 48, MaskSettings().max_predictions(48))
    spelled = np.array(tokenizer.spellings)[batch["mask_labels"]]
    # Whole words: what goes on a word is masked only where the piece before it is.
    positions, real = batch["mask_positions"], batch["mask_weights"] == 1
    continues_document = np.array(
        [[piece.startswith("##") and piece[-1].isalpha() for piece in row] for row in spelled]
    )
    continues_document[:, 0] = False
    follows = continues_document[:, 1:] & real[:, 1:]
    assert follows.sum() > 5
    assert np.mean((np.diff(positions, axis=1) == 1)[follows]) > 0.8  # all but the first of a sentence, in RoBERTa


def test_a_run_killed_at_any_time_goes_on(tmp_path):
    """SIGKILL to the command in mid-work; given again, it ends with the files of a whole run."""
    script = (
        "import sys; from bert_tf.pretraining.data import chunks, shards; chunks.CHUNK_CHARACTERS = 2000; "
        "shards._SECONDS_BETWEEN_SAVES = -1; from bert_tf.cli import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    TOKENIZER.save(tmp_path / "vocab")
    texts = [write_text(tmp_path / f"{number}.txt", 600, number) for number in range(3)]

    def begun():
        try:
            return '"chunks": 0,' not in (tmp_path / "killed" / "progress.json").read_text()
        except FileNotFoundError:
            return False

    def command(output):
        return [
            sys.executable,
            "-c",
            script,
            "prepare",
            "--input",
            *map(str, texts),
            "--output",
            str(output),
            "--vocab",
            str(tmp_path / "vocab"),
            "--shards",
            "3",
            "--length",
            "32",
            "--quiet",
        ]

    run = subprocess.Popen(command(tmp_path / "killed"))
    while run.poll() is None and not begun():
        time.sleep(0.001)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    for output in ("killed", "whole"):
        subprocess.run(command(tmp_path / output), check=True, stdout=subprocess.DEVNULL)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_beam_makes_the_same_examples_as_this_machine(texts, tmp_path, small_chunks):
    from bert_tf.pretraining.data.beam import run_pipeline

    packed = texts[0].parent / "0.jsonl.gz"
    lines = (json.dumps({"body": document}) for document in texts[0].read_text().split("\n\n"))
    packed.write_bytes(gzip.compress("\n".join(lines).encode()))
    files = [packed, *texts[1:]]
    settings = ExampleSettings(length=32, duplicates=2, masks=MaskSettings(ngram=2))
    here = prepare(files, tmp_path / "here", TOKENIZER, settings, shards=3, text_field="body")
    there = run_pipeline(
        [str(path) for path in files], str(tmp_path / "beam"), TOKENIZER, settings, 3, "body", "DirectRunner"
    )
    assert there.numbers() == here.numbers()
    assert collections.Counter(records_of(tmp_path / "beam")) == collections.Counter(records_of(tmp_path / "here"))
    assert sorted(contents(tmp_path / "beam")) == sorted(contents(tmp_path / "here"))
    # Beam decides which example comes into which shard, and so their sizes.
    manifest = json.loads((tmp_path / "beam" / "manifest.json").read_text())
    assert manifest.pop("sizes") == [path.stat().st_size for path in sorted((tmp_path / "beam").glob("*.tfrecord"))]
    of_here = json.loads((tmp_path / "here" / "manifest.json").read_text())
    assert manifest == {name: value for name, value in of_here.items() if name != "sizes"}
    assert Records(tmp_path / "beam", TOKENIZER).examples == there.examples
    beside = [name for name in contents(tmp_path / "here") if not name.endswith((".tfrecord", "manifest.json"))]
    assert all(json_or_bytes(tmp_path / "beam" / name) == json_or_bytes(tmp_path / "here" / name) for name in beside)
    with pytest.raises(TextError, match="holds records"):
        run_pipeline([str(texts[0])], str(tmp_path / "beam"), TOKENIZER, settings, 3, "text", "DirectRunner")


def json_or_bytes(path):
    return json.loads(path.read_text()) if path.suffix == ".json" else path.read_bytes()


@pytest.mark.usefixtures("few_updates")
def test_records_train_a_model_and_a_stopped_run_goes_on(texts, tmp_path, capsys):
    TOKENIZER.save(tmp_path / "vocab")
    assert (
        main(
            [
                "prepare",
                "--input",
                *map(str, texts),
                "--output",
                str(tmp_path / "records"),
                "--vocab",
                str(tmp_path / "vocab"),
                "--length",
                "24",
                "--objective",
                "sop",
                "--mask-rate",
                "0.2",
                "--shards",
                "4",
                "--quiet",
            ]
        )
        == 0
    )
    options = [
        "pretrain",
        "--records",
        str(tmp_path / "records"),
        "--size",
        "1x16x2",
        "--steps",
        "6",
        "--batch-size",
        "8",
        "--log-every",
        "1",
    ]
    assert main([*options, "--output", str(tmp_path / "whole")]) == 0
    assert main([*options, "--output", str(tmp_path / "parts"), "--stop-after", "2"]) == 0
    assert main([*options, "--output", str(tmp_path / "parts")]) == 0
    losses = [
        [json.loads(line)["sop_loss"] for line in open(tmp_path / run / "metrics.jsonl", encoding="utf-8")]
        for run in ("whole", "parts")
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5) and len(losses[0]) == 6
    assert "sop 0." in capsys.readouterr().out
    TOKENIZER_OTHER.save(tmp_path / "other")
    assert main([*options, "--output", str(tmp_path / "x"), "--vocab", str(tmp_path / "other")]) == 2
    assert "another vocabulary" in capsys.readouterr().err
    for option, value, recorded in (
        ("--length", "32", "24"),
        ("--mask-rate", "0.5", "0.2"),
        ("--mask-rate", "0.15", "0.2"),
        ("--objective", "mlm", "sop"),
        ("--objective", "mlm+nsp", "sop"),
    ):
        assert main([*options, "--output", str(tmp_path / "y"), option, value]) == 2
        message = capsys.readouterr().err
        assert f"{option} is {value}, and" in message and f"was prepared with {recorded}: leave it out" in message
    for option, value in (("--max-documents", "3"), ("--corpus", str(tmp_path / "corpus")), ("--field", "body")):
        assert main([*options, "--output", str(tmp_path / "y"), option, value]) == 2
        message = f"{option} needs --text; the text of {tmp_path / 'records'} is prepared already: leave it out."
        assert message in capsys.readouterr().err
    assert main([*options, "--output", str(tmp_path / "y"), "--positions", "16"]) == 2
    assert (
        f"{tmp_path / 'records'} was prepared with 24 tokens, and this model takes 16: prepare it again with "
        "--length 16 or less, or take a model with more --positions."
    ) in capsys.readouterr().err
    assert main([*options, "--output", str(tmp_path / "z"), "--length", "24", "--steps", "1"]) == 0


def test_masked_words_alone_train_a_model_without_a_next_sentence_head(texts, tmp_path, capsys):
    import bert_tf

    lines = (json.dumps({"body": document}) for path in texts for document in path.read_text().split("\n\n"))
    (tmp_path / "text.jsonl.zst").write_bytes(zstd.compress("\n".join(lines).encode()))
    TOKENIZER.save(tmp_path / "vocab")
    assert (
        main(
            [
                "pretrain",
                "--text",
                str(tmp_path / "*.zst"),
                "--field",
                "body",
                "--objective",
                "mlm",
                "--ngram",
                "2",
                "--max-predictions",
                "3",
                "--vocab",
                str(tmp_path / "vocab"),
                "--size",
                "1x16x2",
                "--steps",
                "3",
                "--batch-size",
                "8",
                "--length",
                "24",
                "--output",
                str(tmp_path / "run"),
            ]
        )
        == 0
    )
    assert "mlm 0." in capsys.readouterr().out
    assert bert_tf.load(tmp_path / "run" / "model").heads == {"mlm"}


@pytest.mark.parametrize("most", [None, 7])
def test_records_of_every_word_are_read_back(texts, tmp_path, most):
    settings = ExampleSettings("clm", 32, MaskSettings(most=most))
    counts = prepare(texts[:1], tmp_path, TOKENIZER, settings, 2, 1)
    batch, _ = next(iter(RecordsFeed(Records(tmp_path), counts.examples)))
    assert batch["mask_positions"].shape == (counts.examples, most or 30)
    assert batch["mask_weights"].sum() == counts.masked
    labels = np.take_along_axis(batch["token_ids"], batch["mask_positions"], 1)
    np.testing.assert_array_equal(labels, batch["mask_labels"])


TOKENIZER_OTHER = Tokenizer([*small_vocabulary(), "elephant"], lower_case=False)


@pytest.fixture(scope="module")
def records(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    prepare(texts, folder, TOKENIZER, SETTINGS, shards=6)
    return Records(folder, TOKENIZER)


def test_a_position_resumes_at_the_very_next_batch(records):
    run = list(itertools.islice(RecordsFeed(records, 8), 80))
    assert run[-1][1].epoch > 0
    for cut in (0, 7, 50):
        resumed = list(itertools.islice(RecordsFeed(records, 8, start=run[cut][1]), 5))
        for (a, place_a), (b, place_b) in zip(run[cut + 1 :], resumed):
            assert place_a == place_b
            assert all(np.array_equal(a[name], b[name]) for name in a)
    assert "examples-0000" in RecordsFeed(records, 8).describe(DataPosition(0, 0, 1))


def test_an_epoch_gives_nearly_every_example_once_in_another_order_than_the_next(records):
    epochs = collections.defaultdict(list)
    for batch, position in itertools.islice(RecordsFeed(records, 8), 200):
        epochs[position.epoch] += [row.tobytes() for row in batch["token_ids"]]
    assert 0.9 * records.examples < len(epochs[0]) <= records.examples
    assert len(set(epochs[0])) > 0.98 * len(epochs[0])
    assert epochs[0][:8] != epochs[1][:8] and len(set(epochs[0]) & set(epochs[1])) > 0.8 * records.examples


def test_log_frequencies_are_those_of_the_text(records):
    shares = np.exp(records.log_frequencies(TOKENIZER.vocab_size))
    assert shares.sum() == pytest.approx(1, abs=1e-5)
    assert shares[TOKENIZER.token_to_id(".")] == shares.max()


def test_what_is_wrong_with_records_is_told(records, texts, tmp_path):
    with pytest.raises(ValueError, match="too few for a batch of 100000"):
        next(iter(RecordsFeed(records, 100_000)))
    with pytest.raises(TextError, match="no prepared records"):
        Records(tmp_path)
    with pytest.raises(TextError, match="settings differs"):
        prepare(texts, records.folder, TOKENIZER, ExampleSettings(length=64), shards=6)
    shard = tmp_path / "copy" / records.shards[0].name
    shard.parent.mkdir()
    for path in records.folder.iterdir():
        (shard.parent / path.name).write_bytes(path.read_bytes())
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-3])
    for read in (Records, lambda folder: prepare(texts, folder, TOKENIZER, SETTINGS, shards=6)):
        with pytest.raises(TextError, match=f"{shard.name} has {len(whole) - 3:,} bytes and had {len(whole):,}"):
            read(shard.parent)
    manifest = json.loads((shard.parent / "manifest.json").read_text())
    assert manifest.pop("sizes") == [path.stat().st_size for path in records.shards]
    # Folders of earlier versions do not say the sizes; there it shows when the shard is read.
    (shard.parent / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(TextError, match="damaged"):
        list(itertools.islice(RecordsFeed(Records(shard.parent), 8), 80))
    shard.unlink()
    with pytest.raises(TextError, match="5 shards where its manifest says 6"):
        Records(shard.parent)
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(TextError, match="No text"):
        prepare([tmp_path / "empty.txt"], tmp_path / "none", TOKENIZER, SETTINGS)
    with pytest.raises(ValueError, match="--shards is 0"):
        prepare(texts, tmp_path / "none", TOKENIZER, SETTINGS, shards=0)


def test_an_interrupted_run_does_not_go_on_with_a_shard_that_has_lost_something(
    texts, tmp_path, small_chunks, monkeypatch
):
    monkeypatch.setattr(shards, "_SECONDS_BETWEEN_SAVES", -1)
    calls = itertools.count()

    def progress(*_):
        if next(calls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(texts, tmp_path, TOKENIZER, SETTINGS, shards=3, progress=progress)
    shard = tmp_path / shards.shard_name(1, 3)
    size = shard.stat().st_size
    shard.write_bytes(b"")
    with pytest.raises(TextError, match=f"{shard.name} has 0 bytes and had {size:,}"):
        prepare(texts, tmp_path, TOKENIZER, SETTINGS, shards=3)
    assert not shard.read_bytes()


def test_another_field_or_another_text_of_the_same_name_and_size_is_another_preparation(tmp_path):
    path = tmp_path / "text.jsonl"

    def write(word):
        lines = [{"title": "The cat.\nIt ran.", "body": f"The {word} sat on the mat.\nIt was big."} for _ in range(20)]
        path.write_text("\n".join(map(json.dumps, lines)))

    write("cat")
    prepare([path], tmp_path / "records", TOKENIZER, SETTINGS, text_field="title")
    with pytest.raises(TextError, match="another preparation .text_field differs"):
        prepare([path], tmp_path / "records", TOKENIZER, SETTINGS, text_field="body")
    prepare([path], tmp_path / "body", TOKENIZER, SETTINGS, text_field="body")
    write("dog")
    with pytest.raises(TextError, match="another preparation .file_ends differs"):
        prepare([path], tmp_path / "body", TOKENIZER, SETTINGS, text_field="body")
    # A folder of an earlier version does not say either.
    manifest = json.loads((tmp_path / "body" / "manifest.json").read_text())
    earlier = {name: value for name, value in manifest.items() if name not in ("text_field", "file_ends", "sizes")}
    (tmp_path / "body" / "manifest.json").write_text(json.dumps(earlier))
    prepare([path], tmp_path / "body", TOKENIZER, SETTINGS, text_field="body")


def test_records_of_a_tokenizer_that_cuts_otherwise_are_refused(texts, tmp_path):
    tokenizer, other = byte_level_tokenizers()
    prepare(texts[:1], tmp_path, tokenizer, SETTINGS, shards=2)
    Records(tmp_path, tokenizer)
    with pytest.raises(TextError, match="another vocabulary or tokenizer than this model's"):
        Records(tmp_path, other)
    with pytest.raises(TextError, match="another preparation .cut_signature differs"):
        prepare(texts[:1], tmp_path, other, SETTINGS, shards=2)
    # A folder of an earlier version does not say how text was cut.
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest.pop("cut_signature") == tokenizer.cut_signature
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    Records(tmp_path, other)
    prepare(texts[:1], tmp_path, other, SETTINGS, shards=2)


def test_a_run_goes_on_with_the_records_it_began_with(texts, tmp_path):
    tokenizer, other = byte_level_tokenizers()
    prepare(texts[:1], tmp_path / "records", tokenizer, SETTINGS, shards=2)
    records, args = Records(tmp_path / "records"), Namespace(objective="mlm")
    manifest = dict(records.manifest)
    save_stopped_run(tmp_path, {**manifest, "cut_signature": other.cut_signature})
    with pytest.raises(ValueError, match="text with other tokens"):
        check_run(tmp_path, args, tokenizer, records)
    del manifest["cut_signature"]  # as earlier versions saved it
    save_stopped_run(tmp_path, manifest)
    check_run(tmp_path, args, tokenizer, records)


def test_what_failed_before_its_first_chunk_is_no_reason_against_another_text(texts, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(b"The cat sat.\n\nThe dog \xe9 ran.\n" * 9)
    with pytest.raises(TextError, match="not UTF-8"):
        prepare([path], tmp_path / "records", TOKENIZER, SETTINGS, shards=5)
    path.write_text("\n".join(["The cat sat.", "It ran."] * 40))
    with pytest.raises(TextError, match="one document.*blank line.*--objective mlm"):
        prepare([path], tmp_path / "records", TOKENIZER, SETTINGS, shards=4)
    path.write_text("The cat sat.")
    with pytest.raises(TextError, match="one document"):  # and not that there is no text
        prepare([path], tmp_path / "records", TOKENIZER, SETTINGS, shards=4)
    path.write_text("\n\n".join(["The cat sat.\nIt ran."] * 40))
    counts = prepare([path], tmp_path / "records", TOKENIZER, SETTINGS, shards=3)
    assert counts.documents == 40 and Records(tmp_path / "records").examples == counts.examples
    assert len(list((tmp_path / "records").glob("*.tfrecord"))) == 3


def test_chunks_are_the_whole_text_and_the_last_is_no_lone_document(tmp_path, small_chunks):
    path = write_text(tmp_path / "text.txt", 100)
    actual = list(read_chunks(4, [path]))
    assert [(chunk.group, chunk.number) for chunk in actual] == [(4, number) for number in range(len(actual))]
    joined = "\n\n".join("\n".join(document) for chunk in actual for document in chunk.documents)
    assert joined == path.read_text() and len(actual) > 5
    assert min(len(chunk.documents) for chunk in actual) >= chunks.CHUNK_DOCUMENTS
    assert group_files([("a", 999), ("b", 5), ("c", 5), ("d", 2000)]) == [["a", "b"], ["c", "d"]]


def test_an_endless_document_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "LONGEST_CHUNK", 1000)
    (tmp_path / "long.txt").write_text("\n".join(f"This is line {number}." for number in range(1000)))
    actual = [document for chunk in read_chunks(0, [tmp_path / "long.txt"]) for document in chunk.documents]
    assert max(sum(map(len, document)) for document in actual) <= 1000
    assert sum(map(len, actual)) == 1000


def test_the_parts_of_a_cut_document_are_one_source_and_one_document(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "LONGEST_CHUNK", 1000)
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 3000)
    long = "\n".join(f"This is line {number}." for number in range(400))
    (tmp_path / "text.txt").write_text(f"The cat sat.\nIt ran.\n\n{long}\n\nThe dog ran.\nIt sat.")
    actual = list(read_chunks(0, [tmp_path / "text.txt"]))
    assert len(actual) > 1 and actual[0].sources[:3] == [0, 1, 1] and not actual[0].continues_document
    assert (
        all(chunk.sources[0] == 1 and chunk.continues_document for chunk in actual[1:]) and actual[-1].sources[-1] == 2
    )
    assert sum(make_examples(chunk, TOKENIZER, SETTINGS)[1].documents for chunk in actual) == 3


def test_a_document_without_end_is_read_in_parts(tmp_path, monkeypatch):
    """A file without a blank line, as many corpora of sentences are, is never held whole."""
    monkeypatch.setattr(chunks, "LONGEST_CHUNK", 1000)
    monkeypatch.setattr(chunks, "CHUNK_CHARACTERS", 500)
    read = 0

    class Endless(io.RawIOBase):
        """A binary file that counts what was read of it."""

        def readable(self):
            return True

        def readinto(self, buffer):
            nonlocal read
            line = b"The cat sat on the mat.\n" * (len(buffer) // 24)
            buffer[: len(line)] = line
            read += len(line)
            return len(line)

    actual = chunks.read_chunks(0, ["endless.txt"], open_file=lambda *_: io.BufferedReader(Endless(), 8192))
    first, second = next(actual), next(actual)
    assert not first.continues_document and second.continues_document and {*first.sources, *second.sources} == {0}
    assert read < 100_000


def test_a_chunk_without_words_gives_no_example():
    batch, counts = make_examples(Chunk(0, 0, [["\u200b"]]), TOKENIZER, SETTINGS)
    assert len(encode(batch)) == counts.examples == 0
