"""`python -m bert_tf convert SRC DST`: writes the model of a folder in another format."""

import argparse
from importlib.util import find_spec
from pathlib import Path

from bert_tf.errors import InputError
from bert_tf.startup import import_tensorflow

_SPELLINGS = {"huggingface": "hf", "savedmodel": "saved-model"}
_RUNNABLE = ("onnx", "openvino", "saved-model", "keras")
_STORED = ("own", "hf", "google", "keras-nlp")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `convert` to an `argparse` parser."""
    parser.add_argument("source", metavar="SRC", help="folder or name of a model, in any supported format")
    parser.add_argument("target", metavar="DST", help="folder to write")
    parser.add_argument(
        "--to",
        default="own",
        metavar="FORMAT",
        help="own (default), huggingface (or hf), google (TF checkpoint) or keras-nlp (preset); onnx, openvino, "
        "saved-model or keras for other programs; a fine-tuned model is written with its head, as saved-model also for "
        "raw text (TF Serving), as keras-nlp if it is a classifier, but not as google",
    )
    parser.add_argument(
        "--dtype",
        default="float32",
        metavar="D",
        help="float32 (default), float16, or int8 (not for google)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="run what was written and compare it with the model (onnx by ONNX Runtime, openvino, saved-model by "
        "tf.saved_model.load, keras; other formats are read back here)",
    )
    parser.add_argument(
        "--max-shard-mb",
        type=float,
        metavar="MB",
        help="largest size of a file of weights (default: all weights in one file)",
    )


def run(args: argparse.Namespace) -> int:
    """Converts the model. Returns: exit code."""
    from bert_tf.checkpoints import find
    from bert_tf.finetuning.task_settings import read_settings

    if args.max_shard_mb is not None and args.max_shard_mb < 1:
        raise InputError(f"--max-shard-mb must be at least 1, not {args.max_shard_mb:g}.")
    limit = None if args.max_shard_mb is None else int(args.max_shard_mb * 1e6)
    folder = find(args.source)
    args.to = _SPELLINGS.get(args.to, args.to)
    if args.to not in (*_STORED, *_RUNNABLE):
        raise InputError(f"There is no format {args.to!r}; choose from {', '.join((*_STORED, *_RUNNABLE))}.")
    if args.to in _RUNNABLE and not (args.to == "saved-model" and read_settings(folder) is not None):
        return _export(folder, args)
    if args.to == "keras-nlp" and (find_spec("keras_nlp") or args.dtype == "int8" or read_settings(folder) is not None):
        code = _write_preset(folder, args)
    else:
        code = _convert(folder, args, limit)
    return code if code or not args.check else _check_read_back(folder, args)


def _convert(folder, args, limit):
    from bert_tf.checkpoints import convert
    from bert_tf.finetuning.task_settings import read_settings

    if read_settings(folder) is not None:
        return _export_task(folder, args)
    import_tensorflow()
    conversion = convert(folder, args.target, to=args.to, dtype=args.dtype, max_shard_bytes=limit)
    print(f"{conversion.path} · {conversion.format} · heads: {' '.join(sorted(conversion.heads)) or 'none'}")
    if conversion.note:
        print(conversion.note)
    return 0


def _write_preset(folder, args):
    """Writes a preset with the head that keras_nlp has for the model. Returns: exit code."""
    from bert_tf.checkpoints.formats.kerashub import differences_note
    from bert_tf.checkpoints.library import stored_heads
    from bert_tf.inference.bert import load
    from bert_tf.inference.exported.keras_nlp_task import write_preset

    if args.max_shard_mb is not None:
        raise InputError("--max-shard-mb does not work with keras-nlp; leave it out.")
    import_tensorflow()
    bert = load(folder)
    path = write_preset(bert, Path(args.target), args.dtype)
    heads = stored_heads(path, bert.config) or frozenset()
    kept = "with its task" if bert.task is not None else f"heads: {' '.join(sorted(heads)) or 'none'}"
    print(f"{path} · keras-nlp · {args.dtype} · {kept}")
    if dropped := ", ".join(sorted(bert.heads - heads)):
        print(f"Left out, as this preset cannot store it: {dropped}")
    print(differences_note(bert.config, bert.tokenizer))
    return 0


def _export(folder, args):
    """Writes a model for another program, and checks it. Returns: exit code."""
    from bert_tf.inference.bert import load
    from bert_tf.inference.exported.formats import check, write

    if args.max_shard_mb is not None:
        raise InputError(f"--max-shard-mb does not work with {args.to}; leave it out.")
    if args.to in ("saved-model", "keras"):
        import_tensorflow()
    bert = load(folder)
    path = write(bert, Path(args.target), args.to, args.dtype)
    task = f"task: {bert.task.settings.task}" if bert.task else f"heads: {' '.join(sorted(bert.heads)) or 'none'}"
    print(f"{path} · {args.to} · {args.dtype} · {task}")
    return _tell(check(bert, path, args.to, args.dtype), args) if args.check else 0


def _tell(result, args):
    print(f"Checked: largest difference {result.difference:.2g}, smallest cosine {result.cosine:.6f}.")
    if result.passes:
        return 0
    print(f"The outputs of {args.target} are not those of the model.")
    return 1


def _check_read_back(folder, args):
    from bert_tf.inference.bert import load
    from bert_tf.inference.exported.formats import check, compare_loaded

    bert = load(folder)
    if args.to == "saved-model":
        return _tell(check(bert, Path(args.target), "served", args.dtype), args)
    return _tell(compare_loaded(bert, load(args.target), args.dtype), args)


def _export_task(folder, args):
    from bert_tf.finetuning.export import export_task

    if args.max_shard_mb is not None:
        raise InputError("--max-shard-mb does not work with a fine-tuned model; leave it out.")
    import_tensorflow()
    notes: list[str] = []
    path = export_task(folder, args.target, args.to, args.dtype, say=notes.append)
    print("\n".join([f"{path} · {args.to} · with its task", *notes]))
    return 0
