"""Short explanations of the parts of BERT, with their sources and the pages that show them."""

import dataclasses

import streamlit as st

from ui.session import state
from ui.shell import catalogue, frame


@dataclasses.dataclass(frozen=True)
class Lesson:
    """A short explanation.

    Attributes:
        text: Markdown. source: the paper and section. pages: names of pages that show it on the visitor's text.
    """

    text: str
    source: str
    pages: tuple[str, ...] = ()


_SEGMENTS = (
    "the sum of three rows of three tables: one for **which token** it is, "
    "one for **which text** it belongs to (A or B), one for its **position**. "
)
_NO_SEGMENTS = (
    "the sum of two rows of two tables: one for **which token** it is, one for its **position**; this model "
    "has no table for text A and text B. "
)
_ONE_SEGMENT = (
    "the sum of three rows: one for **which token** it is, one for its **position**, and one that all tokens share: "
    "this model has a single segment, so the sum does not distinguish text A from text B. "
)
_BOTH = "all tokens, left and right alike"
_ONE_SIDE = {
    "left_to_right": "the tokens before it and of itself",
    "two_one_way": "the tokens before it in the first half of the heads, after it in the second, and of itself",
}
_OF_POOLED = {
    "nsp": "it was used for next-sentence prediction alone",
    "sop": "it was used for sentence-order prediction alone",
    None: "it was not used",
}
_TIED = "**every row of the token table**: the same table is used for the input and for the prediction. "
_UNTIED = "**every row of a token table of the head's own**: another table is used for the input. "
_VASWANI = "Vaswani et al. 2017, Attention Is All You Need"
_DEVLIN = "Devlin et al. 2019, BERT"

PARTS = {
    "embeddings": Lesson(
        f"Every token becomes a vector: {_SEGMENTS}The sum is normalised. "
        "The neighbours play no part yet: *bank* has the same token row beside *river* and beside *account*.",
        f"{_DEVLIN}, section 3, figure 2",
        ("input_embeddings", "nearest_words"),
    ),
    "attention": Lesson(
        "Each head turns every token into a **query**, a **key** and a **value**. The query of one token is "
        f"compared with the keys of {_BOTH}; a softmax turns these scores into weights, "
        "and the token receives the sum of the values with these weights. The heads work in parallel, each in a small "
        "space of its own, and one matrix mixes their outputs. Only here do tokens exchange information.",
        f"{_VASWANI}, section 3.2",
        ("all_heads", "model_view", "neuron"),
    ),
    "attention_norm": Lesson(
        "The output of the heads is **added** to the block's input, so a layer changes a token's vector and "
        "never replaces it; then every vector is brought to the same scale. This connection around the block also "
        "makes deep models trainable: the gradient passes through it unchanged.",
        f"{_VASWANI}, section 3.1; Ba et al. 2016, Layer Normalization",
        ("logit_lens",),
    ),
    "feed_forward": Lesson(
        "Two matrices with a GELU between them, for each token **by itself**: the vector becomes four times as wide, "
        "most of the wide units are near zero for any one token, and the rest add to the token's vector. Two thirds "
        "of a layer's weights are here, and much of what the model knows about the world seems to be here too.",
        f"{_VASWANI}, section 3.3; Geva et al. 2021 on what the units hold",
        ("factors", "ablation"),
    ),
    "feed_forward_norm": Lesson(
        "The output of the block is added to its input and brought to one scale, as before. This is the layer's "
        "output and the next layer's input: the token's **hidden state**.",
        f"{_VASWANI}, section 3.1",
        ("logit_lens", "word_senses"),
    ),
    "pooler": Lesson(
        f"The last hidden state of the first token, **[CLS]** in BERT, through one matrix and a tanh. In pre-training "
        f"{_OF_POOLED['nsp']}; for classification it is trained further with the rest of the model.",
        f"{_DEVLIN}, section 4",
    ),
    "nsp": Lesson(
        "Two numbers from the pooled vector: does B follow A in the text they came from, or was it picked from "
        "another document? Half of the training pairs were of each kind. Later work found that the topic alone often "
        "solves the task, and some successors dropped it.",
        f"{_DEVLIN}, section 3.1, task 2; Liu et al. 2019, RoBERTa",
        ("predict", "counterfactuals"),
    ),
    "sop": Lesson(
        "Two numbers from the pooled vector: are the two texts in their order, or swapped? Both come from one "
        "document, so the topic does not help, as it does in BERT's next-sentence task.",
        "Lan et al. 2020, ALBERT, section 3.1",
        ("predict", "architectures"),
    ),
    "replaced": Lesson(
        "One number for each token: was it put there in place of another? The model learns from every token and not "
        "only from the hidden 15%, so ELECTRA learns more from the same text.",
        "Clark et al. 2020, ELECTRA, section 3",
        ("predict", "architectures"),
    ),
    "mlm": Lesson(
        f"The hidden state at a masked position, transformed once and compared with {_TIED}"
        "In training 15% of the tokens were predicted, "
        "most of them replaced by [MASK]. Because the word itself is hidden, the model may look at both sides.",
        f"{_DEVLIN}, section 3.1, task 1",
        ("predict", "logit_lens"),
    ),
}

_TASKS = {
    "classify": "One number for each class (or label), from one vector that represents the whole text; a softmax "
    "turns them into probabilities. ",
    "tag": "One number for each label at **every token**, from its hidden state: one small matrix for all positions. ",
    "answer": "Two numbers for each token, from its hidden state: does the answer begin here, does it end here? The "
    "best beginning and end in the passage make the answer. ",
    "choose": "One number for each choice, which is read together with the beginning; a softmax compares them. ",
}


def part(name, config, task=None):
    """The ``Lesson`` about a part of a model, or None.

    Args:
        name: of the part. config: ``BertConfig`` of the model. task: the task of a fine-tuned model.
    """
    if name == "task":
        tail = (
            "Only this head is new: everything below it was pre-trained, and is trained a little further "
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
    elif name == "mlm":
        text = lesson.text if config.tie_word_embeddings else lesson.text.replace(_TIED, _UNTIED)
        if config.architecture.attention_direction != "bidirectional":
            text = text.partition("In training")[0] + "It learnt to predict the word beside the part it has read."
            text = text.replace("The hidden state at a masked position", "The hidden state beside a position")
    return dataclasses.replace(lesson, text=text) if text else lesson


GUIDE = (
    (
        "What goes in",
        Lesson(
            "BERT reads at most 512 **word pieces**. Frequent words are one piece, rare words are split: "
            "*embeddings* becomes em + ##bed + ##ding + ##s. **[CLS]** is the first token, **[SEP]** ends each "
            "text, and a second text has a segment of its own.",
            f"{_DEVLIN}, section 3",
            ("predict", "input_embeddings"),
        ),
    ),
    (
        "Both sides at once",
        Lesson(
            "A left-to-right model predicts a word from the words before it. BERT sees the words after it too: in "
            "*They sat on the [MASK] of the river* the last word decides. Remove the right side and see what changes.",
            f"{_DEVLIN}, sections 1 and 5.1",
            ("counterfactuals", "all_heads"),
        ),
    ),
    (
        "What it was trained to do",
        Lesson(
            "Two tasks on plain text without labels: predict the hidden words, and predict whether B followed A. To "
            "solve the first, a model has to learn grammar, phrases and facts. Watch a small model learn them step "
            "by step.",
            f"{_DEVLIN}, section 3.1",
            ("predict", "training_curves"),
        ),
    ),
    (
        "From words to meanings",
        Lesson(
            "In the token table every *bank* has the same vector; layer by layer the neighbours change it, until the "
            "bank of a river and the bank with the money have different vectors.",
            "Ethayarajh 2019; Peters et al. 2018",
            ("word_senses", "logit_lens"),
        ),
    ),
    (
        "Looking is not explaining",
        Lesson(
            "A head's weights show which tokens it attends to, not whether they matter for the answer. To find out "
            "what matters, change something: switch a head off, cover a word, patch in a hidden state of another "
            "sentence.",
            "Jain and Wallace 2019; Wiegreffe and Pinter 2019",
            ("all_heads", "ablation", "saliency", "patching"),
        ),
    ),
    (
        "One model, many tasks",
        Lesson(
            "For a task of your own, a small head is added on top of the hidden states and the whole model is trained "
            "a little further: one label for a text or a pair ([CLS]), one for each word, or the start and the end of "
            "an answer in a passage.",
            f"{_DEVLIN}, section 4 and figure 4",
            ("task_predictions",),
        ),
    ),
    (
        "What came after",
        Lesson(
            "RoBERTa dropped next-sentence prediction and trained longer; DistilBERT has half of the layers and "
            "learned from its teacher; ALBERT shares one layer's weights among all layers; ELECTRA predicts which "
            "words were replaced instead of predicting hidden words.",
            "Liu et al. 2019; Sanh et al. 2019; Lan et al. 2020; Clark et al. 2020",
            ("architectures", "side_by_side"),
        ),
    ),
)


def links(names, where=""):
    """Draw buttons that open pages with the visitor's texts.

    Args:
        names: of the pages. where: str that makes the widget keys unique.
    """
    with st.container(horizontal=True):
        for name in names:
            st.button(
                catalogue.pages()[name].full_title,
                icon=":material/arrow_forward:",
                key=f"w_link_{where}_{name}",
                type="tertiary",
                on_click=lambda name=name: state.replace_view(frame.view_of(name)),
            )
