"""Sample minimal pairs, written for this explorer in the style of BLiMP (Warstadt et al. 2020)."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class SamplePair:
    """Two sentences that differ in one grammatical point; the first is grammatical, the second is not."""

    label: str
    good: str
    bad: str


PAIRS = (
    SamplePair(
        "Agreement at a distance",
        "The keys to the old cabinet are on the table.",
        "The keys to the old cabinet is on the table.",
    ),
    SamplePair("Number of a reflexive", "The women blamed themselves.", "The women blamed herself."),
    SamplePair(
        "Gender of a reflexive",
        "The king introduced himself to the guests.",
        "The king introduced herself to the guests.",
    ),
    SamplePair("Determiner and noun", "She reads these books every night.", "She reads this books every night."),
    SamplePair("Polarity", "Nobody has ever been to that island.", "Everybody has ever been to that island."),
    SamplePair("Irregular form", "The boat has sunk in the harbour.", "The boat has sank in the harbour."),
    SamplePair(
        "Filler and gap",
        "I know what the boy found in the garden.",
        "I know that the boy found in the garden.",
    ),
    SamplePair("Verb without object", "The children slept in the tent.", "The children slept the tent."),
    SamplePair("There and its noun", "There are many chairs in the room.", "There is many chairs in the room."),
    SamplePair("Case", "They gave the letter to him.", "They gave the letter to he."),
    SamplePair("Passive", "The letter was written by the teacher.", "The letter was wrote by the teacher."),
    SamplePair("Island", "Who did you say that she met there?", "Who did you make the claim that she met there?"),
)

# English words -> the same word of the other number; with it a sentence is no longer grammatical, as its subject or
# noun has the first number.
_NUMBERS = (
    ("is", "are"),
    ("was", "were"),
    ("has", "have"),
    ("does", "do"),
    ("this", "these"),
    ("that", "those"),
    ("himself", "themselves"),
    ("herself", "themselves"),
    ("itself", "themselves"),
)
_OTHER_NUMBER = {one: other for pair in _NUMBERS for one, other in (pair, pair[::-1])}
_WORD = re.compile(r"[A-Za-z]+")


def partner(text):
    """The ``SamplePair`` of an English sentence and the same with one word in the wrong number; None if it has none.

    The word is a verb before any other, as "that" has other uses.
    """
    words = [match for match in _WORD.finditer(text) if match[0].lower() in _OTHER_NUMBER]
    if not words:
        return None
    order = list(_OTHER_NUMBER)
    word = min(words, key=lambda match: order.index(match[0].lower()))
    other = _OTHER_NUMBER[word[0].lower()]
    other = other.capitalize() if word[0][0].isupper() else other
    return SamplePair("", text, f"{text[: word.start()]}{other}{text[word.end() :]}")
