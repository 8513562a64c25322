"""`python -m bert_tf check FOLDER`: compares the files of a model or a run with their checksums."""

import argparse

DAMAGED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `check` to an `argparse` parser."""
    parser.add_argument("folder", metavar="FOLDER", help="a model's name or folder, or the --output of `pretrain`")
    parser.add_argument(
        "--write", action="store_true", help="write new checksums of a model folder, after you changed a file yourself"
    )


def run(args: argparse.Namespace) -> int:
    """Prints a line for each folder with checksums. Returns: exit code, `DAMAGED` if a file is not whole."""
    from bert_tf.checkpoints import find
    from bert_tf.checkpoints.delta import base_model
    from bert_tf.checkpoints.library import looks_like_model
    from bert_tf.checkpoints.model_checksums import write_model_checksums
    from bert_tf.checksums import CHECKSUMS, find_damage, has_checksums
    from bert_tf.errors import InputError
    from bert_tf.resources.remote import is_copy, original_path

    folder = find(args.folder)
    in_bucket = is_copy(args.folder)
    shown = original_path(args.folder) if in_bucket else str(folder)
    if args.write:
        if in_bucket:
            raise InputError(f"--write is for local folders: copy {shown} here, and then {CHECKSUMS} back.")
        if not looks_like_model(folder):
            raise ValueError(f"{folder} holds no weights of a model; --write is for model folders.")
        write_model_checksums(folder)
    folders = sorted(path.parent for path in folder.rglob(CHECKSUMS))
    if (base := base_model(folder)) and has_checksums(find(base)):
        folders.append(find(base))
    if not folders:
        raise ValueError(
            f"{shown} has no {CHECKSUMS}, so its files cannot be compared. For a model that you trust, "
            f"`python -m bert_tf check {'FOLDER' if in_bucket else args.folder} --write` writes it."
        )
    code = 0
    for each in folders:
        damage = find_damage(each)
        print(("\n".join(damage) or f"{each}: whole.").replace(str(folder), shown))
        code = DAMAGED if damage else code
    return code
