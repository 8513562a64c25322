"""The line that reads a training."""

from ui.shell.limits import ROOT

_IMPORT = "from bert_tf.training.run_folder import read_run"


def reading_run(folder):
    """(imports, the line that reads a run): a shipped one by its path in the project, a visitor's own by its name."""
    if folder.is_relative_to(ROOT):
        return (_IMPORT,), f'run = read_run("{folder.relative_to(ROOT).as_posix()}")  # in the project\'s folder'
    from bert_tf.checkpoints import models_dir

    if folder.parent == models_dir() / "runs":
        # Where that lies on this server is nothing for a visitor.
        line = f'run = read_run(models_dir() / "runs" / {folder.name!r})'
        return ("from bert_tf.checkpoints import models_dir", _IMPORT), line
    return (_IMPORT,), f"run = read_run({folder.name!r})  # the folder of the training"
