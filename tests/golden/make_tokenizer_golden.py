"""Make tokenizer.json: what Transformers' BertTokenizer says about hard strings, alone and in pairs.

Run from the repository's root, with the development requirements installed:

    python tests/golden/make_tokenizer_golden.py
"""

import json
from pathlib import Path

import transformers

ROOT = Path(__file__).resolve().parents[2]
MODELS = {"cased": "bert-base-cased-embedded", "uncased": "bert-small-uncased-embedded"}

TEXTS = [
    "",
    " ",
    "\t\r\n",
    "Hello, world!",
    "don't  stop-and-go; it's 3.14% (e.g. £5)…",
    "snake_case @user #tag a/b\\c",
    "Shanghai is a city in [MASK].",
    "[MASK]",
    "foo[MASK]bar",
    "[mask] [Mask] [ MASK ] [MASK",
    "[MASK][MASK]",
    "one [SEP] two [CLS] three [PAD] four [UNK] five",
    "[SEP]",
    "##ing ## # un##able",
    "[unused1] [unused99]",
    # CJK, kana, Hangul, Thai, Devanagari
    "上海是一个城市。",
    "I live in 東京都 now",
    "中a文b字",
    "日本語のテキスト、カタカナ",
    "한국어 문장입니다",
    "ภาษาไทย",
    "हिन्दी भाषा",
    "𠀀𪚥 rare",
    "㐀䶵 豈",
    "あﾞ が",
    "ｆｕｌｌ　ｗｉｄｔｈ，１２３",
    # accents, composed and not; case that changes length
    "café naïve Zürich",
    "cafe\u0301 nai\u0308ve Zu\u0308rich",
    "e\u0301\u0302x \u0301 \u0301start end\u0301",
    "Ångström Å \u212b",
    "İstanbul ISTANBUL ı",
    "straße STRASSE ẞ",
    "ΣΊΣΥΦΟΣ σς",
    "ﬁne ﬂow ǅ ŉ",
    "Việt Nam tiếng Việt",
    "x² ½ № ™ ª º",
    # control, format and zero-width characters, odd spaces
    "a\u0000b \u0007c",
    "tab\tnew\nline\rret\x0bvt\x0cff",
    "zero\u200bwidth\u200cnon\u200djoin\ufeffer \u2060x",
    "soft\u00adhyphen",
    "a\u00a0b\u2003c\u3000d\u202fe\u1680f",
    "line\u2028para\u2029next\u0085",
    "bad \ufffd char",
    "\x7f\x80\x9f",
    "\u200e\u200f only marks",
    # emoji and other planes
    "I ❤️ you 😀😀",
    "👨‍👩‍👧‍👦 family",
    "👍🏽 ok 🇫🇷",
    "a😀b",
    "𝒜𝓫𝔠 math",
    "\U000e0041tag",
    # right to left
    "שלום עולם",
    "مرحبا بالعالم، كيف الحال؟",
    "mixed שָׁלוֹם and اَلْعَرَبِيَّة text",
    # long words
    "a" * 100,
    "a" * 101,
    "b" * 200 + " after",
    "é" * 100,
    "é" * 101,
    "word" * 50 + "-" + "tail" * 25,
    "-" * 130,
    "中" * 120,
    "https://example.org/a/very/long/path?with=query&and=" + "x" * 120,
    "antidisestablishmentarianism Donaudampfschiff",
    "“quoted” ‘single’ «guillemets» – — ― ‐ • ′ €5 − 3",
    "$+<=>^`|~ ¡¿ § ¶ · ° ×",
    "1,000,000.00 12:30 A.M. U.S.A.",
]

PAIRS = [
    ("The man went to the store.", "He bought a gallon of milk.", 512),
    ("The man went to the store.", "He bought a gallon of milk.", 12),
    ("The man went to the store.", "He bought a gallon of milk.", 11),
    ("one two three four five six seven eight", "nine ten", 9),
    ("one two", "three four five six seven eight nine ten", 9),
    ("one two three four five", "six seven eight nine ten", 8),
    ("one two three four five six", "six seven eight nine ten", 8),
    ("one two three", "four five six", 3),
    ("one two three", "", 5),
    ("", "one two three", 5),
    ("", "", 3),
    ("a single text that is a little too long", None, 6),
    ("fits", None, 3),
    ("", None, 2),
    ("long text", None, 2),
]


def main() -> None:
    """Write tests/golden/tokenizer.json."""
    golden = {"transformers": transformers.__version__, "texts": TEXTS, "pairs": PAIRS}
    for name, folder in MODELS.items():
        tokenizer = transformers.BertTokenizer.from_pretrained(ROOT / "assets" / "models" / folder)
        golden[name] = {
            "texts": [single(tokenizer, text) for text in TEXTS],
            "pairs": [pair(tokenizer, *row) for row in PAIRS],
        }
    lines = json.dumps(golden, ensure_ascii=True, separators=(",", ":")).replace('"ids"', '\n"ids"')
    Path(__file__).with_name("tokenizer.json").write_text(lines + "\n", encoding="ascii")


def single(tokenizer, text: str) -> dict:
    """Ids, offsets and word ids of one text without special tokens."""
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    return {"ids": encoding.input_ids, "offsets": encoding.offset_mapping, "words": encoding.word_ids()}


def pair(tokenizer, text_a: str, text_b: str | None, max_length: int) -> dict:
    """Ids and segments of a packed pair, cut longest-first."""
    encoding = tokenizer(text_a, text_b, truncation="longest_first", max_length=max_length)
    return {"ids": encoding.input_ids, "segments": encoding.token_type_ids}


if __name__ == "__main__":
    main()
