"""Text files to a tokenized corpus on disk, and batches of it in a resumable order."""

import gzip
import hashlib
import itertools
import json
import lzma
import threading
import tracemalloc

import numpy as np
import pytest
from backports import zstd

from bert_tf.pretrain.corpus import TokenCorpus, corpus_key, prepare_corpus
from bert_tf.pretrain.documents import TextError, find_files, read_documents
from bert_tf.pretrain.feed import Feed, Position, prefetch
from bert_tf.text import Tokenizer
from tests.conftest import small_vocabulary

TOKENIZER = Tokenizer(small_vocabulary(), lower_case=False)
TEXT = "\n\n".join(
    "\n".join(f"The {a} sat on the {b}. It ran in the park and played. She ended the war." for a in ("cat", "dog"))
    for b in ("mat", "bank", "river", "house", "park") * 6)


@pytest.fixture(scope="module")
def text_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def corpus(text_file, tmp_path_factory):
    return prepare_corpus([text_file], TOKENIZER, tmp_path_factory.mktemp("corpus"))


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


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst"])
def test_json_lines_have_a_document_a_line(name, tmp_path):
    lines = [json.dumps({"id": 1, "body": "One.\nTwo.\n\n Three. "}), "", json.dumps({"body": "Été\u2028x"}),
             json.dumps({"body": " "})]
    data = "\n".join(lines).encode()
    (tmp_path / name).write_bytes(zstd.compress(data) if name.endswith("zst") else data)
    assert list(read_documents([tmp_path / name], "body")) == [["One.", "Two.", "Three."], ["Été\u2028x"]]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "One."}\n')
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfOne.\n"))
    for name in ("a.jsonl", "a.txt.gz"):
        assert list(read_documents([tmp_path / name])) == [["One."]]


@pytest.mark.parametrize("line, words", [
    ("{", "line 2: not JSON"), ('{"txt": "a"}', "no text in a field 'text'.*it has: txt.*--field"),
    ('["a"]', "it has: list"), ('{"text": 3}', "line 2: no text")])
def test_bad_json_lines_are_named(line, words, tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": "good"}\n' + line)
    with pytest.raises(TextError, match=f"bad.jsonl.*{words}"):
        list(read_documents([tmp_path / "bad.jsonl"]))


@pytest.mark.parametrize("name, data, words", [
    ("bad.txt", b"caf\xe9 au lait", "UTF-8"), ("cut.xz", lzma.compress(TEXT.encode())[:60], "damaged"),
    ("hurt.gz", gzip.compress(TEXT.encode(), mtime=0)[:40] + bytes(200), "damaged"),
    ("cut.gz", gzip.compress(TEXT.encode())[:60], "damaged"), ("no.gz", b"plain", "damaged"),
    ("cut.zst", zstd.compress(TEXT.encode())[:60], "damaged"), ("no.zst", b"plain", "damaged")])
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


def test_documents_come_back_sentence_by_sentence(corpus):
    assert len(corpus) == 30
    sentences = corpus.document(29)
    assert TOKENIZER.decode(sentences[0]) == "The cat sat on the park."
    assert len(sentences) == 6
    assert sum(len(s) for n in range(30) for s in corpus.document(n)) == corpus.num_tokens


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


def test_english_corpora_are_found_under_the_key_they_were_made_with(text_file):
    facts = [[text_file.name, text_file.stat().st_size]]
    before = json.dumps([facts, False, None]) + "\n".join(TOKENIZER.vocab)
    assert corpus_key([text_file], TOKENIZER) == hashlib.sha256(before.encode()).hexdigest()
    assert corpus_key([text_file], TOKENIZER, language="de") != corpus_key([text_file], TOKENIZER)
    assert corpus_key([text_file], TOKENIZER, text_field="de") != corpus_key([text_file], TOKENIZER, language="de")


@pytest.mark.parametrize("manifest", ["", "[]", '{"key"'])
def test_a_manifest_that_cannot_be_read_is_made_anew(text_file, tmp_path, manifest):
    prepare_corpus([text_file], TOKENIZER, tmp_path)
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(TextError, match="not a prepared corpus"):
        TokenCorpus(tmp_path)
    assert len(prepare_corpus([text_file], TOKENIZER, tmp_path)) == 30


def test_a_corpus_in_use_stays_as_it_was_when_its_folder_gets_another(text_file, tmp_path):
    first = prepare_corpus([text_file], TOKENIZER, tmp_path / "corpus")
    before = [sentence.tolist() for number in range(30) for sentence in first.document(number)]
    (tmp_path / "other.txt").write_text("A dog ran.\n\nIt ate a carrot.")
    assert len(prepare_corpus([tmp_path / "other.txt"], TOKENIZER, tmp_path / "corpus")) == 2
    assert [sentence.tolist() for number in range(30) for sentence in first.document(number)] == before
    assert sorted(path.name for path in (tmp_path / "corpus").iterdir()) == [
        ".lock", "document_ends.npy", "manifest.json", "sentence_ends.npy", "tokens.npy"]


def test_without_a_manifest_half_written_files_are_no_corpus(text_file, tmp_path, monkeypatch):
    prepare_corpus([text_file], TOKENIZER, tmp_path)
    (tmp_path / "other.txt").write_text("A dog ran.\n\nIt ate a carrot.")

    def full(path, _):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr("bert_tf.pretrain.corpus.write_json", full)
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
    monkeypatch.setattr("bert_tf.pretrain.corpus._COUNTED_AT_ONCE", 1000)
    np.testing.assert_array_equal(corpus.log_frequencies(TOKENIZER.vocab_size), whole)
    np.save(tmp_path / "tokens.npy", np.ones(500_000, np.uint16))
    for name in ("sentence_ends", "document_ends"):
        np.save(tmp_path / f"{name}.npy", np.array([500_000]))
    (tmp_path / "manifest.json").write_text("{}")
    large = TokenCorpus(tmp_path)
    tracemalloc.start()
    large.log_frequencies(TOKENIZER.vocab_size)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500_000


def feed(corpus, **settings):
    return Feed(corpus, TOKENIZER, **{"batch_size": 4, "length": 32, "block_documents": 8, **settings})


def test_a_position_resumes_at_the_very_next_batch(corpus):
    run = list(itertools.islice(feed(corpus), 40))
    assert run[-1][1].epoch > 0
    for cut in (0, 7, 20, 33):
        resumed = list(itertools.islice(feed(corpus, start=run[cut][1]), 5))
        for (a, place_a), (b, place_b) in zip(run[cut + 1:], resumed):
            assert place_a == place_b
            assert all(np.array_equal(a[name], b[name]) for name in a)


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
    assert closed.wait(10)


def test_position_is_a_plain_triple():
    assert Position(*[1, 2, 3]) == Position(epoch=1, block=2, batch=3)
