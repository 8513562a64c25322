"""`python -m bert_tf info NAME`: shows the details of one model without loading it."""

import argparse
import json

from bert_tf.cli.models import as_json, heads, path_of, where
from bert_tf.cli.shared.render import size, table
from bert_tf.files import read_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `info` to an `argparse` parser."""
    parser.add_argument("name", metavar="NAME", help="a name from the list of `models`, or a model folder")
    parser.add_argument("--json", action="store_true", help="print a JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints the details. Returns: exit code."""
    from bert_tf.checkpoints.library import describe

    model = describe(args.name)
    settings = _settings(model)
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


def _settings(model):
    """The settings of config.json; the classes of Transformers are those that the model's own file names."""
    from bert_tf.checkpoints.library import encoder_folder

    if not model.config:
        return {}
    settings = model.config.to_hf_dict()
    path = model.path and encoder_folder(model.path) / "config.json"
    if path and path.is_file() and (classes := read_json(path).get("architectures")):
        settings["architectures"] = classes
    return settings
