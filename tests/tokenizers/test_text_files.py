"""WordPiece folders follow their own files: another pipeline, other options, added tokens; equal to Transformers."""

import copy
import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as RustTokenizer

from bert_tf.checkpoints.model_checksums import VOCABULARY_FILES
from bert_tf.tokenizers import Tokenizer, VocabularyError, read_tokenizer

HARD = json.loads((Path(__file__).parents[1] / "golden" / "tokenizer.json").read_text())["texts"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789'-.,;:!?[]/_#@éüöï上海中国"
PIECES = [*SPECIAL, "[E1]", "the", "hello", "world", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
MARKED = [
    "a [E1] b",
    "x[E1]y",
    "[e1] [E2] [ E1 ]",
    "<ent> <ENT>x</ent>",
    "Hello zzz, ZZZ zzzz",
    "[MASK] [E1][E2]",
    "Ünï",
]


def rust(normalizer, pre_tokenizer, **options):
    tokenizer = RustTokenizer(
        models.WordPiece({token: index for index, token in enumerate(PIECES)}, unk_token="[UNK]", **options)
    )
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.add_special_tokens(SPECIAL)
    return tokenizer


def bert_rust(**options):
    return rust(normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer(), **options)


def quick_tour():
    """The pipeline of the quick tour of the library tokenizers."""
    steps = [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]
    return rust(normalizers.Sequence(steps), pre_tokenizers.Whitespace())


OTHERS = {
    "quick-tour": quick_tour,
    "no normalizer": lambda: rust(None, pre_tokenizers.BertPreTokenizer()),
    "spaces": lambda: rust(normalizers.BertNormalizer(lowercase=False), pre_tokenizers.WhitespaceSplit()),
    "no clean text": lambda: rust(normalizers.BertNormalizer(clean_text=False), pre_tokenizers.BertPreTokenizer()),
    "short words": lambda: bert_rust(max_input_chars_per_word=4),
}


def check_equal(tokenizer, reference, texts=(*HARD, *MARKED)):
    for text in texts:
        wanted = reference(text, add_special_tokens=False, return_offsets_mapping=True)
        tokens = tokenizer.tokenize(text)
        assert tokens.ids.tolist() == tokenizer.batch_ids([text])[0].tolist() == wanted["input_ids"], text
        assert [start for start, _ in tokens.offsets] == [start for start, _ in wanted["offset_mapping"]], text
        assert list(tokens.word_ids) == wanted.word_ids(), text
        assert len(tokens.tokens) == len(tokens.ids)


@pytest.mark.parametrize("with_vocabulary", [False, True])
@pytest.mark.parametrize("name", OTHERS)
def test_another_pipeline_is_followed(tmp_path, name, with_vocabulary):
    from transformers import PreTrainedTokenizerFast

    OTHERS[name]().save(str(tmp_path / "tokenizer.json"))
    if with_vocabulary:
        (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer.pipeline is not None and tokenizer.vocab == tuple(PIECES)
    assert tokenizer.lower_case == (name in ("quick-tour", "no clean text", "short words"))
    reference = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    check_equal(tokenizer, reference)


def test_berts_own_pipeline_keeps_the_fast_path(tmp_path):
    bert_rust().save(str(tmp_path / "tokenizer.json"))
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer.pipeline is None
    assert (
        tokenizer.batch_ids(["hello world"], path="fast")[0].tolist() == tokenizer.tokenize("hello world").ids.tolist()
    )


def test_lower_case_that_stands_only_in_tokenizer_json_counts(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*PIECES, "A"]) + "\n")
    assert not read_tokenizer(tmp_path).lower_case
    for lower_case in (True, False):
        tokenizer = rust(normalizers.BertNormalizer(lowercase=lower_case), pre_tokenizers.BertPreTokenizer())
        tokenizer.save(str(tmp_path / "tokenizer.json"))
        assert read_tokenizer(tmp_path).lower_case == lower_case
        assert read_tokenizer(tmp_path).pipeline is None
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    assert read_tokenizer(tmp_path).lower_case  # Transformers' settings count more
    other = {"do_lower_case": True, "tokenizer_class": "PreTrainedTokenizerFast"}  # a class that has no such setting
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(other))
    assert not read_tokenizer(tmp_path).lower_case


def test_spaces_after_a_token_of_the_vocabulary_do_not_count(tmp_path):
    from transformers import BertTokenizer

    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "hello ", "world\t", "a b"]) + "\n")
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer.vocab[5:] == ("hello", "world", "a b")
    check_equal(tokenizer, BertTokenizer.from_pretrained(tmp_path), ["hello world"])


@pytest.mark.parametrize("file", ["tokenizer_config.json", "config.json"])
def test_a_tokenizer_of_another_kind_is_refused_and_not_guessed(tmp_path, file):
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    (tmp_path / file).write_text('{"tokenizer_class": "BertJapaneseTokenizer"}')
    with pytest.raises(VocabularyError, match="names the tokenizer BertJapaneseTokenizer, whose files are not read"):
        read_tokenizer(tmp_path)
    bert_rust().save(str(tmp_path / "tokenizer.json"))
    assert read_tokenizer(tmp_path).vocab == tuple(PIECES)


def test_added_tokens_of_tokenizer_json_stay_whole(tmp_path):
    from transformers import BertTokenizer

    tokenizer = bert_rust()
    tokenizer.add_special_tokens(["[E1]", AddedToken("[E2]", lstrip=True)])
    tokenizer.add_tokens(["zzz", AddedToken("<ENT>", normalized=False, single_word=True)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    read = read_tokenizer(tmp_path)
    assert read.vocab[len(PIECES) :] == ("[E2]", "zzz", "<ENT>")
    assert {read.token_to_id("[E1]"), read.token_to_id("[E2]")} < read.special_ids
    assert read.tokenize("a [E1] b").tokens == ("a", "[E1]", "b") and read.decode([5], skip_special_tokens=True) == ""
    check_equal(read, BertTokenizer.from_pretrained(tmp_path))


ADDING_FILES = {
    "within": {"tokenizer_config.json": {"additional_special_tokens": ["[E1]"]}},
    "beyond": {"special_tokens_map.json": {"additional_special_tokens": ["[E1]", "[E2]"]}},
    "added_tokens.json": {"added_tokens.json": {"<ent>": len(PIECES) + 1, "zzz": len(PIECES)}},
    "decoder": {
        "tokenizer_config.json": {
            "added_tokens_decoder": {
                "5": {"content": "[E1]", "special": True, "normalized": False},
                str(len(PIECES)): {"content": "zzz", "special": False, "normalized": True},
            }
        }
    },
    "new name": {"tokenizer_config.json": {"extra_special_tokens": ["[E2]"]}},
}


@pytest.mark.parametrize("kind", ADDING_FILES)
def test_tokens_that_other_files_add_stay_whole_and_are_saved_with_berts_packing(tmp_path, kind):
    from transformers import AutoTokenizer, BertTokenizer

    (tmp_path / "vocab.txt").write_text("\n".join(PIECES) + "\n")
    for name, values in ADDING_FILES[kind].items():
        (tmp_path / name).write_text(json.dumps(values))
    reference, tokenizer = BertTokenizer.from_pretrained(tmp_path), read_tokenizer(tmp_path)
    check_equal(tokenizer, reference)
    assert tokenizer.vocab_size == len(reference)
    tokenizer.save(tmp_path / "again")
    saved = AutoTokenizer.from_pretrained(tmp_path / "again")
    for texts in (["hello [E1] world"], ["hello", "the world"]):
        expected = reference(*texts)
        assert saved(*texts).input_ids == expected.input_ids == tokenizer.encode(*texts).token_ids.tolist()
        assert saved(*texts).token_type_ids == expected.token_type_ids


def test_special_tokens_of_other_names(tmp_path):
    from transformers import BertTokenizer

    names = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    (tmp_path / "vocab.txt").write_text("\n".join([*names, *PIECES[5:]]) + "\n")
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), names))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**roles, "do_lower_case": True}))
    tokenizer, reference = read_tokenizer(tmp_path), BertTokenizer.from_pretrained(tmp_path)
    check_equal(tokenizer, reference, [*HARD, "a<mask>b <s> [MASK]"])
    assert tokenizer.encode("a", "b").token_ids.tolist() == reference("a", "b").input_ids
    tokenizer.save(tmp_path / "again")
    assert read_tokenizer(tmp_path / "again").special_tokens == tuple(names)


@pytest.mark.parametrize("name", [*OTHERS, "added"])
def test_saved_read_again_and_copied(tmp_path, name):
    from transformers import AutoTokenizer

    made = OTHERS.get(name, bert_rust)()
    if name == "added":
        made.add_tokens(["[E1]", "zzz"])
    (tmp_path / "first").mkdir()
    made.save(str(tmp_path / "first" / "tokenizer.json"))
    tokenizer = read_tokenizer(tmp_path / "first")
    tokenizer.save(tmp_path / "again", model_max_length=40)
    (tmp_path / "again" / "config.json").write_text('{"model_type": "bert"}')
    for again in (read_tokenizer(tmp_path / "again"), copy.deepcopy(tokenizer)):
        assert again.cuts_alike(tokenizer) and again.lower_case == tokenizer.lower_case
        assert again.special_ids == tokenizer.special_ids
    check_equal(tokenizer, AutoTokenizer.from_pretrained(tmp_path / "again"))
    assert {path.name for path in (tmp_path / "again").iterdir()} - {"config.json"} <= set(VOCABULARY_FILES) | {
        "tokenizer_config.json"
    }
    Tokenizer(tokenizer.vocab, lower_case=True).save(tmp_path / "again")
    assert read_tokenizer(tmp_path / "again").pipeline is None  # no file of the earlier save is left


def test_options_of_wordpiece_make_another_tokenizer_of_one_vocabulary():
    tokenizer = Tokenizer(PIECES, lower_case=True)
    assert tokenizer.cuts_alike(Tokenizer(PIECES, lower_case=True, strip_accents=True))
    for other in ({"lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False}):
        assert not tokenizer.cuts_alike(Tokenizer(PIECES, **{"lower_case": True, **other}))


def test_rows_without_a_token_are_named_and_never_found(tokenizers):
    tokenizer = tokenizers["cased"]
    padded = tokenizer.with_rows(tokenizer.vocab_size + 4)
    last = padded.vocab[-1]
    assert padded.vocab_size == len(padded.spellings) == 29000 and padded.token_count == 28996
    assert last not in padded and padded.id_to_token(28999) == last and padded.decode([28999]) == ""
    assert padded.tokenize(last).ids.tolist() == tokenizer.tokenize(last).ids.tolist()
    assert copy.deepcopy(padded).vocab == padded.vocab and tokenizer.vocab_size == 28996


PACKINGS = {
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "two separators": ("[CLS] $A [SEP]", "[CLS] $A [SEP] [SEP] $B [SEP]"),
    "one segment": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]"),
}


@pytest.mark.parametrize("name", PACKINGS)
def test_pairs_are_packed_as_the_file_says(tmp_path, name):
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    made = bert_rust()
    single, pair = PACKINGS[name]
    made.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.save(str(tmp_path / "tokenizer.json"))
    reference = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    read_tokenizer(tmp_path).save(tmp_path / "again")
    for tokenizer in (read_tokenizer(tmp_path), read_tokenizer(tmp_path / "again")):
        for texts in (("hello", "the world"), ("hello",)):
            ours, wanted = tokenizer.encode(*texts), reference(*texts, return_token_type_ids=True)
            assert ours.token_ids.tolist() == wanted["input_ids"]
            assert ours.segment_ids.tolist() == wanted["token_type_ids"]
