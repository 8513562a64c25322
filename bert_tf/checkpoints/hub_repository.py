"""What a repository of the Hugging Face hub holds, read before its weights are fetched: settings, heads, licence, size.

The hub is asked by its library for the list of files and for config.json. Weights are taken from safetensors, else
from the safetensors that the hub's own conversion offers as a pull request (`refs/pr`), else from tf_model.h5. PyTorch
pickles can run code when they are opened, so they are never taken.
"""

import json
import re
import zlib
from dataclasses import dataclass, field, replace

from bert_tf.checkpoints.formats.keras_h5 import H5_FILE
from bert_tf.checkpoints.formats.safetensors_folder import INDEX_FILE, SINGLE_FILE
from bert_tf.checkpoints.model_checksums import VOCABULARY_FILES
from bert_tf.config import BertConfig, ConfigError
from bert_tf.parameters import count_in_words, parameter_counts

#: The files of a tokenizer beside those of its vocabulary.
TOKENIZER_FILES = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
#: The file of sentence-transformers that names the modules of a model.
MODULES_FILE = "modules.json"
#: The files by which sentence-transformers makes vectors of texts.
SENTENCE_FILES = (
    MODULES_FILE,
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "1_Pooling/config.json",
)
#: The most characters of the name of a folder in the models folder, by which `library.find` finds it.
LONGEST_NAME = 100
_NAME = re.compile(r"(?P<repo>[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95})(?:@(?P<revision>[\w-][\w./-]{0,99}))?", re.ASCII)
_PLAIN = re.compile(r"\w[\w.-]*", re.ASCII)  # the name of a file in the folder itself, on every system
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_CONVERTER, _CONVERSION = "SFconvertbot", "Adding `safetensors` variant of this model"
_LARGEST_SETTINGS = 10_000_000  # bytes of a config.json; those of real models have a few kilobytes
# Part of a class name of Transformers -> the heads in its weights, beside the encoder.
_HEADS_OF_CLASS = {"ForPreTraining": "trained", "ForMaskedLM": "mlm", "LMHeadModel": "mlm", "NextSentence": "nsp"}


@dataclass(frozen=True)
class HubFile:
    """One file of a repository.

    Attributes:
        name: str. The path in the repository.
        revision: str. The commit, or the reference of a pull request.
        size: int. The bytes; 0 if the hub does not say.
        sha256: str or None. The hash that the hub declares for a large file.
    """

    name: str
    revision: str
    size: int
    sha256: str | None = None


@dataclass(frozen=True)
class HubRepository:
    """A repository as it is before its weights are fetched.

    Attributes:
        repo: str. The repository, OWNER/NAME.
        revision: str. The commit.
        files: tuple of `HubFile`. The files to fetch; empty if the model cannot be read.
        licence: str. The licence that its card names, "" if it names none.
        config: `BertConfig` or None. The settings; None if they cannot be read.
        heads: tuple of str. The heads that the class in its settings has.
        weights: str. Where the weights come from, for display.
        gated: bool. Whether the hub gives it only to accounts that have accepted its terms.
        problem: str or None. One sentence that says why the model cannot be read, and what to do.
    """

    repo: str
    revision: str
    files: tuple[HubFile, ...] = ()
    licence: str = ""
    config: BertConfig | None = None
    heads: tuple[str, ...] = ()
    weights: str = ""
    gated: bool = False
    problem: str | None = None
    classes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def size_bytes(self) -> int:
        """The bytes to fetch."""
        return sum(file.size for file in self.files)

    @property
    def parameters(self) -> int | None:
        """The number of parameters with the heads; None if the settings cannot be read."""
        return None if self.config is None else parameter_counts(self.config, self.heads)["total"]

    def facts(self) -> list[str]:
        """Return what is known of the model, a few words each."""
        facts = [self.repo]
        if self.config is not None:
            facts.append(
                f"{self.config.architecture.title}, {self.config.num_hidden_layers} layers of {self.config.hidden_size}"
            )
        if self.parameters:
            facts.append(count_in_words(self.parameters))
        if self.classes:
            facts.append(f"saved as {', '.join(self.classes)}")
        if self.config is not None:
            facts.append(f"heads: {', '.join(self.heads) or 'none'}")
        facts.append(f"licence: {self.licence or 'not stated'}")
        if self.files:
            facts.append(f"{self.size_bytes / 1e6:.1f} MB to download ({self.weights})")
        return facts


def parse_name(name: str) -> tuple[str, str | None] | None:
    """Return (OWNER/NAME, revision or None) of OWNER/NAME[@REVISION], or None for any other text."""
    match = _NAME.fullmatch(str(name).strip())
    if match is None or ".." in match[0]:
        return None
    return match["repo"], match["revision"]


def folder_name(repo: str, revision: str | None = None) -> str:
    """Return the name of the folder of a repository in the models folder, as "OWNER--NAME".

    Returns:
        str of at most `LONGEST_NAME` characters; a longer name is cut and ends with a checksum.
    """
    name = repo.replace("/", "--").lstrip("._-")
    if revision is not None:
        name = f"{name}--{revision.replace('/', '-')}"
        if "/" in revision:  # a branch may be called a/b, and another a-b
            name += _checksum(revision)
    if len(name) <= LONGEST_NAME:
        return name
    end = _checksum(f"{repo}@{revision or ''}")
    return name[: LONGEST_NAME - len(end)] + end


def _checksum(text):
    return f"-{zlib.crc32(text.encode()):08x}"


def describe(repo: str, revision: str | None = None, endpoint: str | None = None) -> HubRepository:
    """Ask the hub what a repository holds. No weights are fetched.

    Args:
        repo: str. OWNER/NAME.
        revision: str or None. A branch, tag or commit; None for the default branch.
        endpoint: str or None. The address of the hub; None for the usual one.

    Returns:
        `HubRepository`, with a `problem` if the model cannot be read.

    Raises:
        The errors of huggingface_hub.
    """
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint)
    info = _info(api, repo, revision)
    commit = info.sha or revision or "main"
    files = {sibling.rfilename: _file(sibling, commit) for sibling in info.siblings or ()}
    repository = HubRepository(repo, commit, licence=_licence(info), gated=bool(info.gated))
    if "config.json" not in files:
        return replace(repository, problem=f"{repo} has no config.json, so it is not a model of Transformers.")
    values = _settings(api, repository, files["config.json"])
    if isinstance(values, str):
        return replace(repository, problem=values)
    classes = values.get("architectures")
    classes = tuple(name for name in classes if isinstance(name, str)) if isinstance(classes, list) else ()
    repository = replace(repository, classes=classes)
    try:
        config = BertConfig.from_dict(values)
    except ConfigError as error:
        return replace(repository, problem=f"{repo} cannot be read: {error}")
    repository = replace(repository, config=config, heads=_heads(config, classes))
    weights, origin = _weights(api, repo, revision, files)
    tokenizer = [files[name] for name in (*VOCABULARY_FILES, *TOKENIZER_FILES) if name in files]
    if not weights:
        return replace(repository, problem=_no_weights(repository, files))
    if files.keys().isdisjoint(VOCABULARY_FILES):
        return replace(repository, problem=f"{repo} has no vocabulary file ({', '.join(VOCABULARY_FILES)}).")
    sentence = [files[name] for name in SENTENCE_FILES if name in files and MODULES_FILE in files]
    return replace(repository, files=(files["config.json"], *tokenizer, *sentence, *weights), weights=origin)


def _info(api, repo, revision):
    """The hub's description of a repository; ValueError if it is not one, as huggingface_hub does not check it."""
    try:
        return api.model_info(repo, revision=revision, files_metadata=True)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"The hub's description of {repo} cannot be read.") from error


def _file(sibling, revision):
    lfs = sibling.lfs
    return HubFile(sibling.rfilename, revision, sibling.size or 0, lfs.sha256 if lfs else None)


def _licence(info):
    card = info.card_data
    licence = card.get("license") if card is not None else None
    if licence in (None, "other") and card is not None and card.get("license_name"):
        licence = card.get("license_name")
    return ", ".join(map(str, licence)) if isinstance(licence, list) else str(licence or "")


def _settings(api, repository, file):
    """The content of config.json, or a sentence that says why it cannot be read."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    if file.size > _LARGEST_SETTINGS:
        return f"config.json of {repository.repo} has {file.size:,} bytes, too many for the settings of a model."
    url = hf_hub_url(repository.repo, "config.json", revision=file.revision, endpoint=api.endpoint)
    response = get_session().get(url, headers=build_hf_headers(), follow_redirects=True)
    hf_raise_for_status(response)
    try:
        values = json.loads(response.content)
    except (ValueError, RecursionError):
        return f"config.json of {repository.repo} is not JSON."
    return values if isinstance(values, dict) else f"config.json of {repository.repo} is not a JSON object."


def _heads(config, classes):
    architecture = config.architecture
    heads: set[str] = set()
    for name in classes[:1]:
        kind = next((kind for part, kind in _HEADS_OF_CLASS.items() if part in name), None)
        heads |= set(architecture.trained) if kind == "trained" else {kind} if kind else set()
        if "pooler" in architecture.trained and not ({"mlm"} == heads):
            heads.add("pooler")
    return tuple(head for head in architecture.heads if head in heads)


def _weights(api, repo, revision, files):
    """The files of the weights and where they come from; ([], "") if none can be read."""
    if SINGLE_FILE in files:
        return [files[SINGLE_FILE]], SINGLE_FILE
    if INDEX_FILE in files:
        shards = [
            file for name, file in files.items() if _PLAIN.fullmatch(name) and re.search(r"-of-\d+\.safetensors$", name)
        ]
        return [files[INDEX_FILE], *shards], f"{len(shards)} files of safetensors"
    alone = [file for name, file in files.items() if _PLAIN.fullmatch(name) and name.endswith(".safetensors")]
    if len(alone) == 1:
        return alone, alone[0].name
    if revision is None and (converted := _conversion(api, repo, files)):
        file, reference = converted
        return [file], f"safetensors of the hub's own conversion, {reference}"
    if H5_FILE in files:
        return [files[H5_FILE]], f"{H5_FILE}, which older versions of Transformers wrote for Keras"
    return [], ""


def _conversion(api, repo, files):
    """The safetensors of the hub's conversion and its reference, if it converted the weights of today; else None."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        discussions = list(
            api.get_repo_discussions(repo, author=_CONVERTER, discussion_type="pull_request", discussion_status="open")
        )
    except HfHubHTTPError:  # discussions can be turned off
        return None
    for discussion in discussions:
        if discussion.title != _CONVERSION or discussion.author != _CONVERTER or not discussion.git_reference:
            continue
        info = _info(api, repo, discussion.git_reference)
        theirs = {
            sibling.rfilename: _file(sibling, info.sha or discussion.git_reference) for sibling in info.siblings or ()
        }
        pickles = [name for name in files if name.endswith(_PICKLES)]
        is_current = all(name in theirs and theirs[name].sha256 == files[name].sha256 for name in pickles)
        if is_current and SINGLE_FILE in theirs:
            return theirs[SINGLE_FILE], discussion.git_reference
    return None


def _no_weights(repository, files):
    kinds = sorted({f"*{suffix}" for name in files for suffix in _PICKLES if name.endswith(suffix)})
    if not kinds:
        return f"{repository.repo} holds no weights that can be read: no safetensors and no {H5_FILE}."
    name = repository.classes[0] if repository.classes else "AutoModel"
    return (
        f"{repository.repo} has only PyTorch pickle files ({', '.join(kinds)}), which can run code when they are "
        "opened and are never read. Convert it with Transformers in an environment of your own, and use the new "
        "folder: "
        f'model = transformers.{name}.from_pretrained("{repository.repo}"); model.save_pretrained("FOLDER") and '
        f'transformers.AutoTokenizer.from_pretrained("{repository.repo}").save_pretrained("FOLDER").'
    )
