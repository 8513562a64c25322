"""What each part of BERT is for, in a few sentences, with its source and the pages that show it at work."""

import dataclasses

import streamlit as st

from ui.session import state
from ui.shell import catalogue


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A short explanation.

    Attributes:
        text: Markdown. source: where it is written. pages: names of pages that show it on the reader's text.
    """

    text: str
    source: str
    pages: tuple[str, ...] = ()


_SEGMENTS = (
    "the sum of three rows out of three tables, one for **which token** it is, "
    "one for **which text** it belongs to (A or B), one for **where** it stands. "
)
_NO_SEGMENTS = (
    "the sum of two rows out of two tables, one for **which token** it is, one for **where** it stands; this model "
    "has no table that tells the texts apart. "
)
_ONE_SEGMENT = (
    "the sum of three rows, one for **which token** it is, one for **where** it stands, and one that all tokens share: "
    "this model has a single segment, so nothing here tells the texts apart. "
)
_BOTH = "all tokens, left and right alike"
_ONE_SIDE = {
    "left_to_right": "the tokens before it and of itself",
    "two_one_way": "the tokens before it in the first half of the heads, after it in the second, and of itself",
}
_OF_POOLED = {
    "nsp": "only the next-sentence question was asked of it",
    "sop": "only the order of sentences was asked of it",
    None: "nothing was asked of it",
}
_VASWANI = "Vaswani et al. 2017, Attention Is All You Need"
_DEVLIN = "Devlin et al. 2019, BERT"

PARTS = {
    "embeddings": Lesson(
        f"Every token becomes a vector: {_SEGMENTS}The sum is normalised. "
        "Nothing here knows the neighbours yet: *bank* has the same token row beside *river* and beside *account*.",
        f"{_DEVLIN}, section 3, figure 2",
        ("input_embeddings", "nearest_words"),
    ),
    "attention": Lesson(
        "Each head turns every token into a **query**, a **key** and a **value**. The query of one token is "
        f"compared with the keys of {_BOTH}; a softmax makes shares of these comparisons, "
        "and the token receives the values in those shares. The heads do so side by side, each in its own small "
        "space, and one matrix mixes what they found. It is the only place where tokens exchange anything.",
        f"{_VASWANI}, section 3.2",
        ("all_heads", "model_view", "neuron"),
    ),
    "attention_norm": Lesson(
        "What the heads found is **added** to what was there before, so a layer changes a token's vector and "
        "never replaces it; then every vector is brought to the same scale. The way round the block is also what "
        "lets deep stacks learn: the gradient passes it unhindered.",
        f"{_VASWANI}, section 3.1; Ba et al. 2016, Layer Normalization",
        ("logit_lens",),
    ),
    "feed_forward": Lesson(
        "Two matrices with a GELU between them, for each token **by itself**: the vector is widened four times, "
        "most of the wide units are near zero for a given token, and the rest write something back. Two thirds "
        "of a layer's weights are here, and much of what the model knows about the world seems to be.",
        f"{_VASWANI}, section 3.3; Geva et al. 2021 on what the units hold",
        ("factors", "ablation"),
    ),
    "feed_forward_norm": Lesson(
        "Again added to what was there, again brought to one scale. This is the layer's output and the next "
        "layer's input: the token's **hidden state**.",
        f"{_VASWANI}, section 3.1",
        ("logit_lens", "word_senses"),
    ),
    "pooler": Lesson(
        f"The last hidden state of the first token, **[CLS]** in BERT, through one matrix and a tanh. In pre-training "
        f"{_OF_POOLED['nsp']}; for classification it is trained anew together with the rest.",
        f"{_DEVLIN}, section 4",
    ),
    "nsp": Lesson(
        "Two numbers out of the pooled vector: does B follow A in the text they came from, or was it picked from "
        "another document? Half of the training pairs were of either kind. Later work found the task easy to "
        "solve by subject alone, and some successors dropped it.",
        f"{_DEVLIN}, section 3.1, task 2; Liu et al. 2019, RoBERTa",
        ("predict", "counterfactuals"),
    ),
    "sop": Lesson(
        "Two numbers out of the pooled vector: are the two texts in their order, or swapped? Both come from one "
        "document, so the subject gives nothing away, which it does in BERT's next-sentence task.",
        "Lan et al. 2020, ALBERT, section 3.1",
        ("predict", "architectures"),
    ),
    "replaced": Lesson(
        "One number a token: was it put there in the place of another? Every token teaches something, not only the "
        "hidden 15%, which is why ELECTRA learns more from the same text.",
        "Clark et al. 2020, ELECTRA, section 3",
        ("predict", "architectures"),
    ),
    "mlm": Lesson(
        "The hidden state at a masked place, transformed once and compared with **every row of the token table**: "
        "the table that reads words also writes them. In training 15% of the tokens were to be predicted, most of "
        "them hidden behind [MASK]. Because the word itself is hidden, the model may look to both sides.",
        f"{_DEVLIN}, section 3.1, task 1",
        ("predict", "logit_lens"),
    ),
}

_TASKS = {
    "classify": "One number for each class (or label), out of one vector that stands for the whole text; a softmax "
    "makes probabilities of them. ",
    "tag": "One number for each label at **every token**, out of its hidden state: one small matrix for all places. ",
    "answer": "Two numbers a token, out of its hidden state: does the answer begin here, does it end here? The best "
    "beginning and end in the passage make the answer. ",
    "choose": "One number for each choice, which is read together with the beginning; a softmax compares them. ",
}


def part(name, config, task=None):
    """What a part of the model with this ``BertConfig`` is for, or None; ``task``: the task of a fine-tuned one."""
    if name == "task":
        tail = (
            "Such a head is all that is new: everything below it was pre-trained, and is trained a little further "
            "together with it."
        )
        return Lesson(
            _TASKS[task] + tail, f"{_DEVLIN}, section 4 and figure 4", ("task_predictions", "fine_tuning_changes")
        )
    lesson, text = PARTS.get(name), ""
    if name == "embeddings" and config.type_vocab_size < 2:
        text = lesson.text.replace(_SEGMENTS, _ONE_SEGMENT if config.type_vocab_size else _NO_SEGMENTS)
    elif name == "pooler":
        asked = next((head for head in ("nsp", "sop") if head in config.architecture.heads), None)
        text = lesson.text.replace(_OF_POOLED["nsp"], _OF_POOLED[asked])
    elif name == "attention" and config.architecture.attention_direction != "bidirectional":
        text = lesson.text.replace(
            f"the keys of {_BOTH}", f"the keys of {_ONE_SIDE[config.architecture.attention_direction]}"
        )
    elif name == "mlm" and config.architecture.attention_direction != "bidirectional":
        text = lesson.text.partition("In training")[0] + "It learnt to name the word beside what it has read."
        text = text.replace("The hidden state at a masked place", "The hidden state beside a place")
    return dataclasses.replace(lesson, text=text) if text else lesson


GUIDE = (
    (
        "What goes in",
        Lesson(
            "BERT reads at most 512 **word pieces**. Frequent words are one piece, rare ones are cut: "
            "*embeddings* becomes em + ##bed + ##ding + ##s. **[CLS]** stands in front, **[SEP]** ends each "
            "text, and a second text is marked as such by a segment of its own.",
            f"{_DEVLIN}, section 3",
            ("predict", "input_embeddings"),
        ),
    ),
    (
        "Both sides at once",
        Lesson(
            "A left-to-right model predicts a word from what stands before it. BERT sees what follows too: in *They "
            "sat on the [MASK] of the river* the last word decides. Cut the right side away and see what is left.",
            f"{_DEVLIN}, sections 1 and 5.1",
            ("counterfactuals", "all_heads"),
        ),
    ),
    (
        "What it was trained to do",
        Lesson(
            "Two tasks on plain text, no labels: predict the hidden words, and tell whether B really followed A. To "
            "solve the first, a model has to pick up grammar, phrases and facts. Watch a small one learn them step "
            "by step.",
            f"{_DEVLIN}, section 3.1",
            ("predict", "training_curves"),
        ),
    ),
    (
        "From words to meanings",
        Lesson(
            "At the bottom every *bank* is the same vector; layer by layer the neighbours pull it apart, until the "
            "river's bank and the money's bank lie in different places.",
            "Ethayarajh 2019; Peters et al. 2018",
            ("word_senses", "logit_lens"),
        ),
    ),
    (
        "Looking is not explaining",
        Lesson(
            "A head's weights say where it looked, not whether that mattered. To learn what mattered, change "
            "something: switch a head off, cover a word, patch in a hidden state of another sentence.",
            "Jain and Wallace 2019; Wiegreffe and Pinter 2019",
            ("all_heads", "ablation", "saliency", "patching"),
        ),
    ),
    (
        "One model, many tasks",
        Lesson(
            "For a task of your own, a small head is put on the hidden states and everything is trained a little "
            "further: one label for a text or a pair ([CLS]), one for each word, or the start and the end of an "
            "answer in a passage.",
            f"{_DEVLIN}, section 4 and figure 4",
            ("task_predictions",),
        ),
    ),
    (
        "What came after",
        Lesson(
            "RoBERTa dropped the next sentence and trained longer; DistilBERT kept half of the layers and learned "
            "from its teacher; ALBERT shares one layer's weights among all; ELECTRA tells which words were "
            "replaced instead of predicting hidden ones.",
            "Liu et al. 2019; Sanh et al. 2019; Lan et al. 2020; Clark et al. 2020",
            ("architectures", "side_by_side"),
        ),
    ),
)


def links(names, where=""):
    """Buttons to the pages that show a thing at work, with the texts as they are; `where` tells keys apart."""
    with st.container(horizontal=True):
        for name in names:
            st.button(
                catalogue.pages()[name].full_title,
                icon=":material/arrow_forward:",
                key=f"w_link_{where}_{name}",
                type="tertiary",
                on_click=lambda name=name: state.change_view(page=name),
            )
