"""`convert SRC DST`: a model folder of any format that can be read, written in another."""

from bert_tf.errors import InputError
from bert_tf.quiet_import import import_tensorflow


def add_arguments(parser):
    parser.add_argument("source", metavar="SRC", help="folder or name of a model, in any format that can be read")
    parser.add_argument("target", metavar="DST", help="folder to make")
    parser.add_argument(
        "--to",
        default="own",
        metavar="FORMAT",
        help="own (default), hf, google (TF checkpoint) or keras-nlp (preset); of a fine-tuned model own, hf or "
        "savedmodel (for TF Serving)",
    )
    parser.add_argument("--dtype", default="float32", metavar="D", help="float32 (default), float16, or int8 for own")
    parser.add_argument("--max-shard-mb", type=float, metavar="MB", help="largest file of weights (default: one file)")


def run(args):
    from bert_tf.checkpoints import convert, find
    from bert_tf.finetuning.task_settings import read_settings

    limit = None if args.max_shard_mb is None else int(args.max_shard_mb * 1e6)
    folder = find(args.source)
    if read_settings(folder) is not None:
        return _export_task(folder, args)
    import_tensorflow()
    done = convert(folder, args.target, to=args.to, dtype=args.dtype, max_shard_bytes=limit)
    print(f"{done.path} · {done.format} · heads: {' '.join(sorted(done.heads)) or 'none'}")
    if done.note:
        print(done.note)
    return 0


def _export_task(folder, args):
    from bert_tf.finetuning.export import export_task

    if args.max_shard_mb is not None:
        raise InputError("--max-shard-mb is not for fine-tuned models; leave it out.")
    import_tensorflow()
    notes = []
    path = export_task(folder, args.target, args.to, args.dtype, say=notes.append)
    print("\n".join([f"{path} · {args.to} · with its task", *notes]))
    return 0
