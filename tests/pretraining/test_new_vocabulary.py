"""`vocab`: a trained vocabulary that the tokenizer and Transformers read alike."""

import re

import pytest
from tokenizers import BertWordPieceTokenizer

from bert_tf.cli import main
from bert_tf.pretraining.data.documents import TextError
from bert_tf.pretraining.data.train_vocabulary import train_vocabulary
from bert_tf.tokenizers import Tokenizer

TEXTS = [
    "The Café played; the players replayed the game, playing in Málaga.",
    "They run and ran, running the runner's last run: 1234 and 42!",
    "日本語 is written with 語 and 日.",
] * 20
UNSEEN = ["A player reruns the Café game.", "Zebra 日本 ☃ running-replay 4321"]


@pytest.mark.parametrize("cased", [False, True])
def test_it_is_read_back_and_cuts_words_as_the_library_does(tmp_path, cased):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(TEXTS), encoding="utf-8")
    command = ["vocab", "--input", str(path), "--output", str(tmp_path / "vocab"), "--size", "260", "--quiet"]
    assert main(command + ["--cased"] * cased) == 0
    tokenizer = Tokenizer.from_folder(tmp_path / "vocab")
    assert tokenizer.lower_case is not cased and tokenizer.vocab_size <= 260
    library = BertWordPieceTokenizer(str(tmp_path / "vocab" / "vocab.txt"), lowercase=not cased)
    for text in [*TEXTS[:3], *UNSEEN]:
        assert list(tokenizer.tokenize(text).tokens) == library.encode(text, add_special_tokens=False).tokens
    assert ("Café" if cased else "cafe") in "".join(tokenizer.tokenize("Café").tokens).replace("##", "")
    assert len(tokenizer.tokenize("running").tokens) < len("running")
    assert tokenizer.unk_id not in tokenizer.tokenize(" ".join(TEXTS[:3])).ids


def test_the_special_tokens_stand_where_the_released_models_have_them():
    vocabulary = train_vocabulary(lambda: TEXTS, 300)
    assert [vocabulary.index(token) for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")] == [
        0,
        100,
        101,
        102,
        103,
    ]
    assert vocabulary[1:100] == tuple(f"[unused{number}]" for number in range(99))
    assert len(set(vocabulary)) == len(vocabulary)
    assert train_vocabulary(lambda: TEXTS, 200, unused=0)[:5] == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def test_the_same_text_gives_the_same_vocabulary_and_rare_words_stay_in_pieces():
    assert train_vocabulary(lambda: TEXTS, 300) == train_vocabulary(lambda: TEXTS, 300)
    rare = train_vocabulary(lambda: TEXTS + ["xylophone"], 5000, min_frequency=2)
    assert "xylophone" not in rare and "playing" in rare
    assert "xylophone" in train_vocabulary(lambda: TEXTS + ["xylophone"], 5000, min_frequency=1)


CHINESE = [chr(0x4E00 + number) for number in range(3000)]


def _made(tmp_path, text, capsys, *options):
    """(vocabulary, what the command said) of a text."""
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    folder = tmp_path / f"vocab-{len(list(tmp_path.iterdir()))}"
    assert main(["vocab", "--input", str(tmp_path / "text.txt"), "--output", str(folder), "--quiet", *options]) == 0
    return set((folder / "vocab.txt").read_text(encoding="utf-8").split("\n")), capsys.readouterr().out


def test_a_folder_that_holds_a_vocabulary_is_left_as_it_is(tmp_path, capsys):
    _made(tmp_path, "the cat sat on the mat", capsys, "--size", "200")
    (folder,) = tmp_path.glob("vocab-*")
    before = (folder / "vocab.txt").read_bytes()
    assert main(["vocab", "--input", str(tmp_path / "text.txt"), "--output", str(folder), "--size", "210"]) == 2
    assert "already exists and is not empty" in capsys.readouterr().err
    assert (folder / "vocab.txt").read_bytes() == before


def test_every_character_of_a_language_of_thousands_is_kept(tmp_path, capsys):
    vocabulary, output = _made(tmp_path, "".join(CHINESE) * 2, capsys, "--size", "21128")
    assert vocabulary > set(CHINESE) and "left out" not in output
    assert not any(f"##{letter}" in vocabulary for letter in CHINESE)  # each is a word of its own


def test_the_alphabet_is_as_large_as_asked_and_what_is_left_out_is_told(tmp_path, capsys):
    text = "".join(letter * (2 if number < 1000 else 3) for number, letter in enumerate(CHINESE))
    vocabulary, output = _made(tmp_path, text, capsys, "--size", "21128", "--alphabet", "2000")
    assert vocabulary & set(CHINESE) == set(CHINESE[1000:])
    assert "1,000 characters are left out, 2,000 times in the text, most often '一'." in output
    assert "[UNK]; --alphabet N keeps more." in output


def test_letters_that_are_too_rare_are_told_with_the_option_that_keeps_them(tmp_path, capsys):
    _, output = _made(tmp_path, "the cat sat on the mat\nq", capsys, "--size", "200")
    assert "they occur fewer than 2 times, so a lower --min-frequency or --alphabet N keeps more." in output
    vocabulary, output = _made(tmp_path, "the cat sat on the mat\nq", capsys, "--size", "200", "--min-frequency", "1")
    assert "q" in vocabulary and "left out" not in output


def test_characters_that_are_rare_or_have_no_room_are_left_out(tmp_path, capsys):
    word = "thecatsat" * 5 + " "
    often = word * 25_000
    vocabulary, output = _made(tmp_path, often + "日 語 日", capsys, "--min-frequency", "1")
    # Of 1.1 million characters one is rarer than one in a million, two are not.
    assert "日" in vocabulary and "語" not in vocabulary and "1 character is left out" in output
    vocabulary, output = _made(tmp_path, "".join(CHINESE) * 2 + "".join(CHINESE[:500]), capsys, "--size", "1000")
    assert vocabulary & set(CHINESE) == set(CHINESE[:500]) and "2,500 characters are left out" in output


def test_what_cannot_be_trained_is_told(tmp_path, capsys):
    with pytest.raises(TextError, match="no text"):
        train_vocabulary(lambda: [])
    with pytest.raises(ValueError, match="--size is 120, but"):
        train_vocabulary(lambda: TEXTS, 120)
    with pytest.raises(ValueError, match="--size is 200, but.*or a lower --alphabet"):
        train_vocabulary(lambda: CHINESE, 200, alphabet=1000)
    with pytest.raises(ValueError, match="--size is 20, but .* give at least that") as error:
        train_vocabulary(lambda: TEXTS, 20)
    enough = int(re.search(r"alone are (\d+)", str(error.value))[1])  # with the letters that fit into half of it
    assert len(train_vocabulary(lambda: TEXTS, enough)) == enough
    with pytest.raises(ValueError, match=f"alone are {enough}"):
        train_vocabulary(lambda: TEXTS, enough - 1)
    with pytest.raises(ValueError, match="--alphabet is 0"):
        train_vocabulary(lambda: TEXTS, 300, alphabet=0)
    assert main(["vocab", "--input", str(tmp_path / "none"), "--output", str(tmp_path)]) == 2
    assert "none" in capsys.readouterr().err
