"""Short explanations of the parts of BERT, with their sources and the pages that show them."""

import dataclasses

import streamlit as st

from bert_tf.parameters import parameter_counts, parameter_spec
from pages.learn.walk_steps import ACTIVATIONS
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


#: Place in the texts of `PARTS` -> what is said of BERT there.
_OF_BERT = {
    "rows": "the sum of three rows of three tables: one for **which token** it is, one for **which text** it belongs "
    "to (A or B), one for its **position**. The sum",
    "read": "all tokens, left and right alike",
    "then": "then every vector is brought to the same scale",
    "gates": "",
    "times": "four",
    "added_to": "its input and brought to one scale, as before",
    "pooled": "used for next-sentence prediction alone",
    "place": "at a masked position",
    "table": "the token table**: the same table is used for the input and for the prediction",
    "training": "In BERT's training 15% of the tokens were predicted, most of them replaced by [MASK]. Because the "
    "word itself is hidden, the model may look at both sides.",
}
_NO_SEGMENTS = (
    "the sum of two rows of two tables: one for **which token** it is, one for its **position**; this model "
    "has no table for text A and text B. The sum"
)
_ONE_SEGMENT = (
    "the sum of three rows: one for **which token** it is, one for its **position**, and one that all tokens share: "
    "this model has a single segment, so the sum does not distinguish text A from text B. The sum"
)
_ONE_SIDE = {
    "left_to_right": "the tokens before it and of itself",
    "two_one_way": "the tokens before it in the first half of the heads, after it in the second, and of itself",
}
_VASWANI = "Vaswani et al. 2017, Attention Is All You Need"
_DEVLIN = "Devlin et al. 2019, BERT"

#: Box -> what is said of it, with places in braces for what `_words` says of a model.
PARTS = {
    "embeddings": Lesson(
        "Every token becomes a vector: {rows} is normalised. The neighbours play no part yet: *bank* has the same "
        "token row beside *river* and beside *account*.",
        f"{_DEVLIN}, section 3, figure 2",
        ("input_embeddings", "nearest_words"),
    ),
    "attention": Lesson(
        "Each head turns every token into a **query**, a **key** and a **value**. The query of one token is "
        "compared with the keys of {read}; a softmax turns these scores into weights, "
        "and the token receives the sum of the values with these weights. The heads work in parallel, each in a small "
        "space of its own, and one matrix mixes their outputs. Only here do tokens exchange information.",
        f"{_VASWANI}, section 3.2",
        ("all_heads", "model_view", "neuron"),
    ),
    "attention_norm": Lesson(
        "The output of the heads is **added** to the layer's input, so a layer changes a token's vector and "
        "never replaces it; {then}. This connection around the block also makes deep models trainable: the "
        "gradient passes through it unchanged.",
        f"{_VASWANI}, section 3.1; Ba et al. 2016, Layer Normalization",
        ("logit_lens",),
    ),
    "feed_forward": Lesson(
        "Two matrices with a {activation} between them{gates}, for each token **by itself**: the vector becomes "
        "{times} times as wide, most of the wide units are near zero for any one token, and the rest add to the "
        "token's vector. {share} of the layers' weights are here, and much of what the model knows about the world "
        "seems to be here too.",
        f"{_VASWANI}, section 3.3; Geva et al. 2021 on what the units hold",
        ("factors", "ablation"),
    ),
    "feed_forward_norm": Lesson(
        "The output of the block is added to {added_to}. This is the layer's output and the next layer's input: the "
        "token's **hidden state**.",
        f"{_VASWANI}, section 3.1",
        ("logit_lens", "word_senses"),
    ),
    "pooler": Lesson(
        "The last hidden state of the first token, **[CLS]** in BERT, through one matrix and a tanh. In pre-training "
        "it was {pooled}; for classification it is trained further with the rest of the model.",
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
        "The hidden state {place}, transformed once and compared with **every row of {table}. {training}",
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
    lesson = PARTS.get(name)
    return lesson and dataclasses.replace(lesson, text=lesson.text.format(**_words(config)))


def _words(config):
    """What is said of a model in the places of `PARTS`: dict from the place to the words."""
    architecture, layers = config.architecture, config.num_hidden_layers
    direction = architecture.attention_direction
    one_sided = direction != "bidirectional"
    full = sum(config.attention_window(layer) is None for layer in range(layers))
    near = (config.local_attention or 0) // 2
    ratio = config.intermediate_size / config.hidden_size
    by_positions = (
        "compare the distances between tokens" if architecture.score_terms > 1 else "turn their queries and keys by it"
    )
    # Whether it holds, the place, the words; of two for one place that hold the later counts.
    others = (
        (config.type_vocab_size == 1, "rows", _ONE_SEGMENT),
        (config.type_vocab_size == 0, "rows", _NO_SEGMENTS),
        (
            not architecture.has_position_table,
            "rows",
            "a row of one table, for **which token** it is. No row is added for its **position**; the heads "
            f"{by_positions} instead. The row",
        ),
        (architecture.score_terms > 1, "read", f"{_OF_BERT['read']}, and with the distances to them"),
        (
            full < layers,
            "read",
            f"all tokens in {full} of the {layers} layers, and of those up to {near} places away in the others",
        ),
        (one_sided, "read", _ONE_SIDE.get(direction)),
        (architecture.norm_first, "then", "the next block reads a copy of the sum, brought to one scale"),
        (
            architecture.norm_first,
            "added_to",
            "the sum of which it read a copy; only the last layer brings it to one scale",
        ),
        (architecture.gated_units, "gates", ", and a third for gates that scale its output"),
        (ratio != 4, "times", f"{ratio:.3g}"),
        ("sop" in architecture.heads, "pooled", "used for sentence-order prediction alone"),
        (not {"nsp", "sop"} & set(architecture.heads), "pooled", "not used"),
        (
            not config.tie_word_embeddings,
            "table",
            "a token table of the head's own**: another table is used for the input",
        ),
        (one_sided, "place", "beside a position"),
        (one_sided, "training", "It learnt to predict the word beside the part it has read."),
    )
    chosen = {place: words for holds, place, words in others if holds}
    always = {"activation": ACTIVATIONS[config.hidden_act], "share": _share_of_feed_forward(config)}
    return {**_OF_BERT, **always, **chosen}


def _share_of_feed_forward(config):
    """The feed-forward blocks' share of the weights of all encoder layers, as text."""
    size = sum(parameter.size for parameter in parameter_spec(config, ()) if parameter.part == "feed_forward")
    return f"{size / parameter_counts(config, ())['encoder']:.0%}"


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
