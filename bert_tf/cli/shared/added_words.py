"""The option --add-tokens of the commands that train."""

import argparse


class _Words(argparse.Action):
    """Reads words, and files with one word a line, to one list of words."""

    def __call__(self, parser, namespace, values, option_string=None):
        from bert_tf.checkpoints.added_words import read_words

        try:
            setattr(namespace, self.dest, read_words(values))
        except (OSError, UnicodeDecodeError) as error:
            parser.error(f"{option_string}: {error}")


def add_tokens_argument(parser: argparse.ArgumentParser) -> None:
    """Add --add-tokens, whose value is a list of words, or None."""
    parser.add_argument(
        "--add-tokens",
        nargs="+",
        action=_Words,
        metavar="FILE_OR_WORD",
        help="words to add to the vocabulary as tokens, or text files with one word a line; their rows start as the "
        "mean of the word's pieces",
    )
