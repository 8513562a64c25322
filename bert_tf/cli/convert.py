"""`python -m bert_tf convert SRC DST`: writes the model of a folder in another format."""

import argparse

from bert_tf.errors import InputError
from bert_tf.startup import import_tensorflow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `convert` to an `argparse` parser."""
    parser.add_argument("source", metavar="SRC", help="folder or name of a model, in any supported format")
    parser.add_argument("target", metavar="DST", help="folder to write")
    parser.add_argument(
        "--to",
        default="own",
        metavar="FORMAT",
        help="own (default), hf, google (TF checkpoint) or keras-nlp (preset); for a fine-tuned model own, hf or "
        "savedmodel (for TF Serving)",
    )
    parser.add_argument("--dtype", default="float32", metavar="D", help="float32 (default), float16, or int8 for own")
    parser.add_argument(
        "--max-shard-mb",
        type=float,
        metavar="MB",
        help="largest size of a file of weights (default: all weights in one file)",
    )


def run(args: argparse.Namespace) -> int:
    """Converts the model. Returns: exit code."""
    from bert_tf.checkpoints import convert, find
    from bert_tf.finetuning.task_settings import read_settings

    limit = None if args.max_shard_mb is None else int(args.max_shard_mb * 1e6)
    folder = find(args.source)
    if read_settings(folder) is not None:
        return _export_task(folder, args)
    import_tensorflow()
    conversion = convert(folder, args.target, to=args.to, dtype=args.dtype, max_shard_bytes=limit)
    print(f"{conversion.path} · {conversion.format} · heads: {' '.join(sorted(conversion.heads)) or 'none'}")
    if conversion.note:
        print(conversion.note)
    return 0


def _export_task(folder, args):
    from bert_tf.finetuning.export import export_task

    if args.max_shard_mb is not None:
        raise InputError("--max-shard-mb does not work with a fine-tuned model; leave it out.")
    import_tensorflow()
    notes: list[str] = []
    path = export_task(folder, args.target, args.to, args.dtype, say=notes.append)
    print("\n".join([f"{path} · {args.to} · with its task", *notes]))
    return 0
