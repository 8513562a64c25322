"""The model of any checkpoint of a run, in any format that others read."""

import shutil
from pathlib import Path


def find_step(folder, name="last"):
    """The step of a run's checkpoint.

    Args:
        folder: of the run. name: "last", "best" or a number.

    Returns: int.

    Raises: ValueError if there is none such, with those that there are.
    """
    from bert_tf.training.checkpoint import Checkpoints

    saved = Checkpoints(Path(folder) / "checkpoints")
    steps = saved.steps()
    if not steps:
        raise ValueError(f"{folder} has no checkpoint; give the --output of a pre-training that has saved one.")
    found = {"last": steps[-1], "best": saved.best(), **{str(step): step for step in steps}}.get(str(name))
    if found is None:
        raise ValueError(f"{folder} has no checkpoint {name!r}; it has the steps {', '.join(map(str, steps))}.")
    return found


def export(folder, step, target, to="own", dtype="float32"):
    """Writes a checkpoint's model as a folder of its own.

    Args:
        folder: of the run. step: of a checkpoint. target: folder to make. to, dtype: as in `checkpoints.convert`.

    Returns: `checkpoints.Conversion`.

    Raises: ValueError or OSError with one sentence: the checkpoint or what it started from is not to be read, the
        target is not empty, or the format cannot hold the model.
    """
    from bert_tf import checkpoints
    from bert_tf.checkpoints.convert import check_request

    target = Path(target).resolve()
    check_request(target, to, dtype)
    config, tokenizer, model = read_checkpoint(folder, step)
    whole = target.with_name(f".{target.name}.whole")
    try:
        checkpoints.save(whole, config, tokenizer, model)
        return checkpoints.convert(whole, target, to, dtype)
    finally:
        shutil.rmtree(whole, ignore_errors=True)


def read_checkpoint(folder, step):
    """(BertConfig, tokenizer, BertModel) of a checkpoint: the model it started from with what was trained since.

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
    share = run.settings.get("generator")
    learning = isinstance(share, float)
    # By its heads and not by its objective: sentence order was learnt by the next-sentence head in earlier runs.
    model = build_pretraining_model(config, heads=run.heads)
    frozen = run.settings.get("freeze_layers") or 0
    if frozen:
        # A checkpoint holds only what is trained.
        initialize(model, _start(folder, run.settings))
        freeze(model, frozen)
    # It holds the variables of what was trained as a whole, in its order.
    trained = ReplacedTokenDetection().network(model, make_generator(model, share)) if learning else model
    Checkpoints(folder / "checkpoints").restore(trained.trainable_variables, step, partly=True)
    return config, tokenizer, model


def _start(folder, settings):
    """The `BertModel` that a run's frozen layers are those of."""
    from bert_tf import checkpoints
    from bert_tf.pretraining.objectives.distillation import build_student

    if settings.get("init"):
        return checkpoints.read(checkpoints.find(settings["init"]))[2]
    if settings.get("student_layers"):
        # "bert" was once written where nothing was asked for.
        other = settings.get("model_type") if settings.get("model_type") != "bert" else None
        return build_student(
            checkpoints.read(checkpoints.find(settings["teacher"]))[2], settings["student_layers"], model_type=other
        )
    if not (folder / "model").is_dir():
        raise ValueError(
            f"{folder}: its frozen layers were drawn at random (--size with --freeze-layers) and stand "
            f"in no checkpoint, only in the finished model; let the run end first."
        )
    return checkpoints.read(folder / "model")[2]
