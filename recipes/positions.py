"""Position vectors for a model whose own do not serve at all places.

    python recipes/positions.py regress build/average-small-stored build/average-small-positions build/source-small
    python recipes/positions.py continue run-base-upper/model base-positions --text wiki-*.txt.xz --corpus ids

`regress` is for a model that was trained on 128 tokens only. This training changes the vectors of the places 0 to 127
and leaves the rest as they were, so the model cannot read on. The start's vectors of all places are of one kind: a
ridge regression (Hoerl and Kennard 1970) from the start's vectors to the trained ones, over the places that were
trained, gives the rest. Place 0 has [CLS] alone and the last ones mostly padding, so they take no part.

`continue` is for Base, whose source has lost the vectors from place 384 on to its rounding. The vectors before them
describe a curve, in which one rotation (Schönemann 1966, "A generalized solution of the orthogonal Procrustes problem")
leads from each vector to the next with a cosine of 0.99. It is applied on and on; then these vectors, and nothing else,
are trained on masked words in sequences of all places.
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
#: The first place that Base's source has lost.
LOST = 384
#: Principal directions of the vectors that the curve is continued in, and the width of the Gaussian (in places) that
#: smooths the vectors first. Chosen on WikiText-2's validation text, of 8 to 32 and 0 to 3.
DIRECTIONS, SMOOTHING = 13, 1.0
UPDATES, BATCH, RATE = 120, 4, 5e-4


def regressed(start, trained):
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


def continued(table, first):
    """The table with its rows from `first` on from the curve of the rows before.

    Args:
        table: [P, H] float array.
        first: int. The first row to replace; the rows before it stay. Row 0, of [CLS] alone, is not on the curve.

    Returns: [P, H] float array.
    """
    from scipy.linalg import orthogonal_procrustes
    from scipy.ndimage import gaussian_filter1d

    middle = table[1:first].mean(0)
    directions = np.linalg.svd(table[1:first] - middle, full_matrices=False)[2][:DIRECTIONS]
    curve = (table[1:first] - middle) @ directions.T
    smooth = gaussian_filter1d(curve, SMOOTHING, axis=0)
    rotation, _ = orthogonal_procrustes(smooth[:-1], smooth[1:])
    points = [smooth[-1] * np.linalg.norm(curve, axis=1).mean() / np.linalg.norm(smooth[-1])]
    for _ in range(first, len(table)):
        points.append(points[-1] @ rotation)
    longer = np.array(table)
    longer[first:] = np.array(points[1:]) @ directions + middle
    return longer


def table_of(model):
    """The variable of a model's position vectors."""
    from bert_tf.models import named_variables

    (name,) = (name for name in named_variables(model) if "position_embeddings" in name)
    return named_variables(model)[name]


def train_rows(model, tokenizer, corpus, first, updates=UPDATES, batch=BATCH, say=print):
    """Trains the rows of the position table from `first` on, and nothing else, on masked words in full sequences.

    Args:
        model: a `BertModel` with the MLM head. tokenizer, corpus: as `Feed` takes them. first: int.
        updates, batch: ints. Updates, and sequences of one.
        say: callable that is passed a line of progress.
    """
    import keras

    from bert_tf.models import view
    from bert_tf.pretraining.data.feed import Feed
    from bert_tf.pretraining.objectives.masked_lm import MaskedLM
    from bert_tf.pretraining.objectives.masking import MaskSettings
    from bert_tf.training.fused_ops import can_fuse, fuse
    from bert_tf.training.optimizers.registry import make_optimizer
    from bert_tf.training.precision import apply_precision
    from bert_tf.training.step import Step

    objective, network, precision = MaskedLM(), view(model, MaskedLM.model_outputs), "bfloat16_products"
    table = table_of(model)
    for variable in network.variables:
        variable.trainable = variable is table
    kept = keras.ops.convert_to_tensor(np.array(table.numpy())[:first])
    table.constraint = lambda rows: keras.ops.concatenate([kept, rows[first:]])  # called after each update
    apply_precision(network, precision)
    if can_fuse(precision, None, False):
        fuse(network)
    optimizer = make_optimizer(network.trainable_variables, RATE, updates, updates // 20, weight_decay=0)
    step = Step(network, objective, optimizer)
    feed = Feed(corpus, tokenizer, batch, table.shape[0], MaskSettings(rate=0.2), objective="mlm")
    for number, (examples, _) in zip(range(1, updates + 1), feed):
        values = step(examples)
        if number % 10 == 0:
            say(f"{number}: " + ", ".join(f"{name} {float(value):.4g}" for name, value in values.items()))


def main():
    """Reads the folders from the command line."""
    from bert_tf import checkpoints
    from bert_tf.pretraining.data.corpus import prepare_corpus
    from bert_tf.pretraining.data.documents import find_files

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ways = parser.add_subparsers(dest="way", required=True)
    regress, go_on = ways.add_parser("regress"), ways.add_parser("continue")
    for way in (regress, go_on):
        way.add_argument("trained", type=Path, help="folder of the model")
        way.add_argument("target", type=Path, help="folder to write")
    regress.add_argument("source", type=Path, help="folder of the model that it started from")
    go_on.add_argument("--text", nargs="+", required=True, help="corpus for the training")
    go_on.add_argument("--corpus", type=Path, required=True, help="folder of its tokens")
    go_on.add_argument("--max-documents", type=int, default=2000)
    args = parser.parse_args()

    config, tokenizer, model = checkpoints.read(args.trained)
    table = table_of(model)
    rows = np.array(table.numpy())
    if args.way == "regress":
        start = table_of(checkpoints.read(args.source)[2])
        table.assign(regressed(np.array(start.numpy()), rows))
    else:
        table.assign(continued(rows, LOST))
        corpus = prepare_corpus(find_files(args.text), tokenizer, args.corpus, args.max_documents)
        train_rows(model, tokenizer, corpus, LOST)
    checkpoints.save(args.target, config, tokenizer, model)


if __name__ == "__main__":
    main()
