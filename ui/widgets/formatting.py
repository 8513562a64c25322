"""Numbers, names and texts in the form that the pages show."""

import re
import unicodedata

_TITLES = {
    "bert-base-cased-embedded": "BERT Base, cased",
    "bert-small-uncased-embedded": "BERT Small, uncased",
    "sentiment-base-cased": "Sentiment",
    "parts-of-speech-base-cased": "Parts of speech",
    "entities-base-cased": "Named entities",
    "questions-small-uncased": "Questions",
    "bert-base-cased-student": "BERT Base's student",
    "electra-base-cased-embedded": "ELECTRA Base, cased",
    "reader-both-ways": "Bidirectional LM (small)",
    "reader-left-to-right": "Left-to-right LM (small)",
    "reader-two-one-way": "Two one-way LMs (small)",
}
#: Code of a language -> its name.
LANGUAGES = {"en": "English", "multilingual": "many languages"}
#: A model that a visitor trained: the name that they gave or the kind of the training, date and time of its start.
_OWN = re.compile(r"own-(.+)-(\d\d)(\d\d)(\d\d)-(\d\d)(\d\d)-[0-9a-f]{4}")
_SNAPSHOT = re.compile(r"(.+)/step-(\d+)")


def title(name):
    """A model's title on the pages: of a snapshot "run · step 1,000", of a model that was trained on a page its name
    and the time of its start, of a model without a title its name."""
    snapshot = _SNAPSHOT.fullmatch(name)
    if snapshot:
        return f"{title(snapshot[1])} · step {int(snapshot[2]):,}"
    if own := _OWN.fullmatch(name):
        return f"{own[1]} ({'-'.join(own.group(2, 3, 4))}, {own[5]}:{own[6]})"
    return _TITLES.get(name, name)


def megabytes(size):
    """A size in bytes as "23 MB" or "1.3 GB"."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def number(value, digits=2, sign=False):
    """A number with a true minus and thousands separators, "−0.71" or "1,024.00"; one rounded to zero is "0.00".

    Args:
        digits: decimals. sign: whether a number from 0 on has a plus.
    """
    return f"{round(float(value), digits) + 0.0:{'+' if sign else ''},.{digits}f}".replace("-", "−")


def signed(value, digits=2):
    """A number with its sign, "+0.23" or "−0.71"; one that is rounded to zero is "+0.00"."""
    return number(value, digits, sign=True)


_HYPHEN = re.compile(r"(?<![\w.,\-])-(?=\d)")
_NEGATIVE_ZERO = re.compile(r"−(?=0(?:\.0*)?(?![\d.,e]))")


def true_minus(text):
    """A text that another part has written, with a true minus before its numbers and no negative zero."""
    return _NEGATIVE_ZERO.sub("", _HYPHEN.sub("−", text))


def count(number, noun):
    """ "1 token", "1,024 tokens"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def short_count(number):
    """ "108.9 M", "3.3 k", "12"."""
    if number >= 1e6:
        return f"{number / 1e6:.1f} M"
    return f"{number / 1e3:.1f} k" if number >= 1e3 else str(number)


def milliseconds(seconds):
    """A duration as "34 ms" or "1.2 s"."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def rounded_time(seconds):
    """A duration as "45 s" or, from one and a half minutes on, "19 min"."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def dimensions(shape):
    """A shape in words, as "T 9 × H 768".

    Args:
        shape: pairs of letter and number.
    """
    return " × ".join(f"{letter} {number:,}" for letter, number in shape)


def share(part):
    """A share of a number of items, as "46.2%"; 1 is "100.0%", 0 is "0.0%" and a loss of a tenth "−10.0%"."""
    return f"{number(100 * part, 1)}%"


def shortened(text, most):
    """A text of at most ``most`` letters; the end of a longer one becomes "…"."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


#: Letter of an axis -> what it counts.
AXES = {
    "T": "tokens of the text",
    "H": "hidden size, the numbers of a token's vector",
    "E": "numbers of an embedding",
    "N": "heads",
    "D": "numbers of one head's vector",
    "F": "units of the feed-forward block",
    "P": "masked words",
    "V": "words and pieces of the vocabulary",
    "K": "classes",
}


def axes(*shapes):
    """The letters of shapes in words, as "T: tokens of the text. H: hidden size.".

    Args:
        shapes: as of `dimensions`; names of more than a letter explain themselves.
    """
    letters = dict.fromkeys(letter for shape in shapes for letter, _ in shape if letter in AXES)
    return " ".join(f"{letter}: {AXES[letter]}." for letter in letters)


def direction(text):
    """The writing direction of a text, "rtl" or "ltr": that of its first letter with a direction, without masks."""
    letters = text.replace("[MASK]", "").replace("<mask>", "")
    first = next((kind for kind in map(unicodedata.bidirectional, letters) if kind in ("L", "R", "AL")), "L")
    return "ltr" if first == "L" else "rtl"


# Streamlit's Markdown makes links of bare addresses, also of escaped ones.
_ADDRESS = re.compile(r"https?:(?=//)|www(?=\.)|@", re.IGNORECASE)
_WORD_JOINER = "\u2060"  # invisible, without width


_ISOLATE, _END_OF_ISOLATE = "\u2068", "\u2069"  # of a text with a direction of its own, in a line of another


def escape_markdown(text):
    """A text or a token with its Markdown characters escaped.

    A word joiner keeps an address from becoming a link; see also `isolated`.
    """
    text = _ADDRESS.sub(lambda match: match[0] + _WORD_JOINER, text)
    escaped = "".join("\\" + letter if letter in "\\`*_{}[]()<>#+-.!|~$:&" else letter for letter in text)
    return isolated(escaped)


def isolated(text):
    """A text or a token for a line of another text; what is written from right to left is kept apart from that line.

    It would draw the line's numbers and quotation marks into itself. The same as ``isolated`` in
    ``assets/components/shared.js``.
    """
    has_own_direction = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return f"{_ISOLATE}{text}{_END_OF_ISOLATE}" if has_own_direction else text


def replaced(kind, asked, used):
    """Two sentences: what a link asks for is not here, and what is used in its place.

    Args:
        kind: "model", "page", "snapshot" or "training". asked: its name in the link. used: the name of what is shown.
    """
    place = "installed here" if kind == "model" else "here"
    return (
        f"The link asks for the {kind} “{escape_markdown(asked[:60])}”, which is not {place}. "
        f"{escape_markdown(used)} is used."
    )


def bold(text):
    """A text as bold Markdown, its characters escaped.

    The spaces at its ends are left out: a byte-level token can begin with a space, and Markdown does not read asterisks
    beside a space as bold.
    """
    return f"**{escape_markdown(text.strip())}**" if text.strip() else escape_markdown(text)
