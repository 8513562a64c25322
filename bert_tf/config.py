"""The settings of BERT and the related architectures: a frozen dataclass, named sizes and two public file formats.

The field names are those of Hugging Face's ``config.json``; Google's ``bert_config.json`` uses the same names for the
settings that both files have.
"""

import dataclasses
import difflib
import functools
import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bert_tf.architectures import ARCHITECTURES, BERT, Architecture
from bert_tf.errors import did_you_mean, json_kind

# Settings in Google's and Hugging Face's files that do not change the network.
_BOOKKEEPING = frozenset(
    """
    _name_or_path _num_labels adapters architectures attn_implementation auto_map bad_words_ids
    begin_suppress_tokens bos_token_id chunk_size_feed_forward classifier_dropout cls_token_id
    cross_attention_hidden_size decoder_start_token_id directionality diversity_penalty do_sample dtype
    early_stopping encoder_no_repeat_ngram_size eos_token_id eos_token_ids exponential_decay_length_penalty
    export_model_type finetuning_task forced_bos_token_id forced_eos_token_id gradient_checkpointing id2label
    label2id label_names language length_penalty mask_token_id max_length min_length model_max_length model_type
    no_repeat_ngram_size num_beam_groups num_beams num_labels num_return_sequences output_attentions
    output_hidden_states output_past output_scores pad_token_id_ pooler_fc_size pooler_num_attention_heads
    pooler_num_fc_layers pooler_size_per_head pooler_type prefix problem_type quantization_config
    remove_invalid_values repetition_penalty return_dict return_dict_in_generate
    sbert_ce_default_activation_function sentence_transformers sep_token_id suppress_tokens task_specific_params
    temperature tf_legacy_loss tie_encoder_decoder tokenizer_class top_k top_p torch_dtype torchscript
    transformers.js_config transformers_version typical_p unk_token_id use_bfloat16 use_cache use_return_dict
    xla_device
""".split()
)

_ACTIVATIONS = ("gelu", "gelu_new", "relu", "gelu_10", "quick_gelu", "silu", "tanh")
_ACTIVATION_ALIASES = {
    "gelu_pytorch_tanh": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_python_tanh": "gelu_new",
    "gelu_python": "gelu",
    "swish": "silu",
}

# Keys that other architectures' files have and that change the network, with the values that leave it as it is.
_CHANGES: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False, None),
    "attention_bias": (True, None),
    "attention_window": (None,),
    "inner_group_num": (1,),
    "is_decoder": (False, None),
    "is_encoder_decoder": (False, None),
    "layer_types": (None,),
    "mlp_bias": (True, None),
    "norm_bias": (True, None),
    "num_experts": (None, 0, 1),
    "position_biased_input": (True, None),
    "position_embedding_type": ("absolute", None),
    "pos_att_type": (None,),
    "pruned_heads": (None, {}, []),
    "relative_attention": (False, None),
    "rope_parameters": (None,),
    "rope_theta": (None,),
    "rotary_value": (False, None),
    "sliding_window": (None,),
    "use_bias": (True, None),
    "use_rotary_embeddings": (False, None),
}

#: BERT's sizes: name -> (layers L, hidden size H, attention heads N).
SIZES = {
    name: (size["num_hidden_layers"], size["hidden_size"], size["num_attention_heads"])
    for name, size in BERT.sizes.items()
}

# What a setting that only some architectures have means, for the message that refuses it.
_MEANINGS = {
    "embedding_size": " (a narrower token table with a projection, as ALBERT and ELECTRA have it)",
    "num_hidden_groups": " (layers that share their weights, as in ALBERT)",
}
#: model_type of an encoder that is not read -> why, and what to do.
_NOT_READ = {
    "neobert": "NeoBERT's layers are given only as code in its repository, which is never run, and Transformers has no "
    "class of it to compare with; take an encoder of the same kind, such as answerdotai/ModernBERT-base",
}
_ADVICE = dict.fromkeys(_MEANINGS, ": leave the key out, or give the model_type that the weights have")

# The largest values that a file can have. Code loops over the layers, so a huge value would cost time and memory.
_LARGEST = {"num_hidden_layers": 10_000, "num_attention_heads": 10_000}
_LARGEST_OTHER = 2**31 - 1

#: Name of the settings file beside a Google checkpoint -> the architecture.
GOOGLE_SETTINGS = {
    architecture.google_settings: architecture
    for architecture in ARCHITECTURES.values()
    if architecture.google_settings
}


# The settings that only the architectures have whose records give a default.
_OF_SOME_ARCHITECTURES = (
    "local_attention",
    "global_attn_every_n_layers",
    "global_rope_theta",
    "local_rope_theta",
    "position_buckets",
    "max_relative_positions",
)


class ConfigError(ValueError):
    """An invalid model setting: the message names it, its value and the allowed values."""


class UnknownSetting(UserWarning):
    """A key of config.json that is not known here."""


@dataclass(frozen=True)
class BertConfig:
    """The settings of one model (Devlin et al. 2019, section 3; defaults: BERT base, uncased).

    Args:
        vocab_size: int. The rows of the token embedding table, V >= 1.
        hidden_size: int. The width H of the hidden states, a multiple of `num_attention_heads`.
        num_hidden_layers: int. The number of encoder layers, L >= 1.
        num_attention_heads: int. The number of attention heads in each layer, N >= 1.
        intermediate_size: int. The width of the feed-forward block; 4 H in all released models.
        hidden_act: str. "gelu" (exact, erf), "gelu_new" (tanh approximation), "relu", "gelu_10" (exact, clipped to
            -10 and 10), "quick_gelu" (x sigmoid(1.702 x)), "silu" or "tanh".
        hidden_dropout_prob: float. The dropout rate of the embeddings and of both sub-layer outputs, in [0, 1).
        attention_probs_dropout_prob: float. The dropout rate of the attention probabilities, in [0, 1).
        max_position_embeddings: int. The rows of the position embedding table, which limit the length of the input.
        type_vocab_size: int. The rows of the segment embedding table; 0 for no table. With fewer than 2 rows,
            segment ids are ignored.
        initializer_range: float. The standard deviation of the truncated normal initializer.
        layer_norm_eps: float. The epsilon of every layer normalization.
        pad_token_id: int. The id of the padding token.
        model_type: str. The architecture, a key of `bert_tf.architectures.ARCHITECTURES`.
        embedding_size: int or None. The width E of the three embedding tables; None for H. If E differs from H, and
            in ALBERT always, the embeddings are projected to H.
        num_hidden_groups: int or None. The number of sets of layer weights, each shared by neighbouring layers; None
            for one set per layer.
        tie_word_embeddings: bool. Whether the MLM head uses the token embedding table; False for a table of its own.
        local_attention: int or None. The width of the window of a layer with local attention: a token attends to half
            of it on each side.
        global_attn_every_n_layers: int or None. Every how many layers, from the first, a token attends to all tokens.
        global_rope_theta, local_rope_theta: float or None. The base of the rotary positions in layers with global and
            local attention.
        position_buckets: int or None. The buckets of relative positions on each side.
        max_relative_positions: int or None. The distance at which these buckets end.
            An architecture without these six settings has None.

    Raises:
        ConfigError: a value is out of range or has the wrong type.

    Example:
        >>> config = BertConfig.named("tiny", vocab_size=1000)
        >>> config.num_hidden_layers, config.hidden_size, config.head_size
        (2, 128, 64)
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
    tie_word_embeddings: bool = True
    local_attention: int | None = None
    global_attn_every_n_layers: int | None = None
    global_rope_theta: float | None = None
    local_rope_theta: float | None = None
    position_buckets: int | None = None
    max_relative_positions: int | None = None

    def __post_init__(self) -> None:
        _check_choice("model_type", self.model_type, ARCHITECTURES)
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
        ):
            _check_integer(name, getattr(self, name), minimum=1)
        for name in ("pad_token_id", "type_vocab_size"):
            _check_integer(name, getattr(self, name), minimum=0)
        for name in ("embedding_size", "num_hidden_groups"):
            if getattr(self, name) is not None:
                _check_integer(name, getattr(self, name), minimum=1)
        for name in _OF_SOME_ARCHITECTURES:
            known, value = name in self.architecture.defaults, getattr(self, name)
            if known != (value is not None):
                raise ConfigError(f"{name} is {value!r}; {self._why_setting(known)}.")
            if known and _check_number(name, value) <= 0:
                raise ConfigError(f"{name} is {value}; it must be a positive number.")
        for name, value in self.architecture.only.items():
            if getattr(self, name) != value:
                raise ConfigError(
                    f"{name} is {getattr(self, name)!r}{_MEANINGS.get(name, '')}; in a model of type "
                    f"{self.model_type!r} it must be {value!r}{_ADVICE.get(name, '')}."
                )
        if self.position_offset >= self.max_position_embeddings:
            raise ConfigError(
                f"max_position_embeddings is {self.max_position_embeddings}, but positions "
                f"start at {self.position_offset} in this model; give a larger number."
            )
        if self.num_hidden_layers % (self.num_hidden_groups or 1):
            raise ConfigError(
                f"num_hidden_layers {self.num_hidden_layers} cannot be divided into "
                f"num_hidden_groups {self.num_hidden_groups}; choose a multiple."
            )
        if self.pad_token_id >= self.vocab_size:
            raise ConfigError(
                f"pad_token_id is {self.pad_token_id}, but the vocabulary has only "
                f"{self.vocab_size} rows; give a smaller id."
            )
        if self.stacks > 1:
            for name in ("hidden_size", "num_attention_heads", "intermediate_size"):
                if getattr(self, name) % self.stacks:
                    raise ConfigError(
                        f"{name} is {getattr(self, name)}; {self.architecture.with_article} model divides it into "
                        f"{self.stacks} stacks: choose a multiple."
                    )
        if self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"hidden_size {self.hidden_size} cannot be divided into num_attention_heads "
                f"{self.num_attention_heads}; choose a multiple of the number of heads."
            )
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            value = _check_number(name, getattr(self, name))
            if not 0 <= value < 1:
                raise ConfigError(f"{name} is {value}; a dropout rate must be in [0, 1).")
        for name in ("initializer_range", "layer_norm_eps"):
            value = _check_number(name, getattr(self, name))
            if not 0 < value < float("inf"):
                raise ConfigError(f"{name} is {value}; it must be a positive number.")
        _check_choice("hidden_act", self.hidden_act, _ACTIVATIONS)
        _check_choice("tie_word_embeddings", self.tie_word_embeddings, (True, False))

    def _why_setting(self, known):
        return f"{self.architecture.with_article} model " + ("needs it" if known else "has no such setting")

    @property
    def head_size(self) -> int:
        """The width D of one attention head: H / N."""
        return self.hidden_size // self.num_attention_heads

    @property
    def architecture(self) -> Architecture:
        """The `bert_tf.architectures.Architecture` of the model."""
        return ARCHITECTURES[self.model_type]

    @property
    def mlm_act(self) -> str:
        """The activation of the MLM head, as `hidden_act`."""
        return self.architecture.mlm_act or self.hidden_act

    @property
    def embedding_width(self) -> int:
        """The width E of the embedding tables; with two stacks, the width of one stack."""
        return self.hidden_size // self.stacks if self.embedding_size is None else self.embedding_size

    @property
    def stacks(self) -> int:
        """The number of parallel stacks of layers; H, heads and feed-forward width are divided among them."""
        return self.architecture.stacks

    @property
    def stack_names(self) -> tuple[str, ...]:
        """The suffix of each stack in the names of a layer's tensors."""
        return ("",) if self.stacks == 1 else (".left", ".right")

    @property
    def has_embedding_projection(self) -> bool:
        """Whether a matrix projects the embeddings from E to H."""
        is_needed = self.embedding_width != self.hidden_size or self.architecture.projects_embeddings
        return self.stacks == 1 and is_needed

    @property
    def position_offset(self) -> int:
        """The row of the position embedding table for the first token."""
        return self.pad_token_id + 1 if self.architecture.positions_after_pad else 0

    @property
    def max_tokens(self) -> int:
        """The largest number of tokens in an input."""
        return self.max_position_embeddings - self.position_offset

    @property
    def layer_groups(self) -> tuple[int, ...]:
        """For each layer, the number of the set of weights that it uses."""
        groups = self.num_hidden_layers if self.num_hidden_groups is None else self.num_hidden_groups
        return tuple(index * groups // self.num_hidden_layers for index in range(self.num_hidden_layers))

    @property
    def max_frozen_layers(self) -> tuple[int, ...]:
        """The numbers of lowest layers that can be frozen, because they share no weights with the layers above."""
        groups = self.layer_groups
        return (0, *(count for count in range(1, len(groups)) if groups[count - 1] != groups[count]), len(groups))

    def attention_window(self, layer: int) -> int | None:
        """The width of the window of a layer with local attention, the layers from 0; None for any other layer."""
        every = self.global_attn_every_n_layers
        return self.local_attention if every is not None and layer % every else None

    @property
    def size_name(self) -> str | None:
        """The name of the architecture's size with these layers, widths and heads, or None."""
        sizes = {name: BertConfig.named(name, self.model_type) for name in self.architecture.sizes}
        return next((name for name, config in sizes.items() if config._shape == self._shape), None)

    @property
    def _shape(self):
        return self.num_hidden_layers, self.hidden_size, self.num_attention_heads, self.embedding_width

    def replace(self, **changes: Any) -> "BertConfig":
        """Return a copy with some settings changed; all settings are checked again."""
        return dataclasses.replace(self, **changes)

    @classmethod
    def named(cls, size: str, model_type: str = "bert", **overrides: Any) -> "BertConfig":
        """Return the settings of a named size of an architecture.

        Args:
            size: str. A key of the architecture's `sizes`; for BERT: tiny, mini, small, medium, base or large.
            model_type: str. The architecture.
            **overrides: Other settings.

        Raises:
            ConfigError: the architecture or the size is unknown, or a setting is invalid.
        """
        _check_choice("model_type", model_type, ARCHITECTURES)
        architecture = ARCHITECTURES[model_type]
        if size not in architecture.sizes:
            raise ConfigError(
                f"There is no {architecture.title} size {size!r}; choose from {', '.join(architecture.sizes)}."
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
    def from_dict(cls, values: dict[str, Any]) -> "BertConfig":
        """Create the settings from the content of a Hugging Face ``config.json`` or a Google ``bert_config.json``.

        Settings that do not change the network (`transformers_version`, …) are ignored. A key that is not known is
        ignored with one warning in this process, because many libraries write keys of their own into these files.

        Args:
            values: dict. The content of the file.

        Raises:
            ConfigError: the architecture is unknown, or a setting is not supported (such as relative positions).
        """
        values = dict(values)
        model_type = values.get("model_type", "bert")
        if model_type not in list(ARCHITECTURES):
            reason = _NOT_READ.get(model_type) if isinstance(model_type, str) else None
            raise ConfigError(
                f"model_type is {model_type!r}; {reason or 'the supported types are ' + ', '.join(ARCHITECTURES)}."
            )
        architecture = ARCHITECTURES[model_type]
        if architecture.read_settings is not None:
            try:
                values = architecture.read_settings(values)
            except ValueError as error:
                raise ConfigError(str(error)) from error
        for key, value in architecture.fixed.items():
            if values.pop(key, value) != value:
                raise ConfigError(f"{key} is not {value!r}; {architecture.with_article} model with it cannot be read.")
        values = _by_field(architecture, values)
        allowed = {} if architecture.attention_direction == "bidirectional" else {"is_decoder": (True,)}
        for key, harmless in _CHANGES.items():
            is_own_name = key in architecture.settings.values()
            if key in values and not is_own_name and values[key] not in (*harmless, *allowed.get(key, ())):
                raise ConfigError(
                    f"{key} is {values[key]!r:.60}, which changes the network, so the model cannot be read: "
                    f"{architecture.with_article} model has only {' or '.join(map(repr, harmless))} there."
                )
        fields = {field.name for field in dataclasses.fields(cls)}
        known = fields | _BOOKKEEPING | architecture.ignored | set(_CHANGES)
        for key in sorted(set(values) - known):
            _warn_unknown(key, tuple(sorted(fields)))
        settings = {key: value for key, value in values.items() if key in fields - architecture.ignored}
        if settings.get("pad_token_id", 0) is None:
            del settings["pad_token_id"]
        settings = {**architecture.defaults, **architecture.file_defaults, **settings}
        # Some tools write the width of the tables into every file; H is what a file without it means.
        is_hidden_size = settings.get("embedding_size") == settings.get("hidden_size", cls.hidden_size)
        if is_hidden_size and architecture.only.get("embedding_size", 0) is None and architecture.stacks == 1:
            settings["embedding_size"] = None
        activation = settings.get("hidden_act", "gelu")
        if isinstance(activation, str):
            activation = _ACTIVATION_ALIASES.get(activation, activation)
        return cls(**{**settings, "hidden_act": activation})

    @classmethod
    def from_json(cls, path: str | os.PathLike) -> "BertConfig":
        """Read the settings from a file in either format; the name of the file tells Google's format.

        Raises:
            ConfigError: the file is not a JSON object or a setting is invalid; the message names the file.
        """
        path = Path(path)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is not a JSON file: {error}.") from error
        if not isinstance(values, dict):
            raise ConfigError(f"{path} holds a JSON {json_kind(values)}; the settings must be an object.")
        if path.name in GOOGLE_SETTINGS:
            values = GOOGLE_SETTINGS[path.name].from_google(values)
        try:
            return cls.from_dict(values)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of this dataclass as a plain dict."""
        return dataclasses.asdict(self)

    def to_hf_dict(self) -> dict[str, Any]:
        """Return the content of a Hugging Face ``config.json``."""
        names, fields = self.architecture.settings, self._file_fields()
        return {
            "architectures": [self.architecture.transformers_class(self.architecture.trained)],
            **({"position_embedding_type": "absolute"} if self.architecture.has_position_table else {}),
            "use_cache": False,
            # Without it, Transformers' BertLMHeadModel would let every token attend to all tokens.
            **({"is_decoder": True} if self.architecture.attention_direction == "left_to_right" else {}),
            **self.architecture.fixed,
            **{names.get(name, name): value for name, value in fields.items()},
        }

    def to_google_dict(self) -> dict[str, Any]:
        """Return the content of a Google ``bert_config.json``, which has no epsilon and no padding id."""
        google_values = {
            name: {value: google_value for google_value, value in values.items()}
            for name, values in self.architecture.google_values.items()
        }
        settings = {name: google_values.get(name, {}).get(value, value) for name, value in self._file_fields().items()}
        del settings["layer_norm_eps"], settings["pad_token_id"], settings["model_type"]
        return settings

    def _file_fields(self):
        """The fields that a settings file of this architecture has.

        A file without a key means the architecture's default. So where there is one, None is written as what it means.
        """
        defaults = self.architecture.defaults
        meant = {"embedding_size": self.embedding_width, "num_hidden_groups": self.num_hidden_layers}
        fields = {
            name: meant[name] if value is None and name in meant and name in defaults else value
            for name, value in self.to_dict().items()
        }
        left_out = (*_LEFT_OUT, ("type_vocab_size", 0)) if defaults.get("type_vocab_size") == 0 else _LEFT_OUT
        return {name: value for name, value in fields.items() if value is not None and (name, value) not in left_out}


@functools.cache
def _warn_unknown(key, fields):
    """Warn once that a key is not known."""
    near = difflib.get_close_matches(key, fields, n=1, cutoff=0.8)
    message = f"The model setting {key!r} is not known and is ignored.{did_you_mean(map(repr, near))}"
    warnings.warn(message, UnknownSetting, stacklevel=2)


_LEFT_OUT = (("tie_word_embeddings", True),)  # settings that a file states only if they have another value


def _by_field(architecture, values):
    """The values of a file by the names of the fields.

    For a setting with a name of its own in the architecture's files, BERT's name is dropped, as Transformers passes it
    over; or it is the one that counts, where Transformers knows both.
    """
    names, known = architecture.settings, architecture.bert_names
    fields = {file_key: name for name, file_key in names.items()}
    # No file of Transformers has ALBERT's key beside such names; our own settings (`to_dict`) have every field.
    is_file = "num_hidden_groups" not in values
    by_field = {name: values[key] for key, name in fields.items() if key in values}
    others = {key: value for key, value in values.items() if key not in fields}
    return by_field | {key: value for key, value in others.items() if not (is_file and key in names.keys() - known)}


def _check_choice(name, value, choices):
    if value not in list(choices):
        raise ConfigError(f"{name} is {value!r}; choose from {', '.join(map(str, choices))}.")


def _check_integer(name, value, minimum):
    maximum = _LARGEST.get(name, _LARGEST_OTHER)
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ConfigError(f"{name} is {value!r}; it must be a whole number of at least {minimum}.")
    if value > maximum:
        raise ConfigError(f"{name} is {value}; it can be {maximum:,} at most.")


def _check_number(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"{name} is {value!r}; it must be a number.")
    return value
