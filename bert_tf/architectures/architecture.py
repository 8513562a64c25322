"""The record that describes how an architecture differs from BERT. It holds settings and names."""

import functools
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from bert_tf.architectures.layer_weights import BERT_LAYER, LayerWeight


@dataclass(frozen=True)
class Architecture:
    """A model architecture, described by its differences from BERT.

    Names of tensors are given as pairs (canonical, stored) of dotted prefixes, with `*` for the number of a layer. The
    first pair that matches is used; a name without a match is unchanged. The canonical names are those of BERT in
    Hugging Face's files.

    Attributes:
        model_type: str. Hugging Face's `model_type`.
        title: str. The name for display.
        source: str. The paper.
        order: int. The place among the others in lists and tables; equal ones are sorted by title.
        changes: tuple of str. The changes from BERT, one sentence each.
        heads: tuple of str. The heads that its checkpoints can hold.
        trained: tuple of str. The heads that its pre-training trains, in one model.
        sizes: dict of name -> settings. The released sizes.
        trained_otherwise: dict of size name -> heads. The sizes that are trained with other heads.
        learns_besides: tuple of str. Training signals beside the heads' objectives, a few words each.
        defaults: dict. Settings that differ from BERT's if a file does not state them.
        file_defaults: dict. What a config.json means by Transformers' reading if it does not state a setting, where
            that is not the default here.
        settings: dict of field of `BertConfig` -> key in its config.json, where they differ.
        bert_names: frozenset of str. The fields of `settings` that Transformers reads by BERT's name too.
        ignored: frozenset of str. Keys of its config.json that do not change the network.
        only: dict of setting -> the only value that it can have.
        fixed: dict of key in its config.json -> the only supported value, for keys without a field. Written too.
        read_settings: function or None. It translates the content of its config.json to the keys that `settings` knows,
            and raises ValueError with a sentence if the file asks for another network.
        positions_after_pad: bool. Whether the position of the first token is the padding id + 1, not 0.
        names: tuple of pairs. The names of the tensors in Hugging Face's files.
        transformers_classes: tuple of (heads, name of a Transformers class). The first entry whose heads are all
            present is used.
        in_transformers: bool. Whether Transformers has these classes.
        sentence_heads: dict of task ("classify", "choose") -> (activation, name of the dense layer, name of the last
            layer) of Transformers' heads that contain a dense layer because this architecture has no pooler.
        sentence_settings: dict of key in config.json -> the only supported value, for the head of multiple choice.
        prediction_head: bool. Whether the head of every task has a dense layer and a normalization, without biases,
            before its last layer (`bert_tf.layers.pooler.PredictionHead`).
        google_settings: str or None. The name of the settings file beside its TF checkpoint; None if no TF
            checkpoint was released.
        google_values: dict of setting -> {value in that file: our value}, where a value has another meaning there.
        google_names: dict of the heads in one model -> pairs for Google's tensors, dotted.
        google_others: dict of the heads in one model -> prefixes of the tensors of another model in the same
            checkpoint.
        tokenizer: str. "wordpiece", "bytes" or "pieces" (SentencePiece).
        attention_direction: str. The tokens that a token attends to: "bidirectional", all tokens; "left_to_right",
            itself and the tokens before it; "two_one_way", the tokens before it in one of two stacks and the tokens
            after it in the other.
        stacks: int. The number of parallel stacks of layers; H, heads and feed-forward width are divided among them.
        has_position_table: bool. Whether a table of absolute positions is added to the token embeddings.
        projects_embeddings: bool. Whether the embeddings are projected to the hidden size even if they have that width.
        score_terms: int. How many products an attention score sums; more than 1 if positions enter the scores.
        norm_first: bool. Whether each block reads a normalized copy of the hidden states and adds to the hidden states
            themselves (pre-norm); otherwise the sum is normalized (post-norm).
        gated_units: bool. Whether the units of the feed-forward block are multiplied by a second projection.
        replaced_head_adds_first: bool. Whether the replaced-token head adds the hidden state of the first token to
            each and normalizes the sum (`bert_tf.layers.heads.ReplacedTokenHead`).
        mlm_act: str or None. The activation of the MLM head where it is the same for every `hidden_act`; None if it is
            `hidden_act`.
        has_biases: bool. Whether the normalization of the embeddings, and the dense layer and normalization of the MLM
            head, have a bias.
        layer_weights: tuple of `LayerWeight`. The tensors of one encoder layer.
        embeddings_class, layer_class, mlm_head_class: str. The dotted paths of the model's Keras layers; as strings,
            so that a record does not import Keras.
    """

    model_type: str
    title: str
    source: str
    changes: tuple[str, ...]
    heads: tuple[str, ...]
    trained: tuple[str, ...]
    sizes: dict[str, dict[str, Any]]
    transformers_classes: tuple[tuple[Collection[str], str], ...]
    order: int = 100
    trained_otherwise: dict[str, tuple[str, ...]] = field(default_factory=dict)
    learns_besides: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)
    file_defaults: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    bert_names: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    only: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    read_settings: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    positions_after_pad: bool = False
    names: tuple[tuple[str, str], ...] = ()
    sentence_heads: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    sentence_settings: dict[str, Any] = field(default_factory=dict)
    prediction_head: bool = False
    google_settings: str | None = None
    google_values: dict[str, dict[str, str]] = field(default_factory=dict)
    google_names: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    google_others: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    tokenizer: str = "wordpiece"
    attention_direction: str = "bidirectional"
    in_transformers: bool = True
    stacks: int = 1
    has_position_table: bool = True
    projects_embeddings: bool = False
    score_terms: int = 1
    norm_first: bool = False
    gated_units: bool = False
    replaced_head_adds_first: bool = False
    mlm_act: str | None = None
    has_biases: bool = True
    layer_weights: tuple[LayerWeight, ...] = BERT_LAYER
    embeddings_class: str = "bert_tf.layers.embeddings.BertEmbeddings"
    layer_class: str = "bert_tf.layers.encoder.EncoderLayer"
    mlm_head_class: str = "bert_tf.layers.heads.MaskedLMHead"

    @property
    def prefix(self) -> str:
        """The prefix of the encoder's tensors in its files."""
        return next((stored for canonical, stored in self.names if canonical == "bert"), "bert")

    @property
    def with_article(self) -> str:
        """The title with its article, as "an ALBERT"."""
        return f"{'an' if self.title[0] in 'AEX' else 'a'} {self.title}"

    def stored_name(self, name: str) -> str:
        """Return the name of a tensor in Hugging Face's files of this architecture."""
        return rename(name, self.names)

    def own_name(self, stored: str) -> str:
        """Return the canonical name of a tensor in its files, the inverse of `stored_name`.

        The stored name can lack the model's prefix.
        """
        of_tasks = {first for _, first, _ in self.sentence_heads.values()}
        if stored.startswith(_UNPREFIXED) and not stored.startswith(tuple(of_tasks)):
            stored = f"{self.prefix}.{stored}"
        return rename(stored, _reversed(self.names))

    def from_google(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of Google's file with our values."""
        translated = {
            name: ours[values[name]] for name, ours in self.google_values.items() if values.get(name) in list(ours)
        }
        return {"model_type": self.model_type, **values, **translated}

    def trained_heads(self, size: str) -> tuple[str, ...]:
        """Return the heads that the pre-training of a released size trains."""
        return self.trained_otherwise.get(size, self.trained)

    def transformers_class(self, heads: Iterable[str]) -> str:
        """Return the name of the Transformers class for a model with these heads."""
        return next(name for needed, name in self.transformers_classes if set(needed) <= set(heads))


_UNPREFIXED = ("embeddings.", "embeddings_project.", "encoder.", "transformer.", "pooler.", "layers.", "final_norm.")


def rename(name: str, pairs: Iterable[tuple[str, str]]) -> str:
    """Return a dotted name with its prefix replaced by the first pair (old prefix, new prefix) that matches."""
    for old_prefix, new_prefix in pairs:
        match = _pattern(old_prefix).match(name)
        if match:
            number = match.group(1) if "*" in old_prefix else ""
            return new_prefix.replace("*", number) + name[match.end() :]
    return name


@functools.cache
def _pattern(prefix):
    return re.compile(re.escape(prefix).replace(r"\*", r"(\d+)") + r"(?=\.|$)")


@functools.cache
def _reversed(pairs):
    return tuple((stored, canonical) for canonical, stored in pairs)
