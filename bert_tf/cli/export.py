"""`python -m bert_tf export`: exports the model of any checkpoint of a pre-training, in any supported format."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `export` to an `argparse` parser."""
    parser.add_argument("run_folder", metavar="RUN", help="the --output folder of a pre-training, running or finished")
    parser.add_argument("target", metavar="DST", help="folder to write")
    parser.add_argument("--step", default="last", metavar="N", help="a step with a checkpoint, last (default) or best")
    parser.add_argument(
        "--to", default="own", metavar="FORMAT", help="own (default), hf, google (TF checkpoint) or keras-nlp (preset)"
    )
    parser.add_argument("--dtype", default="float32", metavar="D", help="float32 (default), float16, or int8 for own")


def run(args: argparse.Namespace) -> int:
    """Exports the model. Returns: exit code."""
    from bert_tf.pretraining.export_run import export, find_step
    from bert_tf.startup import import_tensorflow

    step = find_step(args.run_folder, args.step)
    import_tensorflow()
    conversion = export(args.run_folder, step, args.target, args.to, args.dtype)
    print(
        f"{conversion.path} · step {step} · {conversion.format} · heads: {' '.join(sorted(conversion.heads)) or 'none'}"
    )
    if conversion.note:
        print(conversion.note)
    return 0
