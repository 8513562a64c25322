"""The models on this machine: where they lie, which there are, and a name turned into a folder.

Nothing here imports TensorFlow: settings come from config.json, heads from the header of model.safetensors or the index
of a Google checkpoint.
"""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs

from bert_tf.checkpoints.formats.google import google_heads
from bert_tf.checkpoints.formats.kerashub import is_preset, preset_config
from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
from bert_tf.checkpoints.registry import RELEASED, closest_names, released
from bert_tf.checkpoints.tensor_names import canonical_name, heads_present
from bert_tf.config import GOOGLE_SETTINGS, BertConfig, ConfigError
from bert_tf.errors import CheckpointError, UnknownModel
from bert_tf.parameters import parameter_counts

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_UNFIT_NAME = (
    'a folder of such a name cannot be asked for; rename it to letters (a to z), digits, ".", "_" and "-", '
    "a letter or digit first, 100 at most."
)
_WEIGHT_FILES = ("*.safetensors", "*.ckpt*", "*.index", "*.weights.h5", "pytorch_model.bin")
_LICENCE = re.compile(r"^licen[sc]e:\s*(.+)$", re.MULTILINE)
_SOURCE = re.compile(r"^(?:source|base_model):\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class ModelInfo:
    """What is known of a model without loading it.

    Attributes:
        name: what `find` and `download` take. path: its folder, None when not on this machine.
        size_bytes: of its files here, else of the download. licence, source: text, "" where not stated.
        heads: frozenset of those it has (`checkpoints.tensor_names.HEADS`); None where only loading can tell.
        installed: on this machine. kind: `"embedded"`, `"folder"` or `"released"`.
        config: BertConfig, None where the folder's settings cannot be read. parameters: with the heads.
        problem: one sentence when the folder cannot be used, else None.
    """

    name: str
    path: Path | None
    size_bytes: int
    licence: str
    source: str
    heads: frozenset | None
    installed: bool
    kind: str
    config: BertConfig | None = None
    parameters: int | None = None
    aliases: tuple = ()
    problem: str | None = None


def embedded_dir() -> Path:
    """The folder of the models that are shipped with the project."""
    return Path(__file__).resolve().parents[2] / "assets" / "models"


def models_dir() -> Path:
    """The folder of downloaded and dropped-in models: BERT_TF_HOME, else the user's cache folder."""
    home = os.environ.get("BERT_TF_HOME")
    return Path(home).expanduser() if home else platformdirs.user_cache_path("bert_tf", appauthor=False)


def find(name_or_folder: str | os.PathLike, allow_paths: bool = True) -> Path:
    """The folder of a model.

    Args:
        name_or_folder: a name from `list_models()`; else an alias or a hub repository of a released one, in any
            letter case; else, with `allow_paths`, the path of a folder.
        allow_paths: False where the text comes from a stranger (the web pages): then it never reaches the
            file system as a path.

    Returns: Path of an existing folder.

    Raises:
        UnknownModel: no such model; the message has the nearest names, or the command that downloads it.
    """
    text = os.fspath(name_or_folder)
    known = released(text)
    for name in dict.fromkeys((text, known.name if known else text)):
        if _PLAIN_NAME.fullmatch(name):
            for root in (embedded_dir(), models_dir()):
                if looks_like_model(root / name):
                    return root / name
    folder = _folder(text) if allow_paths else None
    # Any folder under the name of a released model is not yet that model.
    if folder and (not known or looks_like_model(folder)):
        return folder
    raise UnknownModel(_not_found(text, known, allow_paths))


def _folder(text):
    try:
        folder = Path(text).expanduser()
        return folder if text.strip() and folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long a name, an unknown user after "~", a zero byte
        return None


def list_models() -> list[ModelInfo]:
    """Every model that can be named: the embedded ones, those in the models folder, then the released ones.

    Returns: list of ModelInfo; a released model that is installed is listed once, with its folder. A folder that no
        name leads to, or whose files are unfit, is listed with its `problem`.
    """
    found: dict[str, ModelInfo] = {}
    for kind, root in (("embedded", embedded_dir()), ("folder", models_dir())):
        for folder in _model_folders(root):
            found.setdefault(folder.name, _describe(folder, kind))
    return list(found.values()) + [_from_registry(model) for model in RELEASED if model.name not in found]


def _model_folders(root):
    if not root.is_dir():
        return []
    # What begins with a dot is a model on its way: a download, a conversion.
    return sorted(path for path in root.iterdir() if not path.name.startswith(".") and looks_like_model(path))


def looks_like_model(folder: Path) -> bool:
    """Whether a folder is there and holds weights, whatever their state."""
    found = (path for pattern in _WEIGHT_FILES for path in folder.glob(pattern))
    return folder.is_dir() and any(not path.name.startswith(".") for path in found)


def _not_found(text, known, allow_paths):
    if known:
        return (
            f"{known.name} is not on this machine; get it ({known.size_bytes / 1e6:.0f} MB) with "
            f"`python -m bert_tf download {known.name}`."
        )
    installed = [folder.name for root in (embedded_dir(), models_dir()) for folder in _model_folders(root)]
    if text in installed:
        return f"The models directory holds {text!r}, but {_UNFIT_NAME}"
    near = closest_names(text, installed)
    hint = f" Did you mean {' or '.join(near)}?" if near else " `python -m bert_tf models` lists them all."
    what = "model or folder" if allow_paths else "model"
    return f"There is no {what} called {text[:200]!r}.{hint}"


def _describe(folder, kind):
    known = released(folder.name)
    name = "".join(letter if letter.isprintable() else "?" for letter in folder.name)
    info = ModelInfo(
        name,
        folder,
        0,
        licence=known.licence if known else "",
        source=known.source if known else "",
        heads=None,
        installed=True,
        kind=kind,
        aliases=known.aliases if known else (),
    )
    try:
        info = replace(info, size_bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()))
        card = folder / "README.md"
        text = card.read_text(encoding="utf-8", errors="replace")[:4000] if card.is_file() else ""
        info = replace(
            info, licence=info.licence or _first(_LICENCE, text), source=info.source or _first(_SOURCE, text)
        )
        if not _PLAIN_NAME.fullmatch(folder.name):
            raise CheckpointError(_UNFIT_NAME)
        config = read_config(folder)
        heads = stored_heads(folder, config)
        parameters = None if heads is None else parameter_counts(config, heads)["total"]
        return replace(info, config=config, heads=heads, parameters=parameters)
    except (CheckpointError, ConfigError, OSError) as error:
        return replace(info, problem=str(error))
    except Exception as error:  # whatever one folder holds, the others are listed
        return replace(info, problem=f"{folder} cannot be read ({type(error).__name__}: {error}).")


def _from_registry(model):
    return ModelInfo(
        model.name,
        None,
        model.size_bytes,
        model.licence,
        model.source,
        model.heads,
        installed=False,
        kind="released",
        config=model.config,
        parameters=model.parameters,
        aliases=model.aliases,
    )


def _first(pattern, text):
    match = pattern.search(text)
    return match.group(1).strip() if match else ""


def read_config(folder: Path) -> BertConfig:
    """The BertConfig of a model folder in any of the formats that can be read.

    Raises: CheckpointError, ConfigError: no settings, or ones that cannot be; the message names the file.
    """
    if is_preset(folder):
        return preset_config(folder)
    for name in ("config.json", *GOOGLE_SETTINGS):
        if (folder / name).is_file():
            return BertConfig.from_json(folder / name)
    names = ", ".join(("config.json", *GOOGLE_SETTINGS))
    raise CheckpointError(f"{folder} has no settings ({names}); a model folder needs one of these files.")


def stored_heads(folder: Path, config: BertConfig) -> frozenset[str]:
    """The heads in a folder, from the headers of its safetensors files or the index of a Google checkpoint.

    Returns: frozenset; None where only loading can tell.
    """
    if is_preset(folder):
        return frozenset({"pooler"})
    if next(folder.glob("*.index"), None):
        return google_heads(folder, config)
    return heads_present(canonical_name(name, config.architecture) for name in open_tensors(folder))
