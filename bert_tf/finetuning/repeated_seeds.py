"""One run, or several with a seed each: mean and spread of their scores, the best model kept."""

import dataclasses
import shutil

from bert_tf.finetuning.fit import fit
from bert_tf.finetuning.task_settings import selection_score


def fit_seeds(family, start, train, dev, settings, how, output, seeds=1, say=print):
    """`fit` with `seeds` seeds from `how.seed` on, and the report of the best model.

    With more than one, each run has a folder `seed-S` in the output, and the best one's model is copied up.

    Args: as `fit`.

    Returns: whether it came to its end (False where a signal stopped it).
    """
    from bert_tf.finetuning.report import write_report

    if seeds == 1:
        done = fit(family, start, train, dev, settings, how, output, say)
        if done.finished and done.chief:
            write_report(output, dev, len(train), how, start, [best_scores(done.rounds, settings.metric)], say)
        return done.finished
    scores = []
    for seed in range(how.seed, how.seed + seeds):
        folder = output / f"seed-{seed}"
        say(f"Seed {seed}.")
        done = fit(family, start, train, dev, settings, dataclasses.replace(how, seed=seed), folder, say)
        if not done.finished or done.stopped and seed + 1 < how.seed + seeds:
            return False
        scores.append({"seed": seed, **best_scores(done.rounds, settings.metric)})
        _forget()
    if done.chief:
        best = max(scores, key=lambda one: selection_score(one, settings.metric))
        _copy_model(output / f"seed-{best['seed']}", output)
        write_report(output, dev, len(train), dataclasses.replace(how, seed=best["seed"]), start, scores, say)
    return True


def best_scores(rounds, metric):
    """The dev scores of the round that is best by a metric, among `Fitted.rounds`."""
    return max((one["dev"] for one in rounds), key=lambda scores: selection_score(scores, metric))


def _forget():
    """Lets go of a finished run's model."""
    import gc

    import keras

    keras.backend.clear_session()
    gc.collect()


def _copy_model(source, target):
    for path in source.iterdir():
        if path.is_file():
            shutil.copy2(path, target / path.name)
    (target / "run").mkdir(exist_ok=True)
    for name in ("rounds.json", "metrics.jsonl", "settings.json"):
        if (source / "run" / name).is_file():
            shutil.copy2(source / "run" / name, target / "run" / name)
