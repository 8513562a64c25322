"""Example inputs with masked words. A mask names a word: "a6" is the seventh word of text A."""

import dataclasses

from ui.shell.view import MaskPosition


@dataclasses.dataclass(frozen=True)
class Example:
    """A text or a pair of texts, with the words to mask.

    Attributes:
        label, a, b: the name of the example and its texts. masks: ``MaskPosition``s.
        layer, head: the attention head that a first visit opens with, from 0.
    """

    label: str
    a: str
    b: str
    masks: tuple[MaskPosition, ...]
    layer: int = 0
    head: int = 0


def _example(label, a, b="", masks="", **more):
    return Example(label, a, b, tuple(MaskPosition.parse(text) for text in masks.split()), **more)


_HISTORY = "The legislators believed they were on the right side of history."

EXAMPLES = (
    # In this head of the embedded Base both words "they" look at "legislators".
    _example("Law after history", _HISTORY, "So they changed the law.", "b4", layer=10, head=7),
    # Not "bunny" is hidden: the cased vocabulary cuts it into three pieces.
    _example("Bunny after history", _HISTORY, "The bunny ate the carrot.", "b2"),
    _example("Shanghai", "Shanghai is a city in China.", "", "a5"),
    _example("Right, the direction", "At the crossing, turn right and walk along the street.", "", "a5"),
    _example("Right, the correctness", "You were right about the answer to the question.", "", "a2"),
    _example("River bank", "They sat on the bank of the river and watched the boats.", "", "a4"),
    _example("Bank account", "She opened an account at the bank to save her money.", "", "a6"),
)
FIRST = EXAMPLES[0]

#: For the page Time-lapse: sentences like those that the shipped training learns from.
LEARNED = (
    _example("Born", "He was born in London.", "", "a2"),
    _example("Won", "The team won the game.", "", "a2"),
    _example("Season", "They played the first game of the season.", "", "a7"),
    _example("Age", "He died at the age of 75.", "", "a4"),
    _example("One of", "It is one of the largest cities in the world.", "", "a2"),
    _example("The next sentence", "The band played in London.", "They sang many songs.", "b3"),
    _example("Another text", "The band played in London.", "The moon is far away from the earth.", "b1"),
)

#: For the page Directionality. In all but the last the words on the right of the mask decide the prediction. In the
#: two sentences about a bank the words on the left are the same, so a left-to-right model predicts the same for both;
#: the shipped models that read the right side tell the bridge from the company
#: (`tests/embedded/test_embedded_readers.py`).
#: With the first two the hidden word is the likelier to a shipped reader the more it reads of both sides.
ONE_WAY = (
    _example("The House", "He is a member of the House of Representatives.", "", "a6"),
    _example("The church", "The church was built in the 12th century.", "", "a1"),
    _example("The team", "The team won the game.", "", "a1"),
    _example("River bank", "The bridge is on the bank of the river.", "", "a1"),
    _example("Bank account", "The company had an account at the bank.", "", "a1"),
    _example("The west bank", "It is on the west bank of the river.", "", "a4"),
    _example("Were married", "They were married in 1990.", "", "a1"),
    _example("One of", "It is one of the largest cities in the world.", "", "a2"),
    _example("With his wife", "He lives with his wife and two children.", "", "a2"),
    _example("Decided on the left", "She was born in 1956.", "", "a3"),
)

#: For the page Replaced-token detection: without a mask, the tokens to replace are chosen at random. With the shipped
#: models the first draw of the first example replaces two tokens, and one of them is found.
REPLACED = (_example("Football", "The children played football in the park after school."), *EXAMPLES)


def example(label, offered=EXAMPLES):
    """The example with this label among ``offered``."""
    return next(one for one in offered if one.label == label)


_TEXTS = {text for one in (*EXAMPLES, *LEARNED, *ONE_WAY, *REPLACED) for text in (one.a, one.b)}


def is_example(a, b=""):
    """Whether texts A and B are texts of the examples of any page; text B may be empty."""
    return bool(a) and {a, b} <= _TEXTS | {""}
