"""`python -m bert_tf features`: writes a vector for every text of a file, as NumPy or Parquet, in constant memory."""

import argparse
import os
import sys
from itertools import islice

from bert_tf.cli.shared.files import writing
from bert_tf.cli.shared.model import add_model_arguments, load_model
from bert_tf.errors import InputError
from bert_tf.finetuning.data.sentence_examples import ColumnLayout, read_sentences
from bert_tf.finetuning.data.tables import FORMATS, read_records
from bert_tf.inference.sentence_vectors import POOLINGS

# Rows of a row group of a Parquet file.
_ROWS_A_GROUP = 4096


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
    parser.add_argument("--length", type=int, metavar="T", help="cut each text to T tokens")
    parser.add_argument("--format", metavar="F", help="lines, csv, tsv or jsonl (default: by the file name extension)")
    parser.add_argument("--columns", metavar="A,B,…", help="names of the columns of a file without a header")
    parser.add_argument("--text-column", metavar="NAME", help="column of the text")
    parser.add_argument("--text2-column", metavar="NAME", help="column of a pair's second text")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="texts in one pass (default 32)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    """Writes the vectors. Returns: exit code."""
    from tqdm import tqdm

    from bert_tf.inference.sentence_vectors import sentence_vectors

    write = _writer(args.output)
    if args.input == "-" or os.path.exists(args.input) and not os.path.isfile(args.input):
        raise InputError(f"The input is read twice, once to count its texts; give a file instead of {args.input}.")
    count = sum(1 for _ in _texts(args))  # also finds a row that cannot be read, before the model is loaded
    if not count:
        raise InputError(f"{args.input} contains no text.")
    bert = load_model(args)
    vectors = sentence_vectors(
        bert, _texts(args), args.pooling, args.layer, args.batch_size, args.length, args.normalize
    )
    vectors = tqdm(vectors, total=count, unit="text", disable=args.quiet, file=sys.stderr, mininterval=0.5)
    with writing(args.output, "wb") as file:
        write(file, vectors, count, bert.config.hidden_size)
    if not args.quiet:
        print(f"{count:,} vectors of {bert.config.hidden_size} in {args.output}.", file=sys.stderr)
    return 0


def _texts(args):
    """Yields (text_a, text_b or None)."""
    file_format = args.format or ("lines" if args.input.lower().endswith(".txt") else None)
    if file_format is not None and file_format != "lines" and file_format not in FORMATS.values():
        raise InputError(f"There is no format {file_format!r}; choose from lines, csv, tsv, jsonl.")
    if file_format == "lines":
        # A table with one column: tabs and quotes are part of the text.
        for _, record in read_records(args.input, "lines", ("text",)):
            yield record["text"], None
        return
    columns = tuple(name.strip() for name in args.columns.split(",")) if args.columns else None
    layout = ColumnLayout(args.text_column, args.text2_column, columns=columns)
    for example in read_sentences(args.input, layout, file_format, labelled=False):
        yield example.text_a, example.text_b


def _writer(path):
    """The function that writes vectors in the format of a path's extension."""
    writers = {"npy": _write_npy, "parquet": _write_parquet}
    extension = path.lower().rpartition(".")[2]
    if extension not in writers:
        raise InputError(f"{path}: vectors are written as .npy or .parquet; give the file one of these extensions.")
    return writers[extension]


def _write_npy(file, vectors, count, width):
    import numpy as np

    # The header needs only the number of rows and their width; the rows are written one by one.
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, width)}
    np.lib.format.write_array_header_2_0(file, header)
    for vector in vectors:
        file.write(vector.astype("<f4").tobytes())


def _write_parquet(file, vectors, count, width):
    import numpy as np
    import pyarrow
    from pyarrow import parquet

    vector_type = pyarrow.list_(pyarrow.float32(), width)
    with parquet.ParquetWriter(file, pyarrow.schema([("vector", vector_type)])) as writer:
        source = iter(vectors)
        while group := list(islice(source, _ROWS_A_GROUP)):
            flat = pyarrow.array(np.concatenate(group).astype(np.float32))
            writer.write_table(pyarrow.table({"vector": pyarrow.FixedSizeListArray.from_arrays(flat, width)}))
