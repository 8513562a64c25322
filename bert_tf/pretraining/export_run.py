"""Exports the model of any checkpoint of a pre-training run, in any supported format."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bert_tf.checkpoints.convert import Conversion
    from bert_tf.config import BertConfig
    from bert_tf.models import BertModel
    from bert_tf.tokenizers.base import BaseTokenizer


def find_step(folder: str | Path, name: str | int = "last") -> int:
    """The step of a checkpoint of a run.

    Args:
        folder: str or Path. The run folder.
        name: str or int. "last", "best" or a step.

    Returns: int.

    Raises: ValueError if there is no such checkpoint; the message lists the existing ones.
    """
    from bert_tf.training.checkpoint import Checkpoints

    saved_checkpoints = Checkpoints(Path(folder) / "checkpoints")
    steps = saved_checkpoints.steps()
    if not steps:
        raise ValueError(f"{folder} has no checkpoint; give the --output of a pre-training that has saved one.")
    step = {"last": steps[-1], "best": saved_checkpoints.best(), **{str(step): step for step in steps}}.get(str(name))
    if step is None:
        raise ValueError(f"{folder} has no checkpoint {name!r}; it has the steps {', '.join(map(str, steps))}.")
    return step


def export(folder: str | Path, step: int, target: str | Path, to: str = "own", dtype: str = "float32") -> Conversion:
    """Writes the model of a checkpoint to a new model folder.

    Args:
        folder: str or Path. The run folder.
        step: int. The step of a checkpoint.
        target: str or Path. The folder to write.
        to: str. The format, as in `checkpoints.convert`.
        dtype: str. The data type of the weights, as in `checkpoints.convert`.

    Returns: `checkpoints.Conversion`.

    Raises: ValueError or OSError with one sentence: the checkpoint, or the model that the run started from, cannot be
        read; the target is not empty; or the format cannot hold the model.
    """
    from bert_tf import checkpoints
    from bert_tf.checkpoints.convert import check_request

    target = Path(target).resolve()
    check_request(target, to, dtype)
    config, tokenizer, model = read_checkpoint(folder, step)
    temporary = target.with_name(f".{target.name}.whole")
    try:
        checkpoints.save(temporary, config, tokenizer, model)
        return checkpoints.convert(temporary, target, to, dtype)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_checkpoint(folder: str | Path, step: int) -> tuple[BertConfig, BaseTokenizer, BertModel]:
    """Reads the model of a checkpoint: the trained weights, and the frozen weights of the model the run started from.

    Args:
        folder: str or Path. The run folder.
        step: int. The step of a checkpoint.

    Returns: (`BertConfig`, tokenizer, `BertModel`).

    Raises: as `export`.
    """
    from bert_tf.config import BertConfig
    from bert_tf.models import build_pretraining_model
    from bert_tf.pretraining.initialization import initialize
    from bert_tf.pretraining.objectives.electra import ReplacedTokenDetection, make_generator
    from bert_tf.tokenizers import read_tokenizer
    from bert_tf.training.checkpoint import Checkpoints
    from bert_tf.training.run_folder import read_run
    from bert_tf.training.weights import freeze

    folder = Path(folder)
    run = read_run(folder)
    config = BertConfig.from_json(folder / "architecture" / "config.json")
    tokenizer = read_tokenizer(folder / "architecture")
    share: Any = run.settings.get("generator")
    learning = isinstance(share, float)
    # From the heads, not from the objective: in earlier runs the next-sentence head learned sentence order.
    model = build_pretraining_model(config, heads=run.heads)
    frozen = run.settings.get("freeze_layers") or 0
    if frozen:
        # A checkpoint holds only the trained variables.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            initialize(model, _source_model(folder, run.settings, Path(place)))
        freeze(model, frozen)
    # The checkpoint holds the variables of the whole trained network, in the network's order.
    trained = ReplacedTokenDetection().network(model, make_generator(model, share)) if learning else model
    Checkpoints(folder / "checkpoints").restore(trained.trainable_variables, step, partly=True)
    return config, tokenizer, model


def _source_model(folder, settings, place):
    """The `BertModel` that the frozen layers of a run come from; one in a bucket is fetched into the folder `place`."""
    from bert_tf import checkpoints
    from bert_tf.checkpoints.added_words import with_words
    from bert_tf.checkpoints.reading import read_stored
    from bert_tf.pretraining.objectives.distillation import build_student
    from bert_tf.resources.remote import fetch, is_remote

    def found(name):
        return fetch(name, place) if is_remote(name) else checkpoints.find(name)

    if settings.get("init"):
        source = read_stored(found(settings["init"]))
        return (with_words(*source, settings["add_tokens"]) if settings.get("add_tokens") else source)[2].model
    if settings.get("student_layers"):
        # Earlier versions wrote "bert" if no model type was requested.
        model_type = settings.get("model_type") if settings.get("model_type") != "bert" else None
        return build_student(
            checkpoints.read(found(settings["teacher"]))[2],
            settings["student_layers"],
            model_type=model_type,
        )
    if not (folder / "model").is_dir():
        raise ValueError(
            f"{folder}: its frozen layers have random weights (--size with --freeze-layers), which are not in a "
            f"checkpoint, only in the finished model; let the run end first."
        )
    return checkpoints.read(folder / "model")[2]
