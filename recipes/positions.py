"""Position vectors for a model that was trained on short sequences only, from those of the model that it started from.

    python recipes/positions.py build/average-small-stored build/source-small build/average-small-positions

Training on 128 tokens changes the vectors of the places 0 to 127 and leaves the rest as they were, so the model cannot
read on. The start's vectors of all places are of one kind: a ridge regression (Hoerl and Kennard 1970) from the start's
vectors to the trained ones, over the places that were trained, gives the rest. Place 0 has [CLS] alone and the last
ones mostly padding, so they take no part.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

#: Places from which the regression is computed; it gives all from the second on.
FIRST, LAST = 1, 126
#: Between the best values on WikiText-2's validation text, of 0.003 to 10: 0.2 at 256 tokens and 0.01 at 512.
PENALTY = 0.05


def extended(start, trained):
    """The trained table with its untrained rows from the regression.

    Args:
        start: [P, H] float array, the table of the model that the training started from.
        trained: [P, H] float array, the table after it.

    Returns: [P, H] float array.
    """
    inputs, outputs = start[FIRST:LAST], trained[FIRST:LAST]
    middle_in, middle_out = inputs.mean(0), outputs.mean(0)
    centred = inputs - middle_in
    weights = np.linalg.solve(
        centred.T @ centred + PENALTY * np.eye(start.shape[1]), centred.T @ (outputs - middle_out)
    )
    table = np.array(trained)
    table[LAST:] = (start[LAST:] - middle_in) @ weights + middle_out
    return table


def extend(trained, source, target):
    """Writes a model with extended position vectors. Args: folders; source: of the start. Returns: target."""
    from bert_tf import checkpoints
    from bert_tf.models import named_variables

    def table_of(model):
        (name,) = (name for name in named_variables(model) if "position_embeddings" in name)
        return named_variables(model)[name]

    _, _, start = checkpoints.read(source)
    config, tokenizer, model = checkpoints.read(trained)
    table = table_of(model)
    table.assign(extended(np.array(table_of(start).numpy()), np.array(table.numpy())))
    return checkpoints.save(target, config, tokenizer, model)


def main():
    """Reads the three folders from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trained", type=Path, help="folder of the model trained on 128 tokens")
    parser.add_argument("source", type=Path, help="folder of the model that it started from")
    parser.add_argument("target", type=Path, help="folder to write")
    args = parser.parse_args()
    extend(args.trained, args.source, args.target)


if __name__ == "__main__":
    main()
