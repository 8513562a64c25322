"""`models`: what is on this machine and what can be downloaded."""

import json

from bert_tf.cli.shared.render import size, table


def add_arguments(parser):
    parser.add_argument("--json", action="store_true", help="print a JSON list")


def run(args):
    from bert_tf.checkpoints import list_models, models_dir

    models = list_models()
    if args.json:
        print(json.dumps([as_json(model) for model in models], ensure_ascii=False, indent=1))
        return 0
    rows = [("NAME", "WHERE", "SIZE", "PARAMETERS", "HEADS", "LICENCE")]
    rows += [
        (
            model.name,
            where(model),
            size(model.size_bytes),
            f"{model.parameters:,}" if model.parameters else "?",
            heads(model),
            model.licence or "?",
        )
        for model in models
    ]
    print("\n".join(table(rows, "<<>><<")))
    print(f"\nModels directory: {models_dir()}")
    for model in models:
        if model.problem:
            print(f"{model.name}: {model.problem}")
    return 0


def where(model):
    """In one word or two: shipped with the project, in the models folder, unusable, or to be downloaded."""
    if model.problem:
        return "cannot be read"
    return {"embedded": "embedded", "folder": "installed"}.get(model.kind, "to download")


def heads(model):
    """The heads a model has, as text."""
    return "?" if model.heads is None else " ".join(sorted(model.heads)) or "none"


def path_of(model):
    """The folder of a model as text that can be printed, or None."""
    return None if model.path is None else str(model.path).encode(errors="replace").decode()


def as_json(model):
    """A `ModelInfo` as a dict that `json.dumps` takes; "models_dir" is the folder that models are dropped into."""
    from bert_tf.checkpoints import models_dir

    return {
        "name": model.name,
        "path": path_of(model),
        "installed": model.installed,
        "kind": model.kind,
        "size_bytes": model.size_bytes,
        "parameters": model.parameters,
        "heads": None if model.heads is None else sorted(model.heads),
        "licence": model.licence,
        "source": model.source,
        "aliases": list(model.aliases),
        "problem": model.problem,
        "models_dir": str(models_dir()),
    }
