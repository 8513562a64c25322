"""The settings of a model of BERT's family: one frozen dataclass, named sizes, the two public file formats.

Field names are those of Hugging Face's ``config.json``; Google's ``bert_config.json`` uses the same
names for all that the two have in common.
"""

import dataclasses
import difflib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_tf.architectures import ARCHITECTURES, BERT, Architecture

# Google's and Hugging Face's files carry settings that say nothing about the network itself.
_BOOKKEEPING = frozenset(
    """
    _name_or_path _num_labels add_cross_attention architectures attn_implementation bos_token_id
    bad_words_ids begin_suppress_tokens chunk_size_feed_forward classifier_dropout cross_attention_hidden_size
    decoder_start_token_id directionality diversity_penalty do_sample dtype early_stopping encoder_no_repeat_ngram_size
    eos_token_id exponential_decay_length_penalty finetuning_task forced_bos_token_id forced_eos_token_id
    gradient_checkpointing id2label is_decoder is_encoder_decoder label2id length_penalty max_length min_length
    model_type no_repeat_ngram_size num_beam_groups num_beams num_return_sequences output_attentions
    output_hidden_states output_past output_scores pad_token_id_ pooler_fc_size pooler_num_attention_heads
    pooler_num_fc_layers pooler_size_per_head pooler_type prefix problem_type pruned_heads
    quantization_config remove_invalid_values repetition_penalty return_dict return_dict_in_generate
    sep_token_id cls_token_id mask_token_id unk_token_id
    suppress_tokens task_specific_params temperature tf_legacy_loss tie_encoder_decoder tie_word_embeddings
    tokenizer_class top_k top_p torch_dtype torchscript transformers_version transformers.js_config
    typical_p use_bfloat16 use_cache
""".split()
)

_ACTIVATIONS = ("gelu", "gelu_new", "relu")
_ACTIVATION_ALIASES = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new"}

#: BERT's sizes: name -> (layers L, hidden size H, attention heads A)
SIZES = {
    name: (size["num_hidden_layers"], size["hidden_size"], size["num_attention_heads"])
    for name, size in BERT.sizes.items()
}


# What a file may ask for, so that settings alone, whose layers are counted one by one, cost no time or memory.
_MOST = {"num_hidden_layers": 10_000, "num_attention_heads": 10_000}
_MOST_ROWS = 2**31 - 1

#: Name of the settings' file beside a Google checkpoint -> the architecture.
GOOGLE_SETTINGS = {
    architecture.google_settings: architecture
    for architecture in ARCHITECTURES.values()
    if architecture.google_settings
}


class ConfigError(ValueError):
    """A model setting that cannot be: the message names it, its value, and what is allowed."""


@dataclass(frozen=True)
class BertConfig:
    """The settings of one model (Devlin et al. 2019, section 3; defaults: BERT base, uncased).

    Args:
        vocab_size: rows of the token table, V > 0.
        hidden_size: width of the hidden states, H; a multiple of `num_attention_heads`.
        num_hidden_layers: encoder layers, L >= 1.
        num_attention_heads: heads in each layer, N >= 1.
        intermediate_size: width of the feed-forward block; 4 H in all released models.
        hidden_act: `"gelu"` (exact, erf), `"gelu_new"` (tanh approximation) or `"relu"`.
        hidden_dropout_prob: dropout on the embeddings and both sub-layer outputs, in [0, 1).
        attention_probs_dropout_prob: dropout on the attention probabilities, in [0, 1).
        max_position_embeddings: rows of the position table: the longest input in tokens.
        type_vocab_size: rows of the segment table; 0 for none. With fewer than 2, segment ids are not looked
            at.
        initializer_range: standard deviation of the truncated normal initialiser.
        layer_norm_eps: epsilon of every layer normalisation.
        pad_token_id: row of the padding token.
        model_type: the architecture, a key of `bert_tf.architectures.ARCHITECTURES`.
        embedding_size: width E of the three tables; None for H. Others are projected to H.
        num_hidden_groups: sets of layer weights, shared among neighbouring layers; None for one each.

    Raises:
        ConfigError: on a value that is out of range or of the wrong type.
    """

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    pad_token_id: int = 0
    model_type: str = "bert"
    embedding_size: int | None = None
    num_hidden_groups: int | None = None

    def __post_init__(self):
        _check_word("model_type", self.model_type, ARCHITECTURES)
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
        ):
            _check_integer(name, getattr(self, name), least=1)
        for name in ("pad_token_id", "type_vocab_size"):
            _check_integer(name, getattr(self, name), least=0)
        for name in ("embedding_size", "num_hidden_groups"):
            if getattr(self, name) is not None:
                _check_integer(name, getattr(self, name), least=1)
        for name, value in self.architecture.only.items():
            if getattr(self, name) != value:
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}; in a model of type {self.model_type!r} it is {value!r}."
                )
        if self.position_offset >= self.max_position_embeddings:
            raise ConfigError(
                f"max_position_embeddings is {self.max_position_embeddings}, but positions "
                f"start at {self.position_offset} in this model; give more."
            )
        if self.num_hidden_layers % (self.num_hidden_groups or 1):
            raise ConfigError(
                f"num_hidden_layers {self.num_hidden_layers} cannot be divided among "
                f"num_hidden_groups {self.num_hidden_groups}; choose a multiple."
            )
        if self.pad_token_id >= self.vocab_size:
            raise ConfigError(
                f"pad_token_id is {self.pad_token_id}, but the vocabulary has only "
                f"{self.vocab_size} rows; give an id below that."
            )
        if self.stacks > 1:
            for name in ("hidden_size", "num_attention_heads", "intermediate_size"):
                if getattr(self, name) % self.stacks:
                    raise ConfigError(
                        f"{name} is {getattr(self, name)}; a {self.architecture.title} model divides it among "
                        f"{self.stacks} stacks: choose a multiple."
                    )
        if self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size {self.hidden_size} cannot be divided among num_attention_heads "
                f"{self.num_attention_heads}; choose a multiple of the number of heads."
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            value = _check_number(name, getattr(self, name))
            if not 0 <= value < 1:
                raise ConfigError(f"{name} is {value}; a dropout rate lies in [0, 1).")
        for name in ("initializer_range", "layer_norm_eps"):
            value = _check_number(name, getattr(self, name))
            if not 0 < value < float("inf"):
                raise ConfigError(f"{name} is {value}; it must be a positive number.")
        _check_word("hidden_act", self.hidden_act, _ACTIVATIONS)

    @property
    def head_size(self) -> int:
        """Width D of one attention head: H / N."""
        return self.hidden_size // self.num_attention_heads

    @property
    def architecture(self) -> Architecture:
        """The `bert_tf.architectures.Architecture` this is a model of."""
        return ARCHITECTURES[self.model_type]

    @property
    def embedding_width(self) -> int:
        """Width E of the embedding tables; where two stacks read them, that of one stack."""
        return self.hidden_size // self.stacks if self.embedding_size is None else self.embedding_size

    @property
    def stacks(self) -> int:
        """How many stacks of layers stand side by side, each with its share of H, heads and inner width."""
        return self.architecture.stacks

    @property
    def stack_names(self) -> tuple:
        """What the names of a layer's tensors go on with, stack by stack."""
        return ("",) if self.stacks == 1 else (".left", ".right")

    @property
    def has_embedding_projection(self) -> bool:
        """Whether embeddings of E are projected to H by a matrix."""
        return self.stacks == 1 and self.embedding_width != self.hidden_size

    @property
    def position_offset(self) -> int:
        """Row of the position table that the first token takes."""
        return self.pad_token_id + 1 if self.architecture.positions_after_pad else 0

    @property
    def max_tokens(self) -> int:
        """The longest input in tokens."""
        return self.max_position_embeddings - self.position_offset

    @property
    def layer_groups(self) -> tuple:
        """For each layer the number of the weights it uses."""
        groups = self.num_hidden_layers if self.num_hidden_groups is None else self.num_hidden_groups
        return tuple(index * groups // self.num_hidden_layers for index in range(self.num_hidden_layers))

    @property
    def max_frozen_layers(self) -> tuple:
        """How many of the lowest layers may stay as they are while the others, sharing no weights with them, learn."""
        groups = self.layer_groups
        return (0, *(count for count in range(1, len(groups)) if groups[count - 1] != groups[count]), len(groups))

    @property
    def size_name(self) -> str | None:
        """The name among the architecture's sizes with these layers, widths and heads, or None."""
        named = {name: BertConfig.named(name, self.model_type) for name in self.architecture.sizes}
        return next((name for name, config in named.items() if config._shape == self._shape), None)

    @property
    def _shape(self):
        return self.num_hidden_layers, self.hidden_size, self.num_attention_heads, self.embedding_width

    def replace(self, **changes: Any) -> "BertConfig":
        """A copy with some settings changed (and checked again)."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def named(cls, size: str, model_type: str = "bert", **overrides: Any) -> "BertConfig":
        """One of an architecture's sizes; BERT's are tiny, mini, small, medium, base, large."""
        _check_word("model_type", model_type, ARCHITECTURES)
        architecture = ARCHITECTURES[model_type]
        if size not in architecture.sizes:
            raise ConfigError(
                f"There is no {architecture.title} size {size!r}; known are {', '.join(architecture.sizes)}."
            )
        return cls(**{"model_type": model_type, **architecture.defaults, **architecture.sizes[size], **overrides})

    @classmethod
    def tiny(cls, **overrides: Any) -> "BertConfig":
        """2 layers, hidden 128, 2 heads (4,385,920 parameters with the uncased vocabulary)."""
        return cls.named("tiny", **overrides)

    @classmethod
    def mini(cls, **overrides: Any) -> "BertConfig":
        """4 layers, hidden 256, 4 heads (11,170,560 parameters)."""
        return cls.named("mini", **overrides)

    @classmethod
    def small(cls, **overrides: Any) -> "BertConfig":
        """4 layers, hidden 512, 8 heads (28,763,648 parameters)."""
        return cls.named("small", **overrides)

    @classmethod
    def medium(cls, **overrides: Any) -> "BertConfig":
        """8 layers, hidden 512, 8 heads (41,373,184 parameters)."""
        return cls.named("medium", **overrides)

    @classmethod
    def base(cls, **overrides: Any) -> "BertConfig":
        """12 layers, hidden 768, 12 heads (109,482,240 parameters; 108,310,272 cased)."""
        return cls.named("base", **overrides)

    @classmethod
    def large(cls, **overrides: Any) -> "BertConfig":
        """24 layers, hidden 1024, 16 heads (335,141,888 parameters; 333,579,264 cased)."""
        return cls.named("large", **overrides)

    @classmethod
    def from_dict(cls, values: dict) -> "BertConfig":
        """From the content of a Hugging Face ``config.json`` or a Google ``bert_config.json``.

        Settings of those files that do not touch the network (`transformers_version`, …) are passed over.

        Raises:
            ConfigError: on an unknown key (named, with the nearest known one), a model of another
                family, or a setting this model does not have (relative positions, say).
        """
        values = dict(values)
        family = values.get("model_type", "bert")
        if family not in list(ARCHITECTURES):
            raise ConfigError(
                f"model_type is {family!r}; models of these types can be read: {', '.join(ARCHITECTURES)}."
            )
        architecture = ARCHITECTURES[family]
        values = {_ours(architecture, key): value for key, value in values.items()}
        if values.get("inner_group_num", 1) != 1:
            raise ConfigError(f"inner_group_num is {values['inner_group_num']!r}; only 1 can be read.")
        if (
            values.get("add_cross_attention")
            or values.get("is_decoder")
            and architecture.attention_direction == "bidirectional"
        ):
            name = "add_cross_attention" if values.get("add_cross_attention") else "is_decoder"
            raise ConfigError(
                f"{name} is {values[name]!r}: a decoder, whose tokens see only those before them or another "
                "text, cannot be read."
            )
        if values.pop("position_embedding_type", "absolute") != "absolute":
            raise ConfigError(
                "position_embedding_type is not 'absolute'; only learned absolute positions are supported."
            )
        fields = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - fields - _BOOKKEEPING - architecture.ignored)
        if unknown:
            near = difflib.get_close_matches(unknown[0], fields, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(f"Unknown model setting {', '.join(map(repr, unknown))}.{hint}")
        known = {key: value for key, value in values.items() if key in fields}
        if known.get("pad_token_id", 0) is None:
            del known["pad_token_id"]
        known = {**architecture.defaults, **known}
        act = known.get("hidden_act", "gelu")
        known["hidden_act"] = _ACTIVATION_ALIASES.get(act, act) if isinstance(act, str) else act
        return cls(**known)

    @classmethod
    def from_json(cls, path: str | os.PathLike) -> "BertConfig":
        """From a file in either format, Google's told by the file's name; errors name the file."""
        path = Path(path)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is not a JSON file: {error}.") from error
        if not isinstance(values, dict):
            raise ConfigError(f"{path} holds a JSON {type(values).__name__}; a model's settings are an object.")
        if path.name in GOOGLE_SETTINGS:
            values = GOOGLE_SETTINGS[path.name].from_google(values)
        try:
            return cls.from_dict(values)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    def to_dict(self) -> dict:
        """The fields of this dataclass as a plain dict."""
        return dataclasses.asdict(self)

    def to_hf_dict(self) -> dict:
        """The content of a Hugging Face ``config.json``."""
        names, given = self.architecture.settings, self._given()
        return {
            "architectures": [self.architecture.transformers_class(self.architecture.trained)],
            "position_embedding_type": "absolute",
            "use_cache": False,
            **{names.get(name, name): value for name, value in given.items()},
        }

    def to_google_dict(self) -> dict:
        """The content of a Google ``bert_config.json`` (which knows no epsilon and no padding id)."""
        words = {
            name: {ours: theirs for theirs, ours in known.items()}
            for name, known in self.architecture.google_values.items()
        }
        values = {name: words.get(name, {}).get(value, value) for name, value in self._given().items()}
        del values["layer_norm_eps"], values["pad_token_id"], values["model_type"]
        return values

    def _given(self):
        """The fields that a file of this architecture has."""
        return {
            name: value
            for name, value in self.to_dict().items()
            if value is not None and (value or name != "type_vocab_size")
        }


def _ours(architecture, key):
    return next((ours for ours, theirs in architecture.settings.items() if theirs == key), key)


def _check_word(name, value, known):
    if value not in list(known):
        raise ConfigError(f"{name} is {value!r}; known are {', '.join(known)}.")


def _check_integer(name, value, least):
    most = _MOST.get(name, _MOST_ROWS)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is {value!r}; it must be a whole number of at least {least}.")
    if value > most:
        raise ConfigError(f"{name} is {value}; it can be {most:,} at most.")


def _check_number(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{name} is {value!r}; it must be a number.")
    return value
