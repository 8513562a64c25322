"""`python -m bert_tf features`: writes a vector for every text of a file, as NumPy or Parquet, in constant memory."""

import argparse
import sys

from bert_tf.batch_jobs.jobs import FeaturesJob
from bert_tf.batch_jobs.vectors import VECTOR_WRITERS
from bert_tf.cli.shared.answers import blank_note
from bert_tf.cli.shared.files import is_stream, writing
from bert_tf.cli.shared.model import add_model_arguments, load_model
from bert_tf.cli.shared.runner_options import add_runner_arguments, run_on_runner
from bert_tf.errors import DataError, InputError
from bert_tf.finetuning.data.tables import BlankLines, column_names
from bert_tf.inference.sentence_vectors import POOLINGS
from bert_tf.user_errors import whole_number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `features` to an `argparse` parser."""
    add_model_arguments(parser)
    parser.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help="one text on each line (.txt), or a table (.csv, .tsv, .jsonl) with a column of texts",
    )
    parser.add_argument("--output", required=True, metavar="FILE", help=".npy (float32 [N, H]) or .parquet")
    parser.add_argument(
        "--pooling",
        metavar="P",
        help=f"how the vector is computed: {', '.join(POOLINGS)} (default: that of a model of sentence similarity, "
        "else mean; cls is the pooler, first the hidden state of [CLS], attention needs a model fine-tuned with it)",
    )
    parser.add_argument(
        "--layer",
        type=int,
        default=-1,
        metavar="I",
        help="0 for the embeddings, 1 and up for the layers, -1 (default) for the last layer",
    )
    parser.add_argument(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        help="scale each vector to length 1 (default: as a model of sentence similarity does)",
    )
    parser.add_argument("--length", type=whole_number(3), metavar="T", help="cut each text to T tokens, 3 or more")
    parser.add_argument("--format", metavar="F", help="lines, csv, tsv or jsonl (default: by the file name extension)")
    parser.add_argument("--columns", metavar="A,B,…", help="names of the columns of a file without a header")
    parser.add_argument("--text-column", metavar="NAME", help="column of the text")
    parser.add_argument("--text2-column", metavar="NAME", help="column of a pair's second text")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="texts in one pass (default 32)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_runner_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Writes the vectors. Returns: exit code."""
    from tqdm import tqdm

    from bert_tf.inference.sentence_vectors import sentence_vectors, text_errors

    write = _writer(args.output)
    job = _job(args)
    if args.runner:
        return run_on_runner(job, args)
    if is_stream(args.input):
        raise InputError(
            f"The input is read several times, first to count its texts; give a file instead of {args.input}."
        )
    blank = BlankLines()
    # Also finds a row that cannot be read, before the model is loaded.
    count = sum(1 for _ in job.rows(args.input, blank))
    if not count:
        raise InputError(f"{args.input} contains no text.")
    bert = load_model(args)
    # Before the first vector is computed: one bad text would lose all vectors.
    for number, error in enumerate(text_errors(bert, (row for _, row in job.rows(args.input))), 1):
        if error is not None:
            raise DataError(f"{args.input}, text {number:,}: {error}")
    texts = (row for _, row in job.rows(args.input))
    vectors = sentence_vectors(bert, texts, args.pooling, args.layer, args.batch_size, args.length, args.normalize)
    vectors = tqdm(vectors, total=count, unit="text", disable=args.quiet, file=sys.stderr, mininterval=0.5)
    with writing(args.output, "wb") as file:
        write(file, vectors, count, bert.config.hidden_size)
    if not args.quiet:
        note = blank_note(blank.count)
        print(
            f"{count:,} {'vector' if count == 1 else 'vectors'} of {bert.config.hidden_size} in {args.output}{note}.",
            file=sys.stderr,
        )
    return 0


def _job(args):
    from bert_tf.checkpoints import find
    from bert_tf.inference.bert import DEFAULT_MODEL

    return FeaturesJob(
        str(find(args.model or DEFAULT_MODEL)),
        args.precision,
        args.batch_size,
        args.pooling,
        args.layer,
        args.length,
        args.normalize,
        args.format,
        column_names(args.columns),
        args.text_column,
        args.text2_column,
    )


def _writer(path):
    """The function that writes vectors in the format of a path's extension."""
    extension = path.lower().rstrip("/").rpartition(".")[2]
    if extension not in VECTOR_WRITERS:
        raise InputError(f"{path}: vectors are written as .npy or .parquet; give the file one of these extensions.")
    return VECTOR_WRITERS[extension]
