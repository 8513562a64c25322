"""The byte-level and the SentencePiece tokenizer: equal to Transformers', readable, with the user's own offsets."""

import copy
import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bert_tf.inference.mask_positions import resolve_masks
from bert_tf.inference.words import words_of
from bert_tf.tokenizers import (
    ByteLevelTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
    VocabularyError,
    read_tokenizer,
)
from bert_tf.tokenizers.rust_backed import RustBackedTokenizer
from tests.conftest import small_disk

FAMILY = Path(__file__).parents[1] / "golden" / "family"
GOLDEN = json.loads((FAMILY / "tokenizers.json").read_text())
NAMES = ("roberta", "albert", "xlm-roberta", "camembert", "deberta")
PIECES = ("albert", "xlm-roberta", "camembert", "deberta")
# What RobertaTokenizer makes of a mask read from vocab.json; released tokenizer.json files take the space along.
SPACE_BEFORE_MASK = [text for text in GOLDEN["texts"] if " <mask>" in text]


@pytest.fixture(scope="module", params=NAMES)
def read(request):
    return request.param, read_tokenizer(FAMILY / request.param)


def test_kinds_of_folders():
    assert isinstance(read_tokenizer(FAMILY / "roberta"), ByteLevelTokenizer)
    assert isinstance(read_tokenizer(FAMILY / "albert"), SentencePieceTokenizer)
    assert isinstance(read_tokenizer(FAMILY / "distilbert"), Tokenizer)


def test_ids_equal_transformers(read):
    name, tokenizer = read
    for text, wanted in zip(GOLDEN["texts"], GOLDEN[name]["texts"], strict=True):
        if name in ("albert", "camembert", "deberta") or text not in SPACE_BEFORE_MASK:
            assert tokenizer.tokenize(text).ids.tolist() == wanted["ids"], text
            assert tokenizer.batch_ids([text])[0].tolist() == wanted["ids"], text


def test_words_of_the_byte_level_tokenizer_equal_transformers():
    tokenizer = read_tokenizer(FAMILY / "roberta")
    for text, wanted in zip(GOLDEN["texts"], GOLDEN["roberta"]["texts"], strict=True):
        if text not in SPACE_BEFORE_MASK:
            assert list(tokenizer.tokenize(text).word_ids) == wanted["words"], text


@pytest.mark.parametrize("name", PIECES)
def test_words_of_pieces_are_transformers_parted_at_marks(name):
    from benchmarks.tokenizer_parity import same_words

    tokenizer = read_tokenizer(FAMILY / name)
    for text, wanted in zip(GOLDEN["texts"], GOLDEN[name]["texts"], strict=True):
        if name == "xlm-roberta" and text in SPACE_BEFORE_MASK:
            continue
        assert same_words(text, tokenizer.tokenize(text), wanted["words"]), text
    joined = dataclasses.replace(tokenizer.tokenize("a work"), word_ids=(0, 0))
    assert not same_words("a work", joined, [0, 1])
    parted = dataclasses.replace(tokenizer.tokenize("works"), word_ids=(0, 1))
    assert len(parted.ids) == 2 and not same_words("works", parted, [0, 0])


def test_a_mask_after_a_space_equals_transformers_with_the_released_mask():
    """The released tokenizer.json takes the space before the mask along; golden files were made without one."""
    import transformers

    mask = transformers.AddedToken("<mask>", lstrip=True, special=True)
    reference = transformers.RobertaTokenizer.from_pretrained(FAMILY / "roberta", mask_token=mask)
    tokenizer = read_tokenizer(FAMILY / "roberta")
    assert SPACE_BEFORE_MASK
    for text in [*SPACE_BEFORE_MASK, "  <mask>", "the<mask> <mask>."]:
        wanted = reference(text, add_special_tokens=False, return_offsets_mapping=True)
        tokens = tokenizer.tokenize(text)
        assert tokens.ids.tolist() == tokenizer.batch_ids([text])[0].tolist() == wanted["input_ids"], text
        assert list(tokens.word_ids) == wanted.word_ids() and list(tokens.offsets) == wanted["offset_mapping"], text


def test_offsets_are_those_of_transformers_without_spaces(read):
    name, tokenizer = read
    for text, wanted in zip(GOLDEN["texts"], GOLDEN[name]["texts"], strict=True):
        if text in SPACE_BEFORE_MASK:
            continue
        for (start, end), (their_start, their_end) in zip(tokenizer.tokenize(text).offsets, wanted["offsets"]):
            assert text[start:end].strip().startswith(text[their_start:their_end].strip()), text


def test_pairs_equal_transformers(read):
    name, tokenizer = read
    for (a, b, most), wanted in zip(GOLDEN["pairs"], GOLDEN[name]["pairs"], strict=True):
        encoding = tokenizer.encode(a, b, most)
        assert encoding.token_ids.tolist() == wanted["ids"]
        assert encoding.segment_ids.tolist() == wanted["segments"]
        assert (
            len(
                {
                    len(field)
                    for field in (
                        encoding.tokens,
                        encoding.offsets,
                        encoding.word_ids,
                        encoding.sources,
                        encoding.token_ids,
                    )
                }
            )
            == 1
        )


def test_roberta_puts_two_separators_between_the_texts():
    encoding = read_tokenizer(FAMILY / "roberta").encode("a", "b")
    assert encoding.tokens == ("<s>", "a", "</s>", "</s>", "b", "</s>")
    assert encoding.sources == (None, "a", None, None, "b", None) and not encoding.segment_ids.any()


def test_pieces_are_readable_and_each_another(read):
    _, tokenizer = read
    assert len(set(tokenizer.vocab)) == tokenizer.vocab_size
    assert not any("Ã" in token for token in tokenizer.vocab if len(token) > 1)
    assert all(tokenizer.token_to_id(token) == index for index, token in enumerate(tokenizer.vocab))


def test_bytes_are_shown_as_their_letters():
    tokenizer = read_tokenizer(FAMILY / "roberta")
    assert tokenizer.show("cafÃ©") == "café" and tokenizer.show("ĠParis") == " Paris"
    assert tokenizer.show("ðŁĺ") == "\\xf0\\x9f\\x98"  # three of the four bytes of an emoji
    assert tokenizer.show("Ċ") == "\\n"


def test_spellings_are_berts():
    tokenizer = read_tokenizer(FAMILY / "roberta")
    spellings = dict(zip(tokenizer.vocab, tokenizer.spellings))
    assert spellings[" the"] == "the" and spellings["ing"] == "##ing" and spellings["<mask>"] == "<mask>"


def test_offsets_point_into_the_users_text():
    text = "The work, ünd « the » license"
    for name in NAMES:
        tokens = read_tokenizer(FAMILY / name).tokenize(text)
        spans = [text[start:end] for start, end in tokens.offsets]
        assert all(span == span.strip() for span in spans)
        covered = {place for start, end in tokens.offsets for place in range(start, end)}
        assert {place for place, character in enumerate(text) if character != " "} <= covered
        assert list(tokens.word_ids) == sorted(tokens.word_ids)


def words_in(text, tokenizer):
    return [word.text for word in words_of(tokenizer.encode(text), text)]


@pytest.mark.parametrize("name", PIECES)
def test_a_word_keeps_the_marks_that_the_tokenizer_composes_or_drops(name):
    text = "cafe\u0301 हिन्दी ভালো works"
    assert words_in(text, read_tokenizer(FAMILY / name)) == text.split()


def test_a_word_keeps_its_marks_and_leaves_the_space_before_it_in_modernbert_too():
    text = "cafe\u0301 x e\u0301t, 中"
    tokenizer = read_tokenizer(FAMILY.parent / "modernbert")
    assert "Ġ" in tokenizer.tokenize(text).tokens
    assert words_in(text, tokenizer) == ["cafe\u0301", "x", "e\u0301t", ",", "中"]
    assert words_in("a   x", tokenizer) == ["a", "   ", "x"], "a run of spaces is a word of its own"


def test_a_byte_pair_encoding_of_pieces_is_read_as_pieces_and_not_as_bytes(tmp_path):
    """The form of mmBERT's tokenizer.json, which is Gemma's."""
    names = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<0xC3>", "<0xA9>", *"▁isnat.5", "▁i", "▁is", "at", "na"]
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    special = [{"id": index, "content": name, **added} for index, name in enumerate(names[:5])]
    pair = [("SpecialToken", "<bos>"), ("Sequence", "A"), ("SpecialToken", "<eos>"), ("Sequence", "B")]
    template = [{kind: {"id": name, "type_id": 0}} for kind, name in (*pair, ("SpecialToken", "<eos>"))]
    settings = {
        "version": "1.0",
        "added_tokens": special,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template[:3],
            "pair": template,
            "special_tokens": {
                name: {"id": name, "ids": [index], "tokens": [name]} for index, name in enumerate(names[:5])
            },
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {name: index for index, name in enumerate(names)},
            "merges": [["▁", "i"], ["▁i", "s"], ["a", "t"], ["n", "a"]],
        },
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(settings))
    tokenizer, text = read_tokenizer(tmp_path), "sat is é at 5."
    tokens = tokenizer.tokenize(text)
    assert tokens.tokens == ("s", "at", " is", "▁", "<0xC3>", "<0xA9>", "▁", "at", "▁", "5", ".")
    assert tokens.word_ids == (0, 0, 1, 2, 2, 2, 3, 3, 4, 4, 5)
    assert [text[slice(*span)] for span in tokens.offsets][:5] == ["s", "at", "is", "é", "é"]
    assert words_in(text, tokenizer) == ["sat", "is", "é", "at", "5", "."]
    spelled = dict(zip(tokenizer.vocab, tokenizer.spellings, strict=True))
    assert (spelled[" is"], spelled["at"], spelled["<mask>"]) == ("is", "##at", "<mask>")
    assert not tokenizer.lower_case and (tokenizer.separators_between, tokenizer.second_segment) == (1, 0)
    assert tokenizer.decode(tokens.ids) == text

    tokenizer.save(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    assert saved["tokenizer_class"] == "PreTrainedTokenizerFast" and "do_lower_case" not in saved
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {"tokenizer.json", "tokenizer_config.json"}
    again = read_tokenizer(tmp_path / "saved")
    assert type(again) is type(tokenizer) and again.special_tokens == tokenizer.special_tokens
    assert again.tokenize(text).tokens == tokens.tokens and again.vocab == tokenizer.vocab


def test_tokens_with_the_names_of_steps_say_nothing_about_the_case():
    folder = FAMILY / "roberta"
    tokenizer = read_tokenizer(folder).with_words(["Lowercase", "StripAccents"])
    assert not tokenizer.lower_case and tokenizer.tokenize("Lowercase").tokens == ("Lowercase",)
    albert = read_tokenizer(FAMILY / "albert")
    assert albert.lower_case and albert.with_words(["Lowercase"]).lower_case


def test_the_mask_takes_the_space_before_it_along():
    tokens = read_tokenizer(FAMILY / "roberta").tokenize("the <mask>.")
    assert tokens.tokens[-2:] == ("<mask>", ".") and tokens.offsets[-2] == (4, 10)


def test_a_punctuation_mark_is_a_word_of_its_own():
    text = "a work, (the license)."
    tokens = read_tokenizer(FAMILY / "albert").tokenize(text)
    spans = {}
    for number, (start, end) in zip(tokens.word_ids, tokens.offsets):
        spans[number] = (spans.get(number, (start,))[0], end)
    words = [text[start:end] for start, end in spans.values()]
    assert words == ["a", "work", ",", "(", "the", "license", ")", "."]


def test_an_ideograph_is_a_word_of_its_own_as_in_bert():
    from benchmarks.tokenizer_parity import same_words

    def with_ideographs(settings):
        vocabulary = settings["model"]["vocab"]
        vocabulary[10:14] = [["▁", -3.0], ["我", -3.0], ["爱", -3.0], ["你好", -3.0]]

    text = "the 我爱你好,work"
    for name in ("xlm-roberta", "deberta"):
        tokenizer = changed(read_tokenizer(FAMILY / name), with_ideographs)
        assert words_in(text, tokenizer) == ["the", "我", "爱", "你好", ",", "work"]
        # Of the two words in one piece the second keeps its number: other tokenizers count it.
        assert list(dict.fromkeys(tokenizer.tokenize(text).word_ids)) == [0, 1, 2, 3, 5, 6]
        encoding = tokenizer.encode(text)
        (position,) = resolve_masks(encoding, text, None, "爱", "word", tokenizer)
        assert encoding.tokens[position] == "爱"
        tokens = tokenizer.tokenize("我爱")
        assert len(set(tokens.word_ids)) == 2 and same_words("我爱", tokens, [0] * len(tokens))


def test_decoded_text(read):
    name, tokenizer = read
    text = "the license of the work"
    assert tokenizer.decode(tokenizer.encode(text).token_ids, skip_special_tokens=True) == text


def test_saved_and_read_again_and_sent_to_a_process(read, tmp_path):
    name, tokenizer = read
    tokenizer.save(tmp_path)
    for again in (read_tokenizer(tmp_path), copy.deepcopy(tokenizer)):
        assert type(again) is type(tokenizer) and again.vocab == tokenizer.vocab
        assert again.special_tokens == tokenizer.special_tokens
        for text in GOLDEN["texts"]:
            assert np.array_equal(again.tokenize(text).ids, tokenizer.tokenize(text).ids)


@pytest.mark.parametrize("files", ["vocab.json", "tokenizer.json"])
def test_a_space_before_the_text_is_kept_when_read_and_saved(files, tmp_path):
    import transformers

    for name in ("vocab.json", "merges.txt"):
        shutil.copy(FAMILY / "roberta" / name, tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"add_prefix_space": true}')
    if files == "tokenizer.json":
        transformers.RobertaTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
    tokenizer = read_tokenizer(tmp_path)
    tokenizer.save(tmp_path / "again")
    for folder in (tmp_path, tmp_path / "again"):
        reference = transformers.RobertaTokenizer.from_pretrained(folder)
        for text in ("the work", " the work", "<s>a b"):
            wanted = reference(text, add_special_tokens=False, return_offsets_mapping=True)
            tokens = read_tokenizer(folder).tokenize(text)
            assert tokens.ids.tolist() == tokenizer.tokenize(text).ids.tolist() == wanted["input_ids"], text
            for span, theirs in zip(tokens.offsets, wanted["offset_mapping"], strict=True):
                assert text[slice(*span)] == text[slice(*theirs)].strip()


@pytest.mark.parametrize("named", ["RobertaTokenizer", "PreTrainedTokenizerFast", None])
@pytest.mark.parametrize("in_pipeline", [False, True])
@pytest.mark.parametrize("in_settings", [False, True, None])
def test_the_class_that_is_named_decides_on_the_space_before_the_text(named, in_pipeline, in_settings, tmp_path):
    from transformers import AutoTokenizer

    rust = read_tokenizer(FAMILY / "roberta").with_prefix_space(in_pipeline)
    rust.save(tmp_path)
    settings = {"tokenizer_class": named, "add_prefix_space": in_settings}
    written = {name: value for name, value in settings.items() if value is not None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(written))
    (tmp_path / "config.json").write_text('{"model_type": "roberta"}')
    expected = AutoTokenizer.from_pretrained(tmp_path)("the work").input_ids
    assert read_tokenizer(tmp_path).encode("the work").token_ids.tolist() == expected


def test_a_byte_pair_encoding_of_letters_is_refused(tmp_path):
    tokens = ["<pad>", "<unk>", "<s>", "</s>", "<mask>", "a", "b</w>", "ab</w>"]
    (tmp_path / "vocab.json").write_text(json.dumps({token: index for index, token in enumerate(tokens)}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    with pytest.raises(VocabularyError, match="is no byte-level vocabulary"):
        read_tokenizer(tmp_path)


def test_a_cased_albert_is_cased_in_transformers_too(tmp_path):
    from transformers import AutoTokenizer

    shutil.copy(FAMILY / "albert" / "spiece.model", tmp_path)
    settings = {"tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": True}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = read_tokenizer(tmp_path)
    tokenizer.save(tmp_path / "again")
    (tmp_path / "again" / "config.json").write_text('{"model_type": "albert"}')
    saved = AutoTokenizer.from_pretrained(tmp_path / "again")
    for text in ("The Work", "café", "A"):
        assert saved(text).input_ids == tokenizer.encode(text).token_ids.tolist(), text


@pytest.mark.parametrize("pipeline", [False, True])
@pytest.mark.parametrize("name", ["roberta", "albert", "xlm-roberta", "camembert"])
@pytest.mark.parametrize("file", ["added_tokens.json", "tokenizer_config.json"])
def test_tokens_that_files_beside_the_pieces_add_stay_whole(name, file, pipeline, tmp_path):
    import transformers

    if pipeline:
        read_tokenizer(FAMILY / name).save(tmp_path)
    for path in (FAMILY / name).glob("*"):
        if path.suffix != ".safetensors" and not pipeline:
            shutil.copy(path, tmp_path)
    rows = read_tokenizer(tmp_path).vocab_size
    values = {"<e1>": rows, "Zürich": rows + 1} if file == "added_tokens.json" else {}
    (tmp_path / file).write_text(json.dumps(values or {"extra_special_tokens": ["<e1>", "Zürich"]}))
    tokenizer = read_tokenizer(tmp_path)
    reference = getattr(transformers, tokenizer.transformers_class).from_pretrained(tmp_path)
    assert tokenizer.vocab_size == len(reference) == rows + 2
    assert (tokenizer.token_to_id("<e1>") in tokenizer.special_ids) == (not values)
    for text in ("the <e1> work", "in Zürich<e1>x", "Zürich"):
        assert tokenizer.tokenize(text).ids.tolist() == reference(text, add_special_tokens=False).input_ids, text
    tokenizer.save(tmp_path / "again")
    assert read_tokenizer(tmp_path / "again").vocab == tokenizer.vocab


def test_an_added_token_with_another_id_than_the_next_is_refused(tmp_path):
    shutil.copy(FAMILY / "albert" / "spiece.model", tmp_path)
    (tmp_path / "added_tokens.json").write_text('{"<e1>": 400}')
    with pytest.raises(VocabularyError, match="add '<e1>' with the id 400, but the next id is 300"):
        read_tokenizer(tmp_path)


def test_googles_file_name_of_the_pieces(tmp_path):
    shutil.copy(FAMILY / "albert" / "spiece.model", tmp_path / "30k-clean.model")
    assert isinstance(read_tokenizer(tmp_path), SentencePieceTokenizer)


@pytest.mark.parametrize(
    "files",
    [
        {"spiece.model": b"not a model"},
        {"tokenizer.json": b'{"model": {"type": "BPE"}}'},
        {"vocab.json": b'{"a": 0}', "merges.txt": b"#version\n"},
    ],
)
def test_files_that_are_none_are_refused(files, tmp_path):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(VocabularyError):
        read_tokenizer(tmp_path)


@pytest.mark.parametrize("member", ["roberta", "albert", "electra-generator"])
def test_a_vocabulary_that_finds_no_room_leaves_the_one_before(member, tmp_path):
    tokenizer = read_tokenizer(FAMILY / member)
    tokenizer.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with small_disk(10), pytest.raises(OSError) as error:
        tokenizer.save(tmp_path)
    assert error.value.filename.startswith(str(tmp_path)) and "/." not in error.value.filename
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_byte_pairs_that_find_no_room_leave_those_before(tmp_path, monkeypatch):
    """There is room for tokenizer.json and not for vocab.json."""
    tokenizer = read_tokenizer(FAMILY / "roberta")
    tokenizer.save(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(RustBackedTokenizer, "save", lambda *_: None)
    with small_disk(10), pytest.raises(OSError) as error:
        tokenizer.save(tmp_path)
    assert error.value.filename == str(tmp_path / "vocab.json")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_byte_pairs_are_written_as_the_tokenizers_library_writes_them(tmp_path):
    tokenizer = read_tokenizer(FAMILY / "roberta")
    tokenizer.save(tmp_path / "ours")
    (tmp_path / "theirs").mkdir()
    written = tokenizer._rust.model.save(str(tmp_path / "theirs"))
    assert sorted(Path(path).name for path in written) == ["merges.txt", "vocab.json"]
    for path in map(Path, written):
        assert (tmp_path / "ours" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["xlm-roberta", "camembert"])
def test_transformers_file_of_pieces_is_read_as_the_model_is(name, tmp_path):
    """tokenizer.json alone, with and without the settings beside it, gives the ids of sentencepiece.bpe.model."""
    import transformers

    kind = {"xlm-roberta": transformers.XLMRobertaTokenizer, "camembert": transformers.CamembertTokenizer}[name]
    reference, own = kind.from_pretrained(FAMILY / name), read_tokenizer(FAMILY / name)
    reference.save_pretrained(tmp_path)
    for _ in range(2):
        tokenizer = read_tokenizer(tmp_path)
        assert type(tokenizer) is type(own) and tokenizer.vocab == own.vocab
        for text in ("The <mask> sat.", "Ünïcödé 😀 ½ ﬁ", "the license of the work"):
            assert tokenizer.tokenize(text).ids.tolist() == reference(text, add_special_tokens=False).input_ids
        assert tokenizer.encode("a", "b").token_ids.tolist() == reference("a", "b").input_ids
        (tmp_path / "tokenizer_config.json").unlink(missing_ok=True)


def changed(tokenizer, change):
    """The tokenizer after a change of its JSON."""
    settings = json.loads(tokenizer._rust.to_str())
    change(settings)
    return type(tokenizer)(json.dumps(settings), tokenizer.special_tokens)


def test_the_signature_does_not_depend_on_the_files(read, tmp_path):
    name, tokenizer = read
    tokenizer.save(tmp_path / "saved")
    (tmp_path / "alone").mkdir()
    shutil.copy(tmp_path / "saved" / "tokenizer.json", tmp_path / "alone")
    for again in (read_tokenizer(tmp_path / "saved"), read_tokenizer(tmp_path / "alone"), copy.deepcopy(tokenizer)):
        assert again.cuts_alike(tokenizer) and again.cut_signature == tokenizer.cut_signature
    assert tokenizer.with_rows(tokenizer.vocab_size + 3).cut_signature == tokenizer.cut_signature
    assert read_tokenizer(FAMILY / "distilbert").cut_signature is None


@pytest.mark.parametrize("name", ["roberta", "xlm-roberta"])
def test_transformers_file_of_the_same_tokenizer_has_the_same_signature(name, tmp_path):
    import transformers

    tokenizer = read_tokenizer(FAMILY / name)
    mask = transformers.AddedToken(tokenizer.mask_token, lstrip=True, special=True)  # as released
    kind = getattr(transformers, tokenizer.transformers_class)
    kind.from_pretrained(FAMILY / name, mask_token=mask).save_pretrained(tmp_path)
    assert read_tokenizer(tmp_path).cuts_alike(tokenizer)


@pytest.mark.parametrize("name", ["roberta", "albert"])
def test_what_does_not_cut_text_leaves_the_signature(name):
    def change(settings):
        settings |= {"decoder": None, "post_processor": None}
        settings["truncation"] = {"direction": "Right", "max_length": 9, "strategy": "LongestFirst", "stride": 0}
        if name == "roberta":
            settings["pre_tokenizer"]["trim_offsets"] = not settings["pre_tokenizer"]["trim_offsets"]

    tokenizer = read_tokenizer(FAMILY / name)
    other = changed(tokenizer, change)
    assert other._rust.to_str() != tokenizer._rust.to_str() and other.cuts_alike(tokenizer)


OTHER_CUTS = {
    "merges": ("roberta", lambda settings: settings["model"]["merges"].reverse()),
    "space before": ("roberta", lambda settings: settings["pre_tokenizer"].update(add_prefix_space=True)),
    "normalizer": ("roberta", lambda settings: settings.update(normalizer={"type": "NFC"})),
    "scores": ("albert", lambda settings: settings["model"]["vocab"][9].__setitem__(1, -1.5)),
    "accents": ("albert", lambda settings: settings["normalizer"]["normalizers"].pop(3)),
    "replaced": ("albert", lambda settings: settings["normalizer"]["normalizers"][0].update(content="-")),
    "added token": ("albert", lambda settings: settings["added_tokens"][4].update(lstrip=False)),
}


@pytest.mark.parametrize("kind", OTHER_CUTS)
def test_tokenizers_of_one_vocabulary_that_cut_otherwise_are_not_alike(kind):
    name, change = OTHER_CUTS[kind]
    tokenizer = read_tokenizer(FAMILY / name)
    other = changed(tokenizer, change)
    assert other.vocab == tokenizer.vocab and other.cut_signature != tokenizer.cut_signature
    assert not other.cuts_alike(tokenizer)
