"""Moves a fine-tuned model from the earlier to the present version of the model that it lies over, without training.

    python recipes/carry_over.py TASK EARLIER PRESENT TARGET

Task arithmetic (Ilharco et al. 2023, arXiv 2212.04089): what fine-tuning added to the earlier weights is added to the
present ones. It serves where the two versions are close; measure what it gives (`python -m bert_tf evaluate TASK`), and
train anew (recipes/tasks.py) where that is too little.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))


def carry_over(task_folder, earlier, present, target):
    """Writes the moved model.

    Args:
        task_folder: folder of a fine-tuned model that stores only its trained weights.
        earlier: folder of the model that it was trained on.
        present: name or folder of the same model as it is now.
        target: folder to write.
    """
    import bert_tf
    from bert_tf import checkpoints
    from bert_tf.checkpoints.formats.safetensors_folder import open_tensors
    from bert_tf.checkpoints.tensor_names import tensor_shapes
    from bert_tf.finetuning.task_folder import save_task
    from bert_tf.models import named_variables

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "task"
        shutil.copytree(task_folder, copy)
        values = json.loads((copy / "task.json").read_text("utf-8"))
        (copy / "task.json").write_text(json.dumps({**values, "base_model": str(Path(earlier).resolve())}), "utf-8")
        (copy / "checksums.json").unlink(missing_ok=True)  # of the settings as they were
        bert = bert_tf.load(copy)
        network = bert.task.network
        trained = set(open_tensors(copy))
    before, after = (named_variables(checkpoints.read(path)[2]) for path in (earlier, checkpoints.find(present)))
    weights = network.named_variables()
    for name in tensor_shapes(network.bert_config, network.bert_heads):
        weights[name].assign(weights[name] + after[name] - before[name])
        weights[name].trainable = name in trained
    settings = bert.task.settings
    save_task(target, bert.config, bert.tokenizer, network, settings, dtype="int8", delta_of=present)
    shutil.copy2(Path(task_folder) / "README.md", Path(target) / "README.md")


def main():
    """Reads the four folders from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("task", "earlier", "present", "target"):
        parser.add_argument(name)
    args = parser.parse_args()
    carry_over(args.task, args.earlier, args.present, args.target)


if __name__ == "__main__":
    main()
