"""What a pre-training run was made with: noted in its folder, and held against what is given when it goes on."""

from pathlib import Path

from bert_tf.config import BertConfig
from bert_tf.pretraining.initialization import model_type_of

#: Options that a run keeps from its beginning to its end.
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
)


def check_run(output, args, tokenizer, records=None, heads=()):
    """Refuses to go on with a run's checkpoints on other text or with another model than they were made with.

    Steps, batch size, rates and masks may change from call to call. Runs without a checkpoint begin anew.

    Args:
        output: folder of the run. args: the parsed options. tokenizer: of the model. records: `Records` to train
            on, or None for --text. heads: those that the objective trains.

    Raises: ValueError, saying what differs.
    """
    from bert_tf.files import read_json
    from bert_tf.pretraining.data.corpus import corpus_keys
    from bert_tf.pretraining.data.documents import find_files
    from bert_tf.training.checkpoint import Checkpoints

    path = output / "settings.json"
    if not path.is_file() or not Checkpoints(output / "checkpoints").steps():
        return
    before = read_json(path)
    settings, data = before.get("settings", {}), before.get("corpus", {})
    trained = set(before.get("heads", heads))
    if args.objective == "sop" and heads and trained != set(heads):
        raise ValueError(
            f"{output} holds a run that learnt sentence order in the next-sentence head, as earlier "
            "versions did; `export` reads it, a new run needs another --output."
        )
    for name in _FIXED:
        # What is not there was no option yet when the run began.
        if name in settings and not _same(*_explicit(name, settings, vars(args))):
            raise ValueError(
                f"{output} holds a run with another --{name.replace('_', '-')} ({settings[name]}, not "
                f"{getattr(args, name)}); give another --output, or what it was begun with."
            )
    now = (
        [records.manifest]
        if records
        else corpus_keys(find_files(args.text), tokenizer, args.max_documents, args.field, args.language)
    )
    if data.get("key", data if "vocabulary_sha256" in data else now[0]) not in now:
        raise ValueError(
            f"{output} holds a run on other text, or text brought to other tokens, than is given now; "
            "give another --output, or the text and the vocabulary it was begun with."
        )


def check_embeddings(output, config):
    """Refuses to go on with a run whose embeddings have another width than a fresh model has today."""
    path = output / "architecture" / "config.json"
    if path.is_file() and (before := BertConfig.from_json(path).embedding_width) != config.embedding_width:
        raise ValueError(
            f"{output} holds a run of a model whose embeddings have {before} numbers (now "
            f"{config.embedding_width}); give --embedding-size {before}, or another --output."
        )


def _explicit(name, *options):
    """The values of an option in several sets of options; of the model type the one that a default stands for."""
    if name != "model_type":
        return [given[name] for given in options]
    if any(given.get("init") for given in options):
        return [None for _ in options]
    # "bert" was the default before, also beside --generator.
    asked = [None if given[name] == "bert" else given[name] for given in options]
    if any(given.get("student_layers") for given in options):
        return asked
    return [model_type_of(given.get("objective"), given.get("generator"), one) for given, one in zip(options, asked)]


def _same(before, now):
    """Whether two values of an option are one; a path may be written in several ways."""
    if isinstance(before, str) and isinstance(now, str):
        return Path(before).resolve() == Path(now).resolve()
    return before == now


def record_settings(output, args, model, tokenizer, corpus):
    """Writes what a run is made of: settings.json, and the model's settings and vocabulary in `architecture/`."""
    from bert_tf.files import write_json

    (output / "architecture").mkdir(parents=True, exist_ok=True)
    settings = {
        key: value for key, value in vars(args).items() if isinstance(value, (str, int, float, bool, list, type(None)))
    }
    write_json(
        output / "settings.json", {"settings": settings, "corpus": corpus.manifest, "heads": sorted(model.bert_heads)}
    )
    config = model.bert_config
    write_json(output / "architecture" / "config.json", config.to_hf_dict())
    tokenizer.save(output / "architecture", model_max_length=config.max_tokens)
