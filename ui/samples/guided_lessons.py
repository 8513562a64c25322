"""Guided lessons: five to eight steps each, to be done on the explorer's pages; a last question is checked."""

import dataclasses

from ui.samples.examples import FIRST
from ui.shell.view import MaskPosition


@dataclasses.dataclass(frozen=True)
class Step:
    """A step of a lesson.

    Attributes:
        title: of the step. text: Markdown: what to do, and what to look at.
        page: name of the page on which it is done; "" for none.
        a, b, masks: the texts and masked words ("a4 b1") with which the page opens.
        layer, head: the head with which it opens, from 0. settings: setting of the page -> text.
    """

    title: str
    text: str
    page: str = ""
    a: str = ""
    b: str = ""
    masks: str = ""
    layer: int = 0
    head: int = 0
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def positions(self):
        """The `MaskPosition`s of ``masks``."""
        return tuple(MaskPosition.parse(text) for text in self.masks.split())


@dataclasses.dataclass(frozen=True)
class GuidedLesson:
    """A lesson.

    Attributes:
        name: in a link. title: of the lesson. steps: its `Step`s; the last asks ``question``.
        question: answered with one word that the visitor finds by doing the last step.
        check: how the right word is computed; a key of ``pages.learn.lesson_answers.ANSWERS``.
        because: one or two sentences that follow the answer.
    """

    name: str
    title: str
    steps: tuple[Step, ...]
    question: str
    check: str
    because: str


_RIVER = "They sat on the bank of the river and watched the boats."
_ACCOUNT = "She opened an account at the bank to save her money."
_BORN = "He was born in London."
_CITY = "Shanghai is a city in China."

LESSONS = (
    GuidedLesson(
        "mask",
        "Why [MASK] needs both sides",
        (
            Step(
                "Hide a word",
                "In this sentence *bank* is hidden behind [MASK]. Which words does the model think of?",
                "predict",
                _RIVER,
                masks="a4",
            ),
            Step(
                "The same word, another sentence",
                "Here another *bank* is hidden. Compare the predictions: they come from the neighbours alone.",
                "predict",
                _ACCOUNT,
                masks="a6",
            ),
            Step(
                "Take the right side away",
                "What is left if the words after the mask are cut? Compare “The full text” with “Only the words "
                "before”.",
                "counterfactuals",
                _RIVER,
                masks="a4",
            ),
            Step(
                "Models that read one side only",
                "Three small models learnt from the same text: one reads the left side alone, one each side by itself, "
                "one both together.",
                "directionality",
                "The bridge is on the bank of the river.",
                masks="a1",
            ),
            Step(
                "Now you",
                "Here the sentence is cut after the mask: only its beginning is left, and a full stop.",
                "predict",
                "They sat on the bank.",
                masks="a4",
            ),
        ),
        "Which word does the loaded model now think likeliest at [MASK]?",
        "predicted",
        "Only the left side was left to go by. With the river on the right the predictions were others: that is why "
        "BERT reads both sides, and why it needs a mask to hide the word itself.",
    ),
    GuidedLesson(
        "heads",
        "What heads do",
        (
            Step(
                "All heads at once",
                "Every tile is one head. Some look at a neighbour, some at [SEP], some spread out.",
                "model_view",
                FIRST.a,
                FIRST.b,
            ),
            Step(
                "One head, closely",
                "Press a token on the left: the lines lead to the tokens it looks at.",
                "all_heads",
                FIRST.a,
                FIRST.b,
                layer=FIRST.layer,
                head=FIRST.head,
            ),
            Step(
                "Where the weights come from",
                "A query is compared with keys. Point at a token to see which numbers agree.",
                "neuron",
                FIRST.a,
                FIRST.b,
                layer=FIRST.layer,
                head=FIRST.head,
            ),
            Step(
                "Heads have habits",
                "On the plane each head is a point: heads with similar attention lie together.",
                "head_profiles",
                FIRST.a,
                FIRST.b,
            ),
            Step(
                "Now you",
                "The first head of the first layer is open. Press the first token, [CLS] or its like.",
                "all_heads",
                _CITY,
            ),
        ),
        "Which token does the first token look at most, in layer 1, head 1?",
        "looked_at",
        "A weight says where the head looks, not that the answer hangs on it: the lesson “Is attention an "
        "explanation?” goes on from here.",
    ),
    GuidedLesson(
        "learned",
        "How it learned",
        (
            Step("The curve", "The loss falls while a small model trains. Where is it steepest?", "training_curves"),
            Step(
                "Before it knew anything",
                "Move the slider to the first snapshot: the predictions are nearly random.",
                "time_lapse",
                _BORN,
                masks="a2",
            ),
            Step(
                "Frequent words first",
                "Move the slider to a snapshot a little after the first. The model first learns which words are "
                "frequent, whatever stands around them.",
                "time_lapse",
                _BORN,
                masks="a2",
            ),
            Step(
                "Then phrases",
                "Press Play. When does the right word come first, and does it stay there?",
                "time_lapse",
                "The team won the game.",
                masks="a2",
            ),
            Step(
                "Now you",
                "Compare with the loaded model, which has finished its training.",
                "predict",
                _BORN,
                masks="a2",
            ),
        ),
        "Which word does the loaded model think likeliest at [MASK]?",
        "predicted",
        "A model learns frequent words first, then phrases, then meanings. How fast depends on the text.",
    ),
    GuidedLesson(
        "sizes",
        "Base or Large",
        (
            Step("The sizes", "Layers, heads and widths of the family, with their parameters.", "architectures"),
            Step(
                "Two models, one sentence",
                "The same text in two models. Where do their predictions differ, and which is surer?",
                "side_by_side",
                _CITY,
                masks="a5",
            ),
            Step(
                "Many sentences",
                "One sentence proves little. Here the two read many rows; those where they differ most come first.",
                "agreement",
            ),
            Step(
                "Layer by layer",
                "Which layers of the two are alike? A larger model does more steps, not always others.",
                "layer_similarity",
            ),
            Step(
                "Now you",
                "Look at what the second model, on the right, thinks of this mask.",
                "side_by_side",
                _CITY,
                masks="a5",
            ),
        ),
        "Which word does the second model think likeliest at [MASK]?",
        "predicted_by_other",
        "Whether the larger one is right more often, only many sentences show: Dataset counts how often a model is "
        "right, Agreement how often the two agree.",
    ),
    GuidedLesson(
        "explanation",
        "Is attention an explanation?",
        (
            Step(
                "What the mask looks at",
                "Press [MASK] and note which words have the greatest weights.",
                "all_heads",
                _CITY,
                masks="a5",
                layer=FIRST.layer,
                head=FIRST.head,
            ),
            Step(
                "Another head, another story",
                "Other heads look elsewhere. Which of them would you believe?",
                "model_view",
                _CITY,
                masks="a5",
            ),
            Step(
                "All layers together",
                "Rollout and its like join the layers. Compare the methods with one another.",
                "attention_methods",
                _CITY,
                masks="a5",
            ),
            Step(
                "Switch a head off",
                "If a head matters, the answer falls without it. For most heads it hardly moves.",
                "ablation",
                _CITY,
                masks="a5",
            ),
            Step(
                "Now you",
                "Hide one word after the other (the method is called occlusion). The one that costs the first "
                "prediction most is the word it depends on.",
                "saliency",
                _CITY,
                masks="a5",
                settings=(("method", "occlusion"),),
            ),
        ),
        "Which word costs the first prediction most when it is hidden?",
        "most_needed",
        "That was found by changing something, not by looking. Where the weights name another word, they do not "
        "explain this answer.",
    ),
)
