"""The models on this machine: their folders, a list of them, and the search for a model by name.

This module does not import TensorFlow: it reads settings from config.json and heads from the header of
model.safetensors or the index of a Google checkpoint.
"""

import functools
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs

from bert_tf.checkpoints.formats.google import find_prefix, google_heads
from bert_tf.checkpoints.formats.huggingface import open_weights
from bert_tf.checkpoints.formats.kerashub import is_preset, preset_config, preset_heads
from bert_tf.checkpoints.formats.safetensors_folder import has_safetensors
from bert_tf.checkpoints.hub_repository import LONGEST_NAME, MODULES_FILE, folder_name, parse_name
from bert_tf.checkpoints.model_checksums import WEIGHT_FILES
from bert_tf.checkpoints.registry import RELEASED, closest_names, released
from bert_tf.checkpoints.tensor_names import canonical_name, heads_present, task_names
from bert_tf.config import GOOGLE_SETTINGS, BertConfig, ConfigError
from bert_tf.errors import CheckpointError, UnknownModel, did_you_mean
from bert_tf.files import entries, explorer_folder
from bert_tf.parameters import parameter_counts

_PLAIN_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
_INVALID_NAME = (
    f"no model can be chosen by such a folder name; rename it: at most {LONGEST_NAME} letters (a to z), digits, "
    '".", "_" and "-", with a letter or digit first.'
)
_LICENCE = re.compile(r"^licen[sc]e:\s*(.+)$", re.MULTILINE)
_LANGUAGE = re.compile(r"^language:\s*(.+)$", re.MULTILINE)
_HEADS_HERE = re.compile(r"^heads:\s*trained here$", re.MULTILINE)
_SOURCE = re.compile(r"^(?:source|base_model):\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class ModelInfo:
    """The properties of a model that can be read without loading it.

    Attributes:
        name: str. The name for `find` and `download`.
        path: Path or None. The folder; None if the model is not installed.
        size_bytes: int. The size of the installed files, or of the download.
        licence: str. The licence, "" if unknown.
        source: str. The source, "" if unknown.
        heads: frozenset of str or None. The heads (`bert_tf.model_outputs.ALL_HEADS`); None if the model must be
            loaded to know them.
        installed: bool. Whether the model is on this machine.
        kind: str. "embedded", "folder" (in the models folder), "path" (elsewhere) or "released".
        config: `BertConfig` or None. The settings; None if they cannot be read.
        parameters: int or None. The number of parameters, with the heads.
        aliases: tuple of str. Further names.
        problem: str or None. One sentence if the folder cannot be used.
        languages: tuple of str. The codes of the languages that the card names, as "en"; () if unknown.
        heads_trained_here: bool. Whether the card says that this project trained the heads anew.
    """

    name: str
    path: Path | None
    size_bytes: int
    licence: str
    source: str
    heads: frozenset[str] | None
    installed: bool
    kind: str
    config: BertConfig | None = None
    parameters: int | None = None
    aliases: tuple[str, ...] = ()
    problem: str | None = None
    languages: tuple[str, ...] = ()
    heads_trained_here: bool = False


def embedded_dir() -> Path:
    """Return the folder of the models that are shipped with the project."""
    return explorer_folder() / "assets" / "models"


def models_dir() -> Path:
    """Return the folder of downloaded and user-added models: BERT_TF_HOME, else the user's cache folder."""
    home = os.path.expanduser(os.environ.get("BERT_TF_HOME", ""))  # "~" with an unknown user stays as it is
    # Without HOME the cache folder is relative, too.
    return (Path(home) if home else platformdirs.user_cache_path("bert_tf", appauthor=False)).absolute()


def find(name_or_folder: str | os.PathLike, allow_paths: bool = True) -> Path:
    """Return the folder of a model.

    Args:
        name_or_folder: str or path. A name of `list_models()`; an alias or hub repository of a released model, in
            any letter case; a downloaded repository OWNER/NAME or OWNER/NAME@REVISION; or, with `allow_paths`, the
            path of a folder.
        allow_paths: bool. False for text from an untrusted user (the web pages): the text is then never used as a
            path.

    Returns:
        Path of an existing folder.

    Raises:
        UnknownModel: there is no such model (the message has the closest names, or the command that downloads it), or
            the value is neither a str nor a path.
    """
    text = _text(name_or_folder)
    release = released(text)
    for name in dict.fromkeys((text, release.name if release else text)):
        if repository := parse_name(name):
            name = folder_name(*repository)
        if _PLAIN_NAME.fullmatch(name):
            for root in (embedded_dir(), models_dir()):
                if looks_like_model(root / name):
                    return root / name
    path = _path(text) if allow_paths else None
    # A folder named like a released model is that model only if it holds weights.
    if path and path.is_dir() and (not release or looks_like_model(path)):
        return path
    raise UnknownModel(_not_found(text, release, path, allow_paths))


def listed_name(name: str) -> str:
    """Return the name in `list_models()` of a model, installed or not, that may be named as `find` takes it.

    A name that leads to no model and to no repository is returned as it is.
    """
    try:
        return find(name, allow_paths=False).name
    except UnknownModel:
        release, repository = released(name), parse_name(name)
        return release.name if release else folder_name(*repository) if repository else name


def _text(name_or_folder):
    text = os.fspath(name_or_folder) if isinstance(name_or_folder, os.PathLike) else name_or_folder
    if isinstance(text, str):
        return text
    raise UnknownModel(
        f"Give the name or the folder of a model, not {text!r:.60}; bert_tf.load() loads the embedded one."
    )


def _path(text):
    """The file or folder at a path, or None."""
    try:
        path = Path(text).expanduser()
        return path if text.strip() and path.exists() else None
    except (OSError, RuntimeError, ValueError):  # the name is too long, has an unknown user after "~", or a zero byte
        return None


def list_models() -> list[ModelInfo]:
    """List all models: the embedded models, those in the models folder, then the released models.

    Returns:
        List of `ModelInfo`. An installed released model is listed once, with its folder. A folder with an invalid
        name or unusable files is listed with its `problem`.
    """
    installed: dict[str, ModelInfo] = {}
    for kind, root in (("embedded", embedded_dir()), ("folder", models_dir())):
        for folder in _model_folders(root):
            installed.setdefault(folder.name, _describe(folder, kind))
    return list(installed.values()) + [_from_registry(model) for model in RELEASED if model.name not in installed]


def describe(name_or_folder: str | os.PathLike) -> ModelInfo:
    """Describe one model without loading it.

    Args:
        name_or_folder: str or path. A name or alias of `list_models()`, or what `find` takes.

    Returns:
        `ModelInfo`; with its `problem` if its files cannot be used.

    Raises:
        UnknownModel: as `find`.
    """
    text = _text(name_or_folder)
    model = next((model for model in list_models() if text in (model.name, *model.aliases)), None)
    return model or _describe(find(name_or_folder), "path")


def _model_folders(root):
    # A folder whose name begins with a dot is an unfinished download or conversion.
    return sorted(path for path in entries(root) if not path.name.startswith(".") and looks_like_model(path))


def looks_like_model(folder: Path) -> bool:
    """Return whether a folder exists and holds weight files, readable or not; False if it may not be read itself."""
    try:
        paths = (path for pattern in WEIGHT_FILES for path in encoder_folder(folder).glob(pattern))
        return folder.is_dir() and any(not path.name.startswith(".") for path in paths)
    except OSError:
        return False


def _not_found(text, release, path, allow_paths):
    if release:
        return (
            f"{release.name} is not on this machine; get it ({release.size_bytes / 1e6:.0f} MB) with "
            f"`python -m bert_tf download {release.name}`."
        )
    if path:
        return f"{path} is not a folder; give the folder that holds the model's files."
    if parse_name(text):
        return f"{text} is not on this machine; `python -m bert_tf download {text}` looks it up on the hub and gets it."
    installed = [folder.name for root in (embedded_dir(), models_dir()) for folder in _model_folders(root)]
    if text in installed:
        return f"The models directory holds {text!r}, but {_INVALID_NAME}"
    hint = did_you_mean(closest_names(text, installed)) or " `python -m bert_tf models` lists them all."
    noun = "model or folder" if allow_paths else "model"
    return f"There is no {noun} called {text[:200]!r}.{hint}"


def _describe(folder, kind):
    release = released(folder.name)
    name = "".join(letter if letter.isprintable() else "?" for letter in folder.name)
    info = ModelInfo(
        name,
        folder,
        0,
        licence=release.licence if release else "",
        source=release.source if release else "",
        heads=None,
        installed=True,
        kind=kind,
        aliases=release.aliases if release else (),
    )
    try:
        files = _files(folder)
        info = replace(info, size_bytes=sum(size for _, size, _ in files))
        card_path = folder / "README.md"
        card = card_path.read_text(encoding="utf-8", errors="replace")[:4000] if card_path.is_file() else ""
        info = replace(
            info,
            licence=info.licence or _first_match(_LICENCE, card),
            source=info.source or _first_match(_SOURCE, card),
            languages=tuple(re.findall(r"[\w-]+", release.language if release else _first_match(_LANGUAGE, card))),
            heads_trained_here=bool(_HEADS_HERE.search(card)),
        )
        if kind != "path" and not _PLAIN_NAME.fullmatch(folder.name):
            raise CheckpointError(_INVALID_NAME)
        config, heads = _contents(folder, files)
        parameters = None if heads is None else parameter_counts(config, heads)["total"]
        return replace(info, config=config, heads=heads, parameters=parameters)
    except (CheckpointError, ConfigError, OSError) as error:
        return replace(info, problem=str(error))
    except Exception as error:  # one unreadable folder must not hide the others
        return replace(info, problem=f"{folder} cannot be read ({type(error).__name__}: {error}).")


def _files(folder):
    """The files below a folder: tuple of (path, bytes, time of the last change in nanoseconds)."""
    paths = [(path, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
    return tuple((path, status.st_size, status.st_mtime_ns) for path, status in paths)


def weights_state(folder: Path) -> list[list[Any]]:
    """[name, bytes, time of the last change in nanoseconds] of each file of weights below a model folder."""
    return [
        [path.relative_to(folder).as_posix(), size, changed]
        for path, size, changed in _files(folder)
        if any(map(path.match, WEIGHT_FILES))
    ]


@functools.lru_cache(maxsize=256)  # a server lists its models every ten seconds; an error is not kept
def _contents(folder, files):
    """The settings and the heads of a model whose files are as `_files` says: (`BertConfig`, frozenset or None)."""
    config = read_config(folder)
    return config, stored_heads(folder, config)


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
        languages=(model.language,),
    )


def _first_match(pattern, text):
    match = pattern.search(text)
    return match.group(1).strip() if match else ""


def encoder_folder(folder: Path) -> Path:
    """Return the folder with the model's files: of a sentence-transformers model, the folder of its first module."""
    modules = folder / MODULES_FILE
    if (folder / "config.json").is_file() or not modules.is_file():
        return folder
    try:
        path = json.loads(modules.read_text(encoding="utf-8"))[0]["path"]
        inner = folder / path
        # The file could name any folder of this machine.
        return inner if inner.resolve().is_relative_to(folder.resolve()) and inner.is_dir() else folder
    except (ValueError, RecursionError, LookupError, TypeError, OSError):
        return folder


def read_config(folder: Path) -> BertConfig:
    """Read the `BertConfig` of a model folder in any supported format.

    Raises:
        CheckpointError, ConfigError: the settings are missing or invalid; the message names the file.
    """
    folder = encoder_folder(folder)
    if is_preset(folder):
        return preset_config(folder)
    for name in ("config.json", *GOOGLE_SETTINGS):
        if (folder / name).is_file():
            return BertConfig.from_json(folder / name)
    names = ", ".join(("config.json", *GOOGLE_SETTINGS))
    raise CheckpointError(f"{folder} has no settings ({names}); a model folder needs one of these files.")


def is_google(folder: Path) -> bool:
    """Return whether the weights of a folder are read from a Google checkpoint: it has no safetensors."""
    return not has_safetensors(folder) and find_prefix(folder) is not None


def stored_heads(folder: Path, config: BertConfig) -> frozenset[str] | None:
    """Return the heads in a folder, from the headers of its safetensors files or the index of a Google checkpoint.

    Returns:
        frozenset of str; None if the model must be loaded to know them.
    """
    folder = encoder_folder(folder)
    if is_preset(folder):
        return preset_heads(folder, config)
    if is_google(folder):
        return google_heads(folder, config)
    names = {canonical_name(name, config.architecture) for name in open_weights(folder)}
    return heads_present(names - set(task_names(names, config.architecture)))
