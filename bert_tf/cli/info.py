"""`python -m bert_tf info NAME`: shows the details of one model without loading it."""

import argparse
import json

from bert_tf.cli.models import as_json, heads, path_of, where
from bert_tf.cli.shared.render import size, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `info` to an `argparse` parser."""
    parser.add_argument("name", metavar="NAME", help="a name from the list of `models`, or a model folder")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints the details. Returns: exit code."""
    from bert_tf.checkpoints.library import describe

    model = describe(args.name)
    settings = model.config.to_hf_dict() if model.config else {}
    if args.json:
        print(json.dumps({**as_json(model), "config": settings}, ensure_ascii=False, indent=1))
        return 0
    facts = [
        ("name", " = ".join((model.name, *model.aliases))),
        ("where", path_of(model) or where(model)),
        ("size", size(model.size_bytes)),
        ("parameters", f"{model.parameters:,}" if model.parameters else "?"),
        ("heads", heads(model)),
        ("licence", model.licence or "?"),
        ("source", model.source or "?"),
        *((key, str(value)) for key, value in settings.items()),
    ]
    if model.problem:
        facts.append(("problem", model.problem))
    print("\n".join(table(facts, "<<")))
    return 0
