"""The limits of a deployment, read from ``explorer.toml``."""

import dataclasses
import fnmatch
import os
import pathlib
import tomllib

from bert_tf.checkpoints.library import listed_name
from bert_tf.files import explorer_folder

ROOT = explorer_folder()

#: What a model can compute in; the names are those of `bert_tf.runtime.PRECISIONS`.
PRECISIONS = ("float32", "bfloat16", "int8")

#: As `precision`: the fastest in which pages may begin on this machine.
_AUTO = "auto"

#: The prefix of the names of what visitors train: the models that they fine-tune, and the runs on their texts.
OWN_PREFIX = "own-"


class LimitsError(ValueError):
    """The limits file cannot be read, or holds an unknown key or a value of the wrong kind."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """The limits for visitors; one attribute for each key of ``explorer.toml``, which describes them."""

    max_characters: int = 100_000
    max_tokens: int = 8_192
    max_link_characters: int = 4_000
    default: str = "bert-base-cased-embedded"
    precision: str = "float32"
    offered: tuple[str, ...] = ()
    download: bool = True
    repositories: tuple[str, ...] = ("*",)
    warm: bool = True
    tensorflow: bool = True
    max_map_megabytes: int = 4_500
    max_megabytes: int = 2_000
    max_session_megabytes: int = 256
    idle_minutes: int = 10
    restart: bool = False
    max_masks: int = 32
    max_top_k: int = 20
    max_jobs: int = 2
    max_sentences: int = 100
    max_file_kilobytes: int = 1_000
    max_visit_upload_megabytes: int = 10
    max_all_upload_megabytes: int = 200
    max_rows: int = 1_000
    max_row_characters: int = 2_000
    runs: str = ""
    train: bool = True
    delete_any: bool = True
    max_text: int = 500_000
    max_steps: int = 2_000
    max_minutes: int = 30
    max_runs: int = 1
    max_epochs: int = 10
    max_models: int = 8
    max_trainings: int = 8
    max_snapshot_megabytes: int = 1_000

    def gets(self, repo: str) -> bool:
        """Whether visitors may download a repository of the hub, OWNER/NAME, that is not in the registry."""
        return self.download and any(fnmatch.fnmatchcase(repo.lower(), one.lower()) for one in self.repositories)

    def offers(self, name: str) -> bool:
        """Whether visitors may choose the model called ``name``; they always may choose a model that a visitor made."""
        return not self.offered or name in self.offered or name.startswith(OWN_PREFIX)


_SECTIONS = {
    "text": ("max_characters", "max_tokens", "max_link_characters"),
    "models": ("default", "precision", "offered", "download", "repositories", "warm", "tensorflow"),
    "cache": (
        "max_map_megabytes",
        "max_megabytes",
        "max_session_megabytes",
        "max_snapshot_megabytes",
        "idle_minutes",
        "restart",
    ),
    "predict": ("max_masks", "max_top_k"),
    "jobs": ("max_jobs",),
    "training": (
        "runs",
        "train",
        "delete_any",
        "max_text",
        "max_steps",
        "max_minutes",
        "max_runs",
        "max_trainings",
        "max_epochs",
        "max_models",
    ),
    "files": (
        "max_sentences",
        "max_file_kilobytes",
        "max_visit_upload_megabytes",
        "max_all_upload_megabytes",
        "max_rows",
        "max_row_characters",
    ),
}
_SMALLEST = {"max_tokens": 4}
#: Keys of earlier versions, and the key that has taken their place.
_REPLACED = {"max_loaded": "max_megabytes", "max_trace_megabytes": "max_megabytes"}


def read_limits(path: str | os.PathLike | None = None) -> Limits:
    """Read the limits from ``path``, else from ``$BERT_TF_EXPLORER``, else from the project's ``explorer.toml``.

    Raises:
        LimitsError: the file cannot be read; an unknown section or key, or a value of the wrong kind.
    """
    path = pathlib.Path(path or os.environ.get("BERT_TF_EXPLORER") or ROOT / "explorer.toml").absolute()
    try:
        table = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        # Not the limits of a laptop instead: a public server would take everyone's trainings and downloads.
        raise LimitsError(f"The limits file {path} cannot be read: {error.strerror}. Correct its name.") from error
    except UnicodeDecodeError as error:
        raise LimitsError(f"{path} is not in UTF-8: {error}. Save it in that encoding.") from error
    except tomllib.TOMLDecodeError as error:
        raise LimitsError(f"{path} is not valid TOML: {error}. Correct the line it names.") from error
    values = {}
    for section, keys in table.items():
        if section in _SECTIONS and not isinstance(keys, dict):
            raise LimitsError(f"{path}: {section} is a section: write [{section}] once, and its keys below.")
        if not isinstance(keys, dict):
            raise LimitsError(f"{path}: the key {section!r:.80} is in no section; known are {', '.join(_SECTIONS)}.")
        if section not in _SECTIONS:
            raise LimitsError(f"{path}: unknown section [{section}]; known are {', '.join(_SECTIONS)}.")
        for key, value in keys.items():
            if key in _REPLACED:
                raise LimitsError(f"{path}: {key} has become {_REPLACED[key]} in [cache]; explorer.toml describes it.")
            if key not in _SECTIONS[section]:
                raise LimitsError(
                    f"{path}: unknown key {key!r} in [{section}]; known are {', '.join(_SECTIONS[section])}."
                )
            values[key] = _checked(path, key, value)
    return Limits(**values)


def _checked(path, key, value):
    kind = type(getattr(Limits(), key))
    if kind is tuple:
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise LimitsError(f"{path}: {key} must be a list of model names, not {value!r}.")
        return tuple(map(listed_name, value) if key == "offered" else value)
    if type(value) is not kind:
        raise LimitsError(f"{path}: {key} must be of type {kind.__name__}, not {value!r}.")
    if key == "default":
        return listed_name(value)
    if key == "precision":
        return _checked_precision(path, value)
    if kind is int and value < _SMALLEST.get(key, 1):
        raise LimitsError(f"{path}: {key} must be at least {_SMALLEST.get(key, 1)}, not {value}.")
    return value


def _checked_precision(path, value):
    if value == _AUTO:
        from bert_tf.runtime.runtime import fast_precision  # which imports OpenVINO

        return fast_precision()
    if value not in PRECISIONS:
        raise LimitsError(f"{path}: precision must be one of {', '.join([_AUTO, *PRECISIONS])}, not {value!r}.")
    return value
