"""The report of a fine-tuned model: loads the saved model, evaluates it, and writes figures, tables and a model card.

`report/` holds metrics.json, report.html (without external files), the figures as PNG (if
Matplotlib is installed), and errors.csv.
"""

from __future__ import annotations

import csv
import dataclasses
import html
from importlib.util import find_spec
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bert_tf.files import atomic_write, write_json, write_text
from bert_tf.finetuning.learning_record import read_rounds
from bert_tf.finetuning.model_card import TASK_NAMES, model_card
from bert_tf.finetuning.task_settings import score_text, undefined_note
from bert_tf.training.run_folder import read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bert_tf.finetuning.fit import FitSettings
    from bert_tf.finetuning.task_model import TaskModel
    from bert_tf.finetuning.tasks.task import ErrorAnalysis


def write_report(
    output: str | Path,
    dev: Sequence[Any],
    train_count: int,
    how: FitSettings,
    start: str | Path,
    scores: Sequence[dict[str, Any]],
    say: Callable[[str], object] = print,
) -> dict[str, Any]:
    """Loads the model of a folder, evaluates it in float32 on the dev set, and writes `report/` and the model card.

    Args:
        output: str or Path. The folder of the model.
        dev: list of examples; may be empty.
        train_count: int. The number of training examples.
        how: `FitSettings`.
        start: str or Path. The model that the training started from.
        scores: list of dicts, the best scores of each seed.
        say: callable that gets each line of the scores.

    Returns: dict, as in metrics.json.
    """
    from bert_tf.finetuning.task_model import load_model

    output = Path(output)
    loaded = load_model(output)
    task = cast("TaskModel", loaded.task)
    settings = task.settings
    metrics: dict[str, Any] = {
        "task": settings.task,
        "metric": settings.metric,
        "start": str(start),
        "train_examples": train_count,
        "dev_examples": len(dev),
        "training": dataclasses.asdict(how),
    }
    if dev:
        predictions = task.predict(dev)
        metrics["dev"] = task.task_type.score(dev, predictions, settings)
        findings = task.task_type.findings(dev, predictions, settings)
    else:
        findings = None
    if len(scores) > 1:
        metrics["seeds"] = spread(scores)
    progress = read_progress(output / "run")
    if progress and progress[1]:
        rounds = progress[1]
        metrics["epochs_trained"] = rounds[-1]["epoch"]
        metrics["epoch_kept"] = next(record["epoch"] for record in reversed(rounds) if record["best"])
    write_findings(output / "report", metrics, findings, progress)
    write_text(output / "README.md", model_card(output.name, settings, metrics, loaded))
    for name, value in metrics.get("dev", {}).items():
        say(f"{name} {score_text(value)}")
    if note := undefined_note(metrics.get("dev", {})):
        say(note)
    for name, value in metrics.get("seeds", {}).items():
        say(f"{name} over {len(scores)} seeds: {value['mean']:.4f} ± {value['std']:.4f}")
    return metrics


def spread(scores: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The mean and standard deviation of each metric over the seeds.

    Args:
        scores: list of dicts of numbers; the key "seed" and the counts (integers) are left out.

    Returns: dict metric -> {"mean", "std" (of a sample; 0 for one value), "values"}.
    """
    spreads = {}
    for name, first in scores[0].items():
        if name != "seed" and not isinstance(first, Integral):
            values = [float(seed_scores[name]) for seed_scores in scores]
            spreads[name] = {
                "mean": float(np.mean(values)),
                "std": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
                "values": values,
            }
    return spreads


def write_findings(
    folder: str | Path,
    metrics: dict[str, Any],
    findings: ErrorAnalysis | None = None,
    progress: tuple[list, list] | None = None,
) -> None:
    """Writes metrics.json, report.html, errors.csv and the figures as PNG; removes other files of an earlier report.

    Args:
        folder: str or Path. The folder to write to; it is created if it does not exist.
        metrics: dict of JSON values.
        findings: `ErrorAnalysis`, or None.
        progress: (records of the log, rounds) from `read_progress`, or None.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("errors.csv", "learning_curve.png", "confusion.png", "labels.png"):
        (folder / name).unlink(missing_ok=True)
    write_json(folder / "metrics.json", metrics)
    if findings and findings.worst:
        _write_errors(folder / "errors.csv", findings.worst)
    _write_pictures(folder, metrics, findings, progress)
    write_text(folder / "report.html", _page(metrics, findings, progress))


def read_progress(folder: Path) -> tuple[list, list] | None:
    """Reads the log and the rounds of a run folder.

    Args:
        folder: Path. The run folder.

    Returns: (records of the log, rounds), two lists; None if a file does not exist.
    """
    log, rounds = folder / "metrics.jsonl", folder / "rounds.json"
    if not log.is_file() or not rounds.is_file():
        return None
    return list(read_records(log)), read_rounds(rounds)


def _write_errors(path, rows):
    with atomic_write(path) as part, open(part, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _write_pictures(folder, metrics, findings, progress):
    if find_spec("matplotlib") is None:
        return  # the page has the same figures
    from bert_tf.plots.training import finetuning_png as files

    if progress:
        records, rounds = progress
        files.learning_curve_png(folder / "learning_curve.png", records, rounds, metrics["metric"])
    if findings and findings.confusion:
        files.confusion_matrix_png(folder / "confusion.png", *findings.confusion)
    if findings and findings.per_label:
        files.label_bars_png(folder / "labels.png", findings.per_label)


def _page(metrics, findings, progress):
    """One HTML page without external files; it contains the drawing library once."""
    from bert_tf.plots.training import finetuning as plots

    parts = [f"<h1>{html.escape(TASK_NAMES[metrics['task']].capitalize())}</h1>", _numbers(metrics)]
    figures = []
    if progress:
        records, rounds = progress
        figures.append(("How it learned", plots.learning_curve(records, rounds, metrics["metric"])))
    if findings and findings.confusion:
        figures.append(("What it confuses", plots.confusion_matrix(*findings.confusion)))
    if findings and findings.per_label:
        figures.append(("Label by label", plots.label_bars(findings.per_label)))
    for number, (title, figure) in enumerate(figures):
        parts += [f"<h2>{title}</h2>", figure.to_html(full_html=False, include_plotlyjs=number == 0)]
    if findings and findings.per_label:
        parts.append(_table(findings.per_label))
    if findings and findings.worst:
        parts += [f"<h2>{findings.worst_errors_title}</h2>", _table(findings.worst[:50])]
    return _FRAME.format(title=html.escape(f"{metrics['task']}: report"), body="\n".join(parts))


def _numbers(metrics):
    rows = [{"metric": name, "dev": value} for name, value in metrics.get("dev", {}).items()]
    for row in rows:
        if row["metric"] in metrics.get("seeds", {}):
            seeds = metrics["seeds"][row["metric"]]
            row["over the seeds"] = f"{seeds['mean']:.4f} ± {seeds['std']:.4f}"
    facts = [
        f"{metrics[name]:,} {words}"
        for name, words in (("train_examples", "training examples"), ("dev_examples", "dev examples"))
        if name in metrics
    ]
    return f"<p>{html.escape(', '.join(facts))}</p>{_table(rows) if rows else ''}"


def _table(rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(_cell(row.get(name, "")) for name in names) + "</tr>" for row in rows)
    return f"<div class=wide><table><tr>{head}</tr>{body}</table></div>"


def _cell(value):
    text = f"{value:.4f}" if isinstance(value, float) else str(value)
    return f"<td{' class=long' if len(text) > 40 else ''}>{html.escape(text)}</td>"


_FRAME = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1d2330; }}
table {{ border-collapse: collapse; font-size: 0.9rem; }}
td, th {{ text-align: left; vertical-align: top; padding: 0.25rem 0.75rem 0.25rem 0;
          border-bottom: 1px solid #dde1e8; }}
td {{ min-width: 3rem; }}
.long {{ min-width: 16rem; }}
.wide {{ overflow-x: auto; }}
</style>
{body}
</html>
"""
