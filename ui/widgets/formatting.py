"""How numbers and names are written on the pages."""

import re
import unicodedata

_TITLES = {
    "bert-base-cased-embedded": "BERT Base, cased",
    "bert-small-uncased-embedded": "BERT Small, uncased",
    "sentiment-base-cased": "Sentiment",
    "parts-of-speech-base-cased": "Parts of speech",
    "questions-small-uncased": "Questions",
    "bert-base-cased-student": "BERT Base's student",
    "electra-base-cased-embedded": "ELECTRA Base, cased",
    "reader-both-ways": "Reader, both ways",
    "reader-left-to-right": "Reader, left to right",
    "reader-two-one-way": "Readers, two one-way",
}
_SNAPSHOT = re.compile(r"(.+)/step-(\d+)")


def title(name):
    """A model's name as people say it, a snapshot's as "run · step 1,000"; names unknown here stay as they are."""
    snapshot = _SNAPSHOT.fullmatch(name)
    if snapshot:
        return f"{snapshot[1]} · step {int(snapshot[2]):,}"
    return _TITLES.get(name, name)


def megabytes(size):
    """A size in bytes as "23 MB" or "1.3 GB"."""
    if size >= 1e9:
        return f"{size / 1e9:.1f} GB"
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


def count(number, noun):
    """ "1 token", "1,024 tokens"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def milliseconds(seconds):
    """A duration as "34 ms" or "1.2 s"."""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def dimensions(shape):
    """A shape in words, as "T 9 × H 768".

    Args:
        shape: pairs of letter and number.
    """
    return " × ".join(f"{letter} {number:,}" for letter, number in shape)


def percent(probability):
    """A probability as "46.1%", never rounded up to certainty nor down to nothing."""
    if probability >= 0.9995:
        return "> 99.9%"
    return f"{100 * probability:.1f}%" if probability >= 0.001 else "< 0.1%"


def share(part):
    """A share of things that were counted, as "46.2%": all of them are 100.0%, and none 0.0%."""
    return f"{100 * part:.1f}%"


def direction(text):
    """Which way a text runs, "rtl" or "ltr": as its first letter that has a direction; a typed mask has none."""
    letters = text.replace("[MASK]", "").replace("<mask>", "")
    first = next((kind for kind in map(unicodedata.bidirectional, letters) if kind in ("L", "R", "AL")), "L")
    return "ltr" if first == "L" else "rtl"


def escape_markdown(text):
    """User text or a token made safe to stand in Markdown."""
    return "".join("\\" + letter if letter in "\\`*_{}[]()<>#+-.!|~$:&" else letter for letter in text)


def bold(text):
    """The same between asterisks. A byte-level token can begin with its space, and asterisks beside one are shown."""
    return f"**{escape_markdown(text.strip())}**" if text.strip() else escape_markdown(text)
