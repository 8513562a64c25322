"""The model of a command: the options that name it, and its loading."""

from bert_tf.quiet_import import import_tensorflow


def add_model_arguments(parser):
    """--model and --precision, the same for every command that loads a model."""
    parser.add_argument("--model", metavar="M", help="name or folder of a model (default: the embedded Base)")
    add_precision_argument(parser)


def add_precision_argument(parser):
    """--precision alone, for a command whose own options name its models."""
    parser.add_argument(
        "--precision",
        default="float32",
        metavar="P",
        help="of the computation: float32 (default) or a reduced one that the runtime offers",
    )


def load_model(args):
    """The `Bert` that --model and --precision name."""
    from bert_tf.checkpoints import find
    from bert_tf.inference.bert import DEFAULT_MODEL, load

    folder = find(args.model or DEFAULT_MODEL)
    import_tensorflow()
    return load(folder, precision=args.precision)
