"""What sets one model of BERT's family apart: a record of settings and names, no code of its own.

B batch, T tokens, H hidden size, E embedding size.
"""

import functools
import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Architecture:
    """A model architecture, told by how it differs from BERT.

    Names of tensors are pairs (ours, theirs) of dotted beginnings with `*` for a layer's number; the first
    pair that fits counts, and what fits none stays as it is. Ours are those of BERT in Hugging Face's files.

    Attributes:
        model_type: Hugging Face's word for it. title: as it is written. source: the paper.
        order: its place among the others in lists and tables; equal ones stand by title.
        changes: what was changed from BERT, a sentence each.
        heads: those its checkpoints may hold. trained: those its own pre-training trains, in one model.
        trained_otherwise: name of a size -> the heads it is trained with instead.
        learns_besides: what it learns from that no head tells, a few words each.
        sizes: name -> settings of the released sizes.
        defaults: settings that differ from BERT's where a file leaves them out.
        settings: our setting -> what its config.json calls it, where that differs.
        only: setting -> the one value it can have.
        ignored: keys of its config.json that do not touch the network.
        positions_after_pad: the first token's position is the padding id + 1, not 0.
        names: tensors in Hugging Face's files.
        transformers_classes: (heads, Transformers' class), the first whose heads are all there counts.
        sentence_heads: task ("classify", "choose") -> (activation, name of the dense layer, name of the last one) of
            Transformers' heads that bring a layer of their own where this architecture has no pooler.
        sentence_settings: keys of its config.json with the only values under which its choosers' head is so.
        google_settings: name of the settings' file beside its TF checkpoint, None where none was released.
        google_values: setting -> {value in that file: ours}, where the same word means another thing there.
        google_names: heads in one model -> pairs for Google's tensors, dotted.
        google_others: the same -> how the tensors of another model in the same checkpoint begin.
        tokenizer: "wordpiece", "bytes" or "pieces" (SentencePiece).
        attention_direction: what a token attends to: "bidirectional", all tokens; "left_to_right", itself and those
            before it; "two_one_way", in one of two stacks those before it and in the other those after it.
        stacks: how many stacks of layers stand side by side, each with its share of H, heads and inner width.
        embeddings_class, layer_class, mlm_head_class: dotted paths of the Keras layers that the model is built of;
            text, so that a record imports no Keras.
    """

    model_type: str
    title: str
    source: str
    changes: tuple
    heads: tuple
    trained: tuple
    sizes: dict
    transformers_classes: tuple
    order: int = 100
    trained_otherwise: dict = field(default_factory=dict)
    learns_besides: tuple = ()
    defaults: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    ignored: frozenset = frozenset()
    only: dict = field(default_factory=dict)
    positions_after_pad: bool = False
    names: tuple = ()
    sentence_heads: dict = field(default_factory=dict)
    sentence_settings: dict = field(default_factory=dict)
    google_settings: str | None = None
    google_values: dict = field(default_factory=dict)
    google_names: dict = field(default_factory=dict)
    google_others: dict = field(default_factory=dict)
    tokenizer: str = "wordpiece"
    attention_direction: str = "bidirectional"
    stacks: int = 1
    embeddings_class: str = "bert_tf.layers.embeddings.BertEmbeddings"
    layer_class: str = "bert_tf.layers.encoder.EncoderLayer"
    mlm_head_class: str = "bert_tf.layers.heads.MaskedLMHead"

    @property
    def prefix(self):
        """What the names of the encoder's tensors begin with in its files."""
        return self.model_type if self.names else "bert"

    def stored_name(self, name):
        """What Hugging Face's files of this architecture call one of our tensors."""
        return rename(name, self.names)

    def own_name(self, stored):
        """Our name of a tensor in its files, which may lack the model's prefix; reverses `stored_name`."""
        if stored.startswith(_BARE):
            stored = f"{self.prefix}.{stored}"
        return rename(stored, _reversed(self.names))

    def from_google(self, values):
        """The settings of Google's file in our words."""
        ours = {
            name: known[values[name]] for name, known in self.google_values.items() if values.get(name) in list(known)
        }
        return {"model_type": self.model_type, **values, **ours}

    def trained_heads(self, size):
        """The heads that the pre-training of one of the released sizes trains."""
        return self.trained_otherwise.get(size, self.trained)

    def transformers_class(self, heads):
        """The Transformers class for a model with these heads."""
        return next(name for needed, name in self.transformers_classes if needed <= set(heads))


_BARE = ("embeddings.", "embeddings_project.", "encoder.", "transformer.", "pooler.")


def rename(name, pairs):
    """A dotted name with its beginning exchanged by the first of the pairs (from, to) that fits."""
    for start, other in pairs:
        match = _pattern(start).match(name)
        if match:
            number = match.group(1) if "*" in start else ""
            return other.replace("*", number) + name[match.end() :]
    return name


@functools.cache
def _pattern(start):
    return re.compile(re.escape(start).replace(r"\*", r"(\d+)") + r"(?=\.|$)")


@functools.cache
def _reversed(pairs):
    return tuple((theirs, ours) for ours, theirs in pairs)
