"""Sample minimal pairs, written for this explorer in the style of BLiMP (Warstadt et al. 2020)."""

import dataclasses


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
