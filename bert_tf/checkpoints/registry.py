"""The released models that can be downloaded by name. This module needs no TensorFlow and no network.

A size is that of the fp32 `model.safetensors`; where the size of the file is not known, it is the size of the weights.
A SHA-256 stands only where it is known for the pinned revision; the other downloads are checked against the hash that
the hub declares.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

from bert_tf.architectures import ARCHITECTURES, BERT
from bert_tf.config import BertConfig
from bert_tf.parameters import parameter_counts

UNCASED_VOCABULARY, CASED_VOCABULARY = 30522, 28996


@dataclass(frozen=True)
class ReleasedModel:
    """One released model.

    Attributes:
        name: str. The name in this project, and of its folder.
        repo: str. The repository on the Hugging Face hub.
        config: `BertConfig`. The settings.
        source: str. The paper and repository, for display.
        aliases: tuple of str. Further names.
        revision: str. A branch or a pinned commit.
        sha256: str or None. The hash of model.safetensors at `revision`; None if unknown.
        licence: str. The licence, for display; "" if the model's card states none.
        heads: frozenset of str. The heads that the weights include.
        exact_size: int or None. The size of model.safetensors in bytes; None if unknown.
        language: str. The code of the language of the training text, "multilingual" for many.
        is_listed: bool. Whether the hub's own list of files decides what is fetched, because it is not known here.
    """

    name: str
    repo: str
    config: BertConfig
    source: str
    aliases: tuple[str, ...] = ()
    revision: str = "main"
    sha256: str | None = None
    licence: str = "Apache-2.0"
    heads: frozenset[str] = frozenset(BERT.heads)
    exact_size: int | None = field(default=None, repr=False)
    language: str = "en"
    is_listed: bool = False

    @property
    def parameters(self) -> int:
        """The number of parameters, with all heads."""
        return parameter_counts(self.config, self.heads)["total"]

    @property
    def size_bytes(self) -> int:
        """The bytes to download; without the file's header if only the number of parameters is known."""
        return self.exact_size or 4 * self.parameters


def _original(name, size, cased, **known):
    vocabulary = CASED_VOCABULARY if cased else UNCASED_VOCABULARY
    return ReleasedModel(
        name=name,
        repo=f"google-bert/{name}",
        config=BertConfig.named(size, vocab_size=vocabulary),
        source="Devlin et al. 2019, google-research/bert",
        **known,
    )


_ORIGINALS = (
    _original(
        "bert-base-uncased",
        "base",
        False,
        exact_size=440_449_768,
        revision="86b5e0934494bd15c9632b12f734a8a67f723594",
        sha256="68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3",
    ),
    _original(
        "bert-base-cased",
        "base",
        True,
        exact_size=435_755_784,
        revision="cd5ef92a9fb2f889e972770a36d4ed042daf221e",
        sha256="1d8bdcee6021e2c25f0325e84889b61c2eb26b843eef5659c247af138d64f050",
    ),
    _original("bert-large-uncased", "large", False),
    _original("bert-large-cased", "large", True),
    _original("bert-large-uncased-whole-word-masking", "large", False),
    _original("bert-large-cased-whole-word-masking", "large", True),
)

# Turc et al. 2019, table 1: every combination of these depths and widths was released, with a head size of 64.
MINIATURE_LAYERS = (2, 4, 6, 8, 10, 12)
MINIATURE_WIDTHS = (128, 256, 512, 768)
_MINIATURE_ALIASES = {(2, 128): "bert-tiny", (4, 256): "bert-mini", (4, 512): "bert-small", (8, 512): "bert-medium"}


def _miniature(layers, width):
    heads = width // 64
    name = f"bert_uncased_L-{layers}_H-{width}_A-{heads}"
    alias = _MINIATURE_ALIASES.get((layers, width))
    config = BertConfig(
        vocab_size=UNCASED_VOCABULARY,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    return ReleasedModel(
        name=name,
        repo=f"google/{name}",
        config=config,
        source="Turc et al. 2019, google-research/bert miniatures",
        aliases=(alias,) if alias else (),
    )


_MINIATURES = tuple(_miniature(layers, width) for layers in MINIATURE_LAYERS for width in MINIATURE_WIDTHS)


def _other(name, owner, size, source, heads, **known):
    """A released model of another architecture than BERT; its name begins with the architecture's name."""
    architecture = ARCHITECTURES[name.split("-")[0]]
    config = BertConfig.named(size, architecture.model_type, **known.pop("settings", {}))
    return ReleasedModel(
        name=name,
        repo=f"{owner}/{name}",
        config=config,
        source=f"{architecture.source}, {source}",
        heads=frozenset(heads),
        **known,
    )


# The exact sizes of these files are not known.
_OTHERS = (
    *(
        _other(f"roberta-{size}", "FacebookAI", size, "facebookresearch/fairseq", ("mlm",), licence="MIT")
        for size in ("base", "large")
    ),
    _other("distilbert-base-uncased", "distilbert", "base", "huggingface/transformers", ("mlm",)),
    _other(
        "distilbert-base-cased",
        "distilbert",
        "base",
        "huggingface/transformers",
        ("mlm",),
        settings={"vocab_size": CASED_VOCABULARY},
    ),
    *(
        _other(f"albert-{size}-{version}", "albert", size, "google-research/albert", ("pooler", "mlm"))
        for version in ("v1", "v2")
        for size in ("base", "large", "xlarge", "xxlarge")
    ),
    *(
        _other(f"electra-{size}-discriminator", "google", size, "google-research/electra", ("replaced",))
        for size in ("small", "base", "large")
    ),
    *(
        _other(f"electra-{size}-generator", "google", f"{size}-generator", "google-research/electra", ("mlm",))
        for size in ("small", "base", "large")
    ),
)


def _in_use(repo, size, heads, source, licence, language="en", model_type="bert", **settings):
    """A well-known model whose files are looked up on the hub before they are fetched."""
    return ReleasedModel(
        name=repo.split("/")[1],
        repo=repo,
        config=BertConfig.named(size, model_type, **settings),
        source=source,
        licence=licence,
        heads=frozenset(heads),
        language=language,
        is_listed=True,
    )


_ALL, _MINI_LM = ("pooler", "mlm", "nsp"), {"hidden_size": 384, "intermediate_size": 1536, "num_attention_heads": 12}
_GOOGLE_SOURCE = "Devlin et al. 2019, google-research/bert"

# What is not known of a repository is "": the hub's list of files and its card say it before the weights are fetched.
_IN_USE = (
    *(
        _in_use(f"google-bert/{name}", "base", _ALL, _GOOGLE_SOURCE, "Apache-2.0", language, vocab_size=rows)
        for name, language, rows in (
            ("bert-base-multilingual-cased", "multilingual", 119547),
            ("bert-base-multilingual-uncased", "multilingual", 105879),
            ("bert-base-chinese", "zh", 21128),
        )
    ),
    *(
        _in_use(
            f"FacebookAI/xlm-roberta-{size}",
            size,
            ("mlm",),
            "Conneau et al. 2020, facebookresearch/fairseq",
            "MIT",
            "multilingual",
            "xlm-roberta",
        )
        for size in ("base", "large")
    ),
    _in_use(
        "almanach/camembert-base", "base", ("mlm",), "Martin et al. 2020, camembert-model.fr", "MIT", "fr", "camembert"
    ),
    *(
        _in_use(
            f"microsoft/{name}",
            size,
            ("mlm", "replaced"),
            "He et al. 2021, microsoft/DeBERTa",
            "MIT",
            language,
            "deberta-v2",
            vocab_size=rows,
        )
        for name, size, language, rows in (
            *((f"deberta-v3-{size}", size, "en", 128100) for size in ("xsmall", "small", "base", "large")),
            ("mdeberta-v3-base", "base", "multilingual", 251000),
        )
    ),
    *(
        _in_use(
            f"answerdotai/ModernBERT-{size}",
            size,
            ("mlm",),
            "Warner et al. 2024, AnswerDotAI/ModernBERT",
            "Apache-2.0",
            model_type="modernbert",
        )
        for size in ("base", "large")
    ),
    _in_use(
        "dmis-lab/biobert-base-cased-v1.2", "base", _ALL, "Lee et al. 2020 (BioBERT)", "", vocab_size=CASED_VOCABULARY
    ),
    _in_use("allenai/scibert_scivocab_uncased", "base", _ALL, "Beltagy et al. 2019 (SciBERT)", "", vocab_size=31090),
    _in_use("nlpaueb/legal-bert-base-uncased", "base", _ALL, "Chalkidis et al. 2020 (LegalBERT)", "CC-BY-SA-4.0"),
    _in_use("ProsusAI/finbert", "base", ("pooler",), "Araci 2019 (FinBERT): classifies sentiment", ""),
    _in_use(
        "sentence-transformers/all-MiniLM-L6-v2",
        "base",
        ("pooler",),
        "Wang et al. 2020 (MiniLM), sentence-transformers",
        "Apache-2.0",
        num_hidden_layers=6,
        **_MINI_LM,
    ),
)

#: All released models: the original BERT models, the miniatures, the other architectures, then others in use.
RELEASED = _ORIGINALS + _MINIATURES + _OTHERS + _IN_USE

_BY_NAME = {key.lower(): model for model in RELEASED for key in (model.name, model.repo, *model.aliases)}


def released(name: str) -> ReleasedModel | None:
    """Return the released model of this name, alias or hub repository, in any letter case, or None."""
    return _BY_NAME.get(str(name).lower())


def closest_names(name: str, known: Iterable[str] = ()) -> list[str]:
    """Return up to three names similar to `name`, from the released models and `known`.

    Names that begin with `name` come first, the shortest before the others; then those of `known` that have it between
    hyphens; then the most similar ones.
    """
    known = list(known)
    names = {key.lower(): key for model in RELEASED for key in (model.name, *model.aliases)}
    names.update({key.lower(): key for key in known})
    wanted = str(name).lower().replace(" ", "-").replace("_", "-")
    longer = sorted((key for key in names if wanted and key.startswith(wanted)), key=len)
    parts = [key.lower() for key in known if wanted in key.lower().split("-")]
    near = difflib.get_close_matches(str(name).lower(), list(names), n=3, cutoff=0.5)
    return [names[key] for key in dict.fromkeys([*longer, *parts, *near])][:3]
