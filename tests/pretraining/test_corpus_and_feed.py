"""Text files to a tokenized corpus on disk, and batches of it in a resumable order."""

import errno
import gc
import gzip
import hashlib
import itertools
import json
import lzma
import threading
import tracemalloc
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from backports import zstd

from bert_tf.cli import main
from bert_tf.pretraining.data.corpus import (
    TokenCorpus,
    corpus_keys,
    prepare_corpus,
    tokenize_documents,
)
from bert_tf.pretraining.data.documents import TextError, find_files, read_documents, sentences
from bert_tf.pretraining.data.feed import (
    DataPosition,
    Feed,
    order_of_epoch,
    position_from_json,
    position_to_json,
    tokens_of_block,
)
from bert_tf.pretraining.objectives.masking import choose_targets
from bert_tf.pretraining.run_settings import check_run
from bert_tf.tokenizers import Tokenizer
from bert_tf.training.prefetch import prefetch
from tests.conftest import byte_level_tokenizers, save_stopped_run, small_vocabulary

TOKENIZER = Tokenizer(small_vocabulary(), lower_case=False)
TEXT = "\n\n".join(
    "\n".join(f"The {a} sat on the {b}. It ran in the park and played. She ended the war." for a in ("cat", "dog"))
    for b in ("mat", "bank", "river", "house", "park") * 6
)


@pytest.fixture(scope="module")
def text_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def corpus(text_file, tmp_path_factory):
    return prepare_corpus([text_file], TOKENIZER, tmp_path_factory.mktemp("corpus"))


def most_held(work):
    """What a call gives, and the most bytes that were allocated at once meanwhile.

    Those of other threads count too: what still makes batches for an earlier test is left to end first.
    """
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.endswith("(work)"):  # of `prefetch`
            thread.join(60)
    tracemalloc.start()
    actual = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return actual, peak


def test_archives_read_like_plain_text(text_file, tmp_path):
    plain = list(read_documents([text_file]))
    assert len(plain) == 30
    (tmp_path / "a.gz").write_bytes(gzip.compress(TEXT.encode()))
    (tmp_path / "b.xz").write_bytes(lzma.compress(TEXT.encode()))
    # Two frames one after the other, as parallel compressors write.
    half = len(TEXT) // 2
    (tmp_path / "c.zst").write_bytes(zstd.compress(TEXT[:half].encode()) + zstd.compress(TEXT[half:].encode()))
    assert list(read_documents(find_files([tmp_path / "*.gz"]))) == plain == list(read_documents([tmp_path / "b.xz"]))
    assert list(read_documents([tmp_path / "c.zst"])) == plain


@pytest.mark.parametrize("name", ["a.jsonl", "a.JSONL", "a.ndjson", "a.json", "a.jsonl.zst"])
def test_json_lines_have_a_document_a_line(name, tmp_path):
    lines = [
        json.dumps({"id": 1, "body": "One.\nTwo.\n\n Three. "}),
        "",
        json.dumps({"body": "Été\u2028x"}),
        json.dumps({"body": " "}),
    ]
    data = "\n".join(lines).encode()
    (tmp_path / name).write_bytes(zstd.compress(data) if name.endswith("zst") else data)
    assert list(read_documents([tmp_path / name], "body")) == [["One.", "Two.", "Three."], ["Été\u2028x"]]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "One."}\n')
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfOne.\n"))
    for name in ("a.jsonl", "a.txt.gz"):
        assert list(read_documents([tmp_path / name])) == [["One."]]


@pytest.mark.parametrize(
    "line, words",
    [
        ("{", "line 2: not JSON"),
        ('{"txt": "a"}', "no text in a field 'text'.*it has: txt.*--field"),
        ('["a"]', "it has: list"),
        ('{"text": 3}', "line 2: no text"),
        ('{"text": "a \\ud83d b"}', "line 2: the text is broken at character 2: U.D83D is half a surrogate pair"),
    ],
)
def test_bad_json_lines_are_named(line, words, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": "good"}\n' + line)
    with pytest.raises(TextError, match=f"bad.jsonl.*{words}"):
        list(read_documents([tmp_path / "bad.jsonl"]))


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
@pytest.mark.parametrize("before", [b"x" * 30 + b"\n", "é".encode() * 17 + b"\n"])
def test_a_bad_byte_is_told_by_its_place_in_the_file(tmp_path, pack, before, monkeypatch):
    monkeypatch.setattr("bert_tf.pretraining.data.documents._READ_AT_ONCE", 4096 + 1)  # cuts letters of two bytes
    path = tmp_path / ("bad.txt" if pack(b"") == b"" else "bad.gz")
    path.write_bytes(pack(before * 40_000 + b"caf\xe9 au lait\n" + before))
    place = f"byte {40_000 * len(before) + 3:,}, line 40,001"
    with pytest.raises(TextError, match=f"{path.name} is not UTF-8 text .{place}.; convert"):
        list(read_documents([path]))
    path.write_bytes(pack(before + "é".encode()[:1]))  # ends within a letter
    with pytest.raises(TextError, match=f"byte {len(before)}, line 2"):
        list(read_documents([path]))


@pytest.mark.parametrize("name", ["wide.txt", "wide.jsonl"])
def test_text_of_two_bytes_a_letter_is_refused(tmp_path, name):
    (tmp_path / name).write_bytes('{"text": "One."}\n'.encode() + "Two.\n".encode("utf-16-le"))
    with pytest.raises(TextError, match=f"{name}, line 2, holds NUL.*UTF-16"):
        list(read_documents([tmp_path / name]))


@pytest.mark.parametrize(
    "name, data, words",
    [
        ("bad.txt", b"caf\xe9 au lait", "UTF-8"),
        ("cut.xz", lzma.compress(TEXT.encode())[:60], "damaged"),
        ("hurt.gz", gzip.compress(TEXT.encode(), mtime=0)[:40] + bytes(200), "damaged"),
        ("cut.gz", gzip.compress(TEXT.encode(), mtime=0)[:60], "damaged"),
        ("no.gz", b"plain", "damaged"),
        ("cut.zst", zstd.compress(TEXT.encode())[:60], "damaged"),
        ("no.zst", b"plain", "damaged"),
    ],
)
def test_bad_files_are_named(tmp_path, name, data, words):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(TextError, match=f"{name}.*{words}"):
        list(read_documents([tmp_path / name]))


def test_no_such_file_and_no_text(tmp_path):
    with pytest.raises(TextError, match="nothing.txt"):
        find_files([tmp_path / "nothing.txt"])
    (tmp_path / "empty.txt").write_text("\n\n \n")
    with pytest.raises(TextError, match="No text"):
        prepare_corpus([tmp_path / "empty.txt"], TOKENIZER, tmp_path / "corpus")


def test_a_full_disk_is_said_where_a_mapped_file_cannot_be_deleted(text_file, tmp_path, monkeypatch):
    """As on Windows."""
    unlink = Path.unlink

    def refusing(path, missing_ok=False):
        if path.name == "tokens.raw":
            raise PermissionError(errno.EACCES, "The file is used by another process", str(path))
        unlink(path, missing_ok)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refusing)
        patch.setattr(np, "save", full)
        with pytest.raises(OSError, match="No space left"):
            prepare_corpus([text_file], TOKENIZER, tmp_path)
    assert len(prepare_corpus([text_file], TOKENIZER, tmp_path)) and not (tmp_path / "tokens.raw").exists()


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_a_table_is_not_read_as_plain_text(tmp_path, name):
    (tmp_path / name).write_text("text,label\nthe cat sat,1\n")
    for read in (find_files, lambda paths: list(read_documents(paths))):
        with pytest.raises(TextError, match=f"{name} is a table, .* name the column of the text with --field"):
            read([tmp_path / name])


def test_a_file_whose_name_looks_like_a_pattern_is_meant_itself(tmp_path):
    for name in ("t[1].txt", "t1.txt"):
        (tmp_path / name).write_text(name)
    assert find_files([tmp_path / "t[1].txt"]) == [tmp_path / "t[1].txt"]
    assert find_files([tmp_path / "t[1-2].txt"]) == [tmp_path / "t1.txt"]


def test_documents_come_back_sentence_by_sentence(corpus):
    assert len(corpus) == 30
    sentences = corpus.document(29)
    assert TOKENIZER.decode(sentences[0]) == "The cat sat on the park."
    assert len(sentences) == 6
    assert sum(len(s) for n in range(30) for s in corpus.document(n)) == corpus.document_tokens.sum()


def test_prepared_once_and_again_when_the_text_changes(text_file, tmp_path):
    first = prepare_corpus([text_file], TOKENIZER, tmp_path)
    stamp = (tmp_path / "tokens.npy").stat().st_mtime_ns
    prepare_corpus([text_file], TOKENIZER, tmp_path)
    assert (tmp_path / "tokens.npy").stat().st_mtime_ns == stamp
    assert len(prepare_corpus([text_file], TOKENIZER, tmp_path, max_documents=4)) == 4 < len(first)


GERMAN = "Er kam am 3. Mai nach Berlin. Der 2. Weltkrieg war vorbei."


def test_german_is_split_by_german_rules_and_is_another_corpus_than_in_english(tmp_path):
    (tmp_path / "text.txt").write_text(GERMAN)
    counts = {}
    for language in ("en", "de", "en"):
        made = prepare_corpus([tmp_path / "text.txt"], TOKENIZER, tmp_path / "corpus", language=language)
        counts[language] = len(made.document(0))
    # By eye: English rules end a sentence after "3." and after "2.", German ones know the dates.
    assert counts == {"en": 4, "de": 3}


@pytest.mark.parametrize("code", ["de", "DE", "de-AT", "de_DE"])
def test_a_language_may_be_written_in_several_ways(code):
    assert sentences(GERMAN, code)[0] == "Er kam am 3. Mai nach Berlin."


@pytest.mark.parametrize("code", ["deutsch", "", "d3"])
def test_a_language_that_is_no_code_is_refused(code, capsys):
    with pytest.raises(TextError, match="it must be a code of two or three letters, such as de"):
        sentences(GERMAN, code)
    assert main(["prepare", "--input", "a", "--output", "b", "--vocab", "c", "--language", code]) == 2
    assert "argument --language: The language is" in capsys.readouterr().err


def test_english_corpora_are_found_under_the_key_they_were_made_with(text_file):
    facts = [[text_file.name, text_file.stat().st_size]]
    before = json.dumps([facts, False, None]) + "\n".join(TOKENIZER.vocab)
    key, earlier, unsigned = corpus_keys([text_file], TOKENIZER)
    assert earlier == hashlib.sha256(before.encode()).hexdigest() and key == unsigned
    assert not {*corpus_keys([text_file], TOKENIZER, language="de")} & {*corpus_keys([text_file], TOKENIZER)}
    assert not {*corpus_keys([text_file], TOKENIZER, text_field="de")} & {
        *corpus_keys([text_file], TOKENIZER, language="de")
    }


def test_a_tokenizer_with_other_settings_makes_another_corpus(tmp_path):
    path, made = tmp_path / "text.txt", []
    path.write_text("a \u00e9. \u4eba\u4eba.", encoding="utf-8")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "e", "\u00e9", "\u4eba", "##\u4eba", "."]
    for settings in ({}, {"strip_accents": False}, {"tokenize_chinese_chars": False}, {"strip_accents": True}):
        tokenizer = Tokenizer(words, lower_case=True, **settings)
        corpus = prepare_corpus([path], tokenizer, tmp_path / "corpus")
        made.append([words[token] for sentence in corpus.document(0) for token in sentence])
    stripped = ["a", "e", ".", "\u4eba", "\u4eba", "."]
    assert made == [stripped, ["a", "\u00e9", *stripped[2:]], [*stripped[:4], "##\u4eba", "."], stripped]


def test_a_byte_level_tokenizer_that_cuts_otherwise_makes_another_corpus(tmp_path):
    path, made = tmp_path / "text.txt", []
    path.write_text("the work")
    for tokenizer in byte_level_tokenizers():
        corpus = prepare_corpus([path], tokenizer, tmp_path / "corpus")
        made.append([tokenizer.vocab[token] for token in corpus.document(0)[0]])
        assert made[-1] == list(tokenizer.tokenize("the work").tokens)
        prepare_corpus([path], tokenizer, tmp_path / "corpus", progress=pytest.fail)
    assert made[0] != made[1]


def test_a_run_goes_on_only_with_a_tokenizer_that_cuts_alike(text_file, tmp_path):
    tokenizer, other = byte_level_tokenizers()
    args = Namespace(objective="mlm", text=[str(text_file)], max_documents=None, field="text", language="en")
    key, *earlier = corpus_keys([text_file], tokenizer)
    for saved in earlier:  # they do not say how text was cut
        save_stopped_run(tmp_path, {"key": saved})
        check_run(tmp_path, args, other)
    save_stopped_run(tmp_path, {"key": key})
    check_run(tmp_path, args, tokenizer)
    with pytest.raises(ValueError, match="text with other tokens"):
        check_run(tmp_path, args, other)


@pytest.mark.parametrize("manifest", ["", "[]", '{"key"'])
def test_a_manifest_that_cannot_be_read_is_made_anew(text_file, tmp_path, manifest):
    prepare_corpus([text_file], TOKENIZER, tmp_path)
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(TextError, match="not a prepared corpus"):
        TokenCorpus(tmp_path)
    assert len(prepare_corpus([text_file], TOKENIZER, tmp_path)) == 30


def test_another_text_of_the_same_name_and_size_is_another_corpus(tmp_path):
    path = tmp_path / "text.txt"
    for first, last in (("cat", "dog"), ("dog", "dog"), ("dog", "cat")):
        path.write_text(f"The {first} ran.\n\nThe {last} sat.")
        corpus = prepare_corpus([path], TOKENIZER, tmp_path / "corpus")
        actual = [TOKENIZER.decode(corpus.document(number)[0]) for number in (0, 1)]
        assert actual == [f"The {first} ran.", f"The {last} sat."]


@pytest.mark.parametrize("tokenizer", [TOKENIZER, byte_level_tokenizers()[0]])
def test_a_corpus_of_an_earlier_version_is_not_made_anew(text_file, tmp_path, tokenizer):
    prepare_corpus([text_file], tokenizer, tmp_path)
    for earlier in corpus_keys([text_file], tokenizer)[1:]:
        noted = json.loads((tmp_path / "manifest.json").read_text())
        noted["key"] = earlier
        (tmp_path / "manifest.json").write_text(json.dumps(noted))
        prepare_corpus([text_file], tokenizer, tmp_path, progress=pytest.fail)


def test_documents_are_tokenized_by_their_length_and_not_by_their_number(text_file, tmp_path, monkeypatch):
    def seen(documents, *rest):
        sizes.append([sum(map(len, document)) for document in documents])
        return tokenize_documents(documents, *rest)

    sizes = []
    monkeypatch.setattr("bert_tf.pretraining.data.corpus.tokenize_documents", seen)
    monkeypatch.setattr("bert_tf.pretraining.data.corpus._BATCH_CHARACTERS", 1000)
    assert len(prepare_corpus([text_file], TOKENIZER, tmp_path)) == 30
    assert sum(map(len, sizes)) == 30 and len(sizes) > 3
    assert all(sum(batch[:-1]) < 1000 for batch in sizes) and all(sum(batch) >= 1000 for batch in sizes[:-1])


def test_a_corpus_in_use_stays_as_it_was_when_its_folder_gets_another(text_file, tmp_path):
    first = prepare_corpus([text_file], TOKENIZER, tmp_path / "corpus")
    before = [sentence.tolist() for number in range(30) for sentence in first.document(number)]
    (tmp_path / "other.txt").write_text("A dog ran.\n\nIt ate a carrot.")
    assert len(prepare_corpus([tmp_path / "other.txt"], TOKENIZER, tmp_path / "corpus")) == 2
    assert [sentence.tolist() for number in range(30) for sentence in first.document(number)] == before
    assert sorted(path.name for path in (tmp_path / "corpus").iterdir()) == [
        ".lock",
        "document_ends.npy",
        "manifest.json",
        "sentence_ends.npy",
        "tokens.npy",
    ]


def test_without_a_manifest_half_written_files_are_no_corpus(text_file, tmp_path, monkeypatch):
    prepare_corpus([text_file], TOKENIZER, tmp_path)
    (tmp_path / "other.txt").write_text("A dog ran.\n\nIt ate a carrot.")

    def full(path, _):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr("bert_tf.pretraining.data.corpus.write_json", full)
        prepare_corpus([tmp_path / "other.txt"], TOKENIZER, tmp_path)
    with pytest.raises(TextError, match="not a prepared corpus"):
        TokenCorpus(tmp_path)
    assert len(prepare_corpus([text_file], TOKENIZER, tmp_path)) == 30


def test_of_two_starts_at_once_one_tokenizes_and_the_other_waits(text_file, tmp_path):
    second, tokenized = [], []

    def other():
        second.append(prepare_corpus([text_file], TOKENIZER, tmp_path, progress=lambda *_: tokenized.append(1)))

    def begun(*_):
        thread.start()
        thread.join(0.3)
        assert not second

    thread = threading.Thread(target=other)
    first = prepare_corpus([text_file], TOKENIZER, tmp_path, progress=begun)
    thread.join(30)
    assert len(second[0]) == len(first) == 30 and not tokenized


def test_a_folder_that_is_no_corpus_is_refused(tmp_path):
    with pytest.raises(TextError, match="not a prepared corpus"):
        TokenCorpus(tmp_path)


def test_log_frequencies_are_those_of_the_text(corpus):
    shares = np.exp(corpus.log_frequencies(TOKENIZER.vocab_size))
    assert shares.sum() == pytest.approx(1, abs=1e-5)
    assert shares[TOKENIZER.token_to_id("the")] > shares[TOKENIZER.token_to_id("money")] > 0


def test_tokens_are_counted_a_part_at_a_time(corpus, tmp_path, monkeypatch):
    whole = corpus.log_frequencies(TOKENIZER.vocab_size)
    monkeypatch.setattr("bert_tf.pretraining.data.corpus._COUNTED_AT_ONCE", 1000)
    np.testing.assert_array_equal(corpus.log_frequencies(TOKENIZER.vocab_size), whole)
    np.save(tmp_path / "tokens.npy", np.ones(500_000, np.uint16))
    for name in ("sentence_ends", "document_ends"):
        np.save(tmp_path / f"{name}.npy", np.array([500_000]))
    (tmp_path / "manifest.json").write_text("{}")
    large = TokenCorpus(tmp_path)
    _, peak = most_held(lambda: large.log_frequencies(TOKENIZER.vocab_size))
    assert peak < 500_000


def feed(corpus, **settings):
    return Feed(corpus, TOKENIZER, **{"batch_size": 4, "length": 32, "block_tokens": 400, **settings})


def test_a_position_resumes_at_the_very_next_batch(corpus):
    run = list(itertools.islice(feed(corpus), 40))
    assert run[-1][1].epoch > 0
    for cut in (0, 7, 20, 33):
        resumed = list(itertools.islice(feed(corpus, start=run[cut][1]), 5))
        for (a, place_a), (b, place_b) in zip(run[cut + 1 :], resumed):
            assert place_a == place_b
            assert all(np.array_equal(a[name], b[name]) for name in a)


def test_blocks_are_whole_documents_of_so_many_tokens(corpus):
    lengths = [sum(map(len, corpus.document(number))) for number in range(len(corpus))]
    assert corpus.document_tokens.tolist() == lengths
    for wanted in (1, 100, 400, 10**6):
        blocks = feed(corpus, block_tokens=wanted)._blocks(3)
        assert sorted(np.concatenate(blocks)) == list(range(30))
        sizes = [sum(lengths[number] for number in block) for block in blocks]
        assert len(blocks) == 1 or min(sizes) >= wanted
        assert max(sizes) < 2 * wanted + 2 * max(lengths) or len(blocks) == 1


def test_short_documents_fill_large_batches(tmp_path):
    """512 of them have not 1,024 pairs; 4,096 have several thousand."""
    (tmp_path / "text.txt").write_text("\n\n".join(["The cat sat.\nIt ran.\nShe played."] * 4096))
    corpus = prepare_corpus([tmp_path / "text.txt"], TOKENIZER, tmp_path / "corpus")
    places = [position for _, position in itertools.islice(Feed(corpus, TOKENIZER, 1024, 32), 7)]
    assert places[:4] == [DataPosition(0, 0, number) for number in (1, 2, 3, 4)]


def test_a_block_has_many_batches_and_a_bound():
    assert tokens_of_block(32, 128) == 1 << 20
    assert tokens_of_block(1024, 512) == 16 * 1024 * 512
    assert tokens_of_block(16_384, 512) == 1 << 26
    assert tokens_of_block(65_536, 512) == 4 * 65_536 * 512


def test_a_batch_is_masked_when_its_turn_comes(corpus, monkeypatch):
    def seen(*rest):
        calls.append(1)
        return choose_targets(*rest)

    calls = []
    monkeypatch.setattr("bert_tf.pretraining.data.feed.choose_targets", seen)
    items = iter(feed(corpus, block_tokens=10**6))
    next(items)
    assert len(calls) == 1
    next(iter(feed(corpus, block_tokens=10**6, start=DataPosition(0, 0, 5))))
    assert len(calls) == 2


def test_of_a_long_document_only_what_is_asked_for_is_read(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(["The cat sat on the mat."] * 20_000) + "\n\nShe ran.")
    corpus = prepare_corpus([tmp_path / "text.txt"], TOKENIZER, tmp_path / "corpus")

    def read():
        document = corpus.document(0)
        assert TOKENIZER.decode(document[19_999]) == TOKENIZER.decode(document[-1]) == "The cat sat on the mat."
        return document

    document, peak = most_held(read)
    assert len(document) == 20_000 and peak < 20_000
    with pytest.raises(IndexError):
        document[20_000]


def test_a_saved_position_is_read_as_what_it_meant():
    division = {"seed": 1, "block_tokens": 400, "batch_size": 8}
    saved = json.loads(json.dumps(position_to_json(DataPosition(2, 3, 4), division)))
    assert position_from_json(saved, division) == (DataPosition(2, 3, 4), "")
    place, messages = position_from_json(saved, {**division, "batch_size": 16})
    assert place == DataPosition(2, 4) and "another size; the next block" in messages
    for other in ({"seed": 2}, {"block_tokens": 500}, {"block_tokens": 500, "batch_size": 16}):
        place, messages = position_from_json(saved, {**division, **other})
        assert place == DataPosition(3) and "its next epoch begins" in messages
    # A list is of an earlier version, in which the text came in another order.
    assert position_from_json([2, 3, 4], division)[0] == DataPosition(3)


def test_the_documents_of_an_epoch_are_not_in_the_order_of_the_pairs_of_its_first_block():
    """With one row a document, which documents are left out would otherwise be far from even."""
    for seed, epoch in itertools.product(range(3), range(3)):
        of_pairs = np.random.default_rng((seed, epoch, 0)).permutation(33)
        assert (order_of_epoch(seed, epoch, 33) == of_pairs).sum() < 10
    fixed = [(np.argsort(order_of_epoch(0, epoch, 33)) == np.arange(33)).sum() for epoch in range(400)]
    assert np.mean(fixed) == pytest.approx(1, abs=0.2)


def test_masks_are_new_in_every_epoch(corpus):
    batches = {}
    for batch, position in itertools.islice(feed(corpus), 40):
        batches.setdefault(position.epoch, []).append(batch["token_ids"])
    assert not np.array_equal(batches[0][0], batches[1][0])


@pytest.mark.parametrize("objective", ["mlm", "sop"])
def test_other_objectives_are_fed_the_same_way(corpus, objective):
    run = list(itertools.islice(feed(corpus, objective=objective), 12))
    (batch, _), place = run[8], run[7][1]
    resumed, _ = next(iter(feed(corpus, objective=objective, start=place)))
    assert all(np.array_equal(batch[name], resumed[name]) for name in batch)
    assert batch["segment_ids"].any() == (objective == "sop") == any(b["nsp_labels"].any() for b, _ in run)


def test_too_little_text_for_a_batch_says_so(corpus):
    with pytest.raises(ValueError, match="too small.*batch of 5000"):
        next(iter(feed(corpus, batch_size=5000)))


def test_prefetch_keeps_order_and_hands_over_errors():
    assert list(prefetch(range(50), depth=2)) == list(range(50))

    def broken():
        yield 1
        raise OSError("disk")

    items = prefetch(broken())
    assert next(items) == 1
    with pytest.raises(OSError, match="disk"):
        next(items)


def test_prefetch_ends_with_its_reader():
    closed = threading.Event()

    def source():
        try:
            yield from itertools.count()
        finally:
            closed.set()

    items = prefetch(source(), depth=2)
    assert next(items) == 0
    items.close()
    assert closed.wait(60)


def test_position_is_a_plain_triple():
    assert DataPosition(*[1, 2, 3]) == DataPosition(epoch=1, block=2, batch=3)


def test_a_damaged_corpus_is_made_again_from_the_text(text_file, tmp_path, capsys):
    folder = tmp_path / "corpus"
    whole = prepare_corpus([text_file], TOKENIZER, folder)
    before = [sentence.tolist() for number in range(len(whole)) for sentence in whole.document(number)]
    content = bytearray((folder / "tokens.npy").read_bytes())
    content[-1] ^= 1
    (folder / "tokens.npy").write_bytes(content)
    again = prepare_corpus([text_file], TOKENIZER, folder)
    assert "tokens.npy is damaged" in (output := capsys.readouterr().err) and "The text is tokenized again." in output
    assert [sentence.tolist() for number in range(len(again)) for sentence in again.document(number)] == before
