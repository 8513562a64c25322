"""Fine-tuning with one or several seeds: mean and standard deviation of the scores; the best model is kept."""

from __future__ import annotations

import dataclasses
import math
import shutil
from typing import TYPE_CHECKING, Any

from bert_tf.finetuning.fit import fit, refuse_foreign_model
from bert_tf.finetuning.task_settings import selection_score

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from bert_tf.finetuning.fit import FitSettings
    from bert_tf.finetuning.task_settings import TaskSettings
    from bert_tf.finetuning.tasks.task import Task


def fit_seeds(
    task_type: Task,
    start: str | Path,
    train: Sequence[Any],
    dev: Sequence[Any],
    settings: TaskSettings,
    how: FitSettings,
    output: Path,
    seeds: int = 1,
    say: Callable[[str], object] = print,
) -> bool:
    """Runs `fit` with the seeds from `how.seed` on, and writes the report of the best model.

    With more than one seed, each run has a folder `seed-S` in the output, and the best model is copied to the output.

    Args: as `fit`, and
        seeds: int. The number of seeds.

    Returns: bool, whether all runs finished; False if a signal stopped one.
    """
    from bert_tf.finetuning.report import write_report

    if seeds == 1:
        result = fit(task_type, start, train, dev, settings, how, output, say)
        if result.finished and result.chief:
            write_report(output, dev, len(train), how, start, [best_scores(result.rounds, settings.metric)], say)
        return result.finished
    refuse_foreign_model(output)
    scores = []
    for seed in range(how.seed, how.seed + seeds):
        folder = output / f"seed-{seed}"
        say(f"Seed {seed}.")
        seeded = dataclasses.replace(how, seed=seed)
        result = fit(task_type, start, train, dev, settings, seeded, folder, say, copied_to=output)
        if not result.finished or result.stopped and seed + 1 < how.seed + seeds:
            return False
        scores.append({"seed": seed, **best_scores(result.rounds, settings.metric)})
        _free_memory()
    if result.chief:
        best = max(scores, key=lambda seed_scores: selection_score(seed_scores, settings.metric))
        _copy_model(output / f"seed-{best['seed']}", output)
        write_report(output, dev, len(train), dataclasses.replace(how, seed=best["seed"]), start, scores, say)
    return True


def best_scores(rounds: Sequence[dict[str, Any]], metric: str) -> dict[str, Any]:
    """The dev scores of the best round, the last one if the metric is undefined in all.

    Args:
        rounds: list of dicts, `FitResult.rounds`.
        metric: str. The metric that decides which round is best.

    Returns: dict.
    """
    scores = [record["dev"] for record in rounds]
    best = max(scores, key=lambda one: selection_score(one, metric))
    return scores[-1] if selection_score(best, metric) == -math.inf else best


def _free_memory():
    """Frees the model of a finished run."""
    import gc

    import keras

    keras.backend.clear_session()
    gc.collect()


def _copy_model(source, target):
    # First the run, by which the same command knows the model as its own if it is killed here.
    (target / "run").mkdir(exist_ok=True)
    for name in ("settings.json", "rounds.json", "metrics.jsonl"):
        if (source / "run" / name).is_file():
            shutil.copy2(source / "run" / name, target / "run" / name)
    # With the folders of the modules of sentence-transformers.
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("run"), dirs_exist_ok=True)
