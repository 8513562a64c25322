"""The settings of a pre-training run: saved in its folder, and compared with the options when the run is resumed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf.config import BertConfig
from bert_tf.pretraining.initialization import model_type_of
from bert_tf.resources.remote import original_path

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Collection, Iterable

    from bert_tf.pretraining.data.corpus import TokenCorpus
    from bert_tf.pretraining.data.records_feed import Records
    from bert_tf.tokenizers.base import BaseTokenizer


#: Options that must not change when a run is resumed.
_FIXED = (
    "objective",
    "length",
    "phases",
    "init",
    "size",
    "student_layers",
    "teacher",
    "distil",
    "generator",
    "model_type",
    "positions",
    "embedding_size",
    "add_tokens",
    "freeze_layers",
    "optimizer",
)
#: Options that must not change either if frozen layers have random weights. No checkpoint holds these, so a resumed run
#: draws them again; each dropout layer draws from the same source.
_FIXED_IF_DRAWN = ("seed", "dropout")


def check_run(
    output: Path, args: Namespace, tokenizer: BaseTokenizer, records: Records | None = None, heads: Collection[str] = ()
) -> None:
    """Checks that a run is resumed with the same text and the same model.

    Steps, batch size, rates and masks may change; seed and dropout too, unless random weights are frozen. A run without
    a checkpoint starts from the beginning, so nothing of it is checked. A folder with a model of another origin is
    refused.

    Args:
        output: Path. The run folder.
        args: argparse.Namespace. The parsed options.
        tokenizer: the `Tokenizer` of the model.
        records: the `Records` to train on, or None for --text.
        heads: iterable of str. The heads that the objective trains.

    Raises: ValueError if they differ; the message names the difference.
    """
    from bert_tf.files import foreign_model, read_json
    from bert_tf.pretraining.data.corpus import corpus_keys
    from bert_tf.pretraining.data.documents import find_files
    from bert_tf.training.checkpoint import Checkpoints

    path = output / "settings.json"
    for folder in (output, output / "model"):
        if problem := foreign_model(folder, path):
            raise ValueError(problem)
    if not path.is_file() or not Checkpoints(output / "checkpoints").steps():
        return
    saved = read_json(path)
    settings, data = saved.get("settings", {}), saved.get("corpus", {})
    trained = set(saved.get("heads", heads))
    if args.objective == "sop" and heads and trained != set(heads):
        raise ValueError(
            f"{output} holds a run that learnt sentence order in the next-sentence head, as earlier "
            "versions did; `export` reads it, a new run needs another --output."
        )
    given = _given(args)
    drawn = settings.get("size") and settings.get("freeze_layers")
    for name in (*_FIXED, *(_FIXED_IF_DRAWN if drawn else ())):
        # An option that is missing did not exist yet when the run started.
        if name in settings and not _same(*_explicit(name, settings, given)):
            raise ValueError(
                f"{output} holds a run with another --{name.replace('_', '-')} ({settings[name]}, not "
                f"{given[name]}); give another --output, or the value that the run was started with."
            )
    keys = (
        # Earlier versions saved no signature of the tokenizer.
        [records.manifest, {key: value for key, value in records.manifest.items() if key != "cut_signature"}]
        if records
        else corpus_keys(find_files(args.text), tokenizer, args.max_documents, args.field, args.language)
    )
    if data.get("key", data if "vocabulary_sha256" in data else keys[0]) not in keys:
        raise ValueError(
            f"{output} holds a run on other text, or on text with other tokens; "
            "give another --output, or the text and the vocabulary that the run was started with."
        )


def check_embeddings(output: Path, config: BertConfig) -> None:
    """Checks that the embeddings of a resumed run have the size of a new model's, which has changed between versions.

    Args:
        output: Path. The run folder.
        config: the `BertConfig` of the new model.

    Raises: ValueError if the sizes differ.
    """
    path = output / "architecture" / "config.json"
    if path.is_file() and (before := BertConfig.from_json(path).embedding_width) != config.embedding_width:
        raise ValueError(
            f"{output} holds a run of a model whose embeddings have {before} numbers (now "
            f"{config.embedding_width}); give --embedding-size {before}, or another --output."
        )


def _given(args):
    """The options as the user gave them: what lies in a bucket has another local copy in each run."""

    def original(value):
        if isinstance(value, list):
            return [original(one) for one in value]
        return original_path(value) if isinstance(value, str) else value

    return {name: original(value) for name, value in vars(args).items()}


def _explicit(name, *options):
    """The values of an option in several dicts of options; a default model type is replaced by its meaning.

    Where the option has no effect they are all None: earlier versions ignored it, and now it is refused.
    """
    from_init = any(values.get("init") for values in options)
    from_teacher = any(values.get("student_layers") is not None for values in options)
    without_effect = {
        "model_type": from_init,
        "positions": from_init or from_teacher,
        "distil": not any(values.get("teacher") for values in options),
    }
    if without_effect.get(name):
        return [None for _ in options]
    if name != "model_type":
        return [values[name] for values in options]
    # "bert" was the default in earlier versions, also with --generator.
    requested = [None if values[name] == "bert" else values[name] for values in options]
    if from_teacher:
        return requested
    return [
        model_type_of(values.get("objective"), values.get("generator"), model_type)
        for values, model_type in zip(options, requested)
    ]


def _same(before, now):
    """Whether two values of an option are equal; one path can be written in several ways."""
    if isinstance(before, str) and isinstance(now, str):
        return Path(before).resolve() == Path(now).resolve()
    return before == now


def record_settings(
    output: Path,
    args: Namespace,
    config: BertConfig,
    heads: Iterable[str],
    tokenizer: BaseTokenizer,
    corpus: TokenCorpus | Records,
) -> None:
    """Writes `settings.json`, and the settings and vocabulary of the model in `architecture/`.

    Args:
        output: Path. The run folder.
        args: argparse.Namespace. The parsed options.
        config: the `BertConfig` of the model.
        heads: iterable of str. The heads of the model to train.
        tokenizer: the `Tokenizer` of the model.
        corpus: the `TokenCorpus` or `Records` to train on.
    """
    from bert_tf.files import write_json

    (output / "architecture").mkdir(parents=True, exist_ok=True)
    settings = {
        key: value
        for key, value in _given(args).items()
        if isinstance(value, (str, int, float, bool, list, type(None)))
    }
    write_json(output / "settings.json", {"settings": settings, "corpus": corpus.manifest, "heads": sorted(heads)})
    write_json(output / "architecture" / "config.json", config.to_hf_dict())
    tokenizer.save(output / "architecture", model_max_length=config.max_tokens)
