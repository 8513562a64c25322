"""The options for reading a file of examples with a fine-tuned model."""

import argparse

from bert_tf.finetuning.tasks.registry import READING, READING_OF_TEXTS
from bert_tf.user_errors import whole_number

_HELP = {
    "format": "csv, tsv, jsonl or lines (a text on each); to tag also conll or conllu; default: by the extension",
    "columns": "names of the columns of a file without a header",
    "glue": "the file is a task of GLUE",
    "text_column": "column of the text",
    "text2_column": "column of a pair's second text",
    "windows": "read long texts in windows and take the mean or the max of their logits",
    "stride": "step of the windows, in pieces",
    "words_field": "field of the words in JSON lines",
    "documents": "join the sentences between -DOCSTART- or # newdoc lines to one text",
    "context_column": "column of the context",
    "start_column": "column of the beginning that all choices share",
    "choice_columns": "columns of the choices",
}
_METAVAR = {"format": "F", "columns": "A,B,…", "choice_columns": "A,B,…"}


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds these options to an `argparse` parser, as a group."""
    reading = parser.add_argument_group("how the file is read (with a fine-tuned model as in its training)")
    for option, tasks in READING.items():
        users = ("masked words", *tasks) if option in READING_OF_TEXTS else tasks
        name, help_line = f"--{option.replace('_', '-')}", f"{_HELP[option]} ({', '.join(users)})"
        if option == "documents":
            reading.add_argument(name, action="store_true", help=help_line)
        elif option == "windows":
            reading.add_argument(name, choices=("mean", "max"), help=help_line)
        elif option == "stride":
            reading.add_argument(name, type=whole_number(1), metavar="N", help=help_line)
        else:
            reading.add_argument(name, metavar=_METAVAR.get(option, "NAME"), help=help_line)
