"""Writes the model card of a fine-tuned model from its settings and scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.checkpoints.hub_repository import folder_name, parse_name
from bert_tf.checkpoints.library import models_dir
from bert_tf.checkpoints.registry import released
from bert_tf.finetuning.task_settings import score_text

if TYPE_CHECKING:
    from bert_tf.finetuning.task_model import LoadedModel
    from bert_tf.finetuning.task_settings import TaskSettings


TASK_NAMES = {
    "classify": "text classification",
    "tag": "labels for words",
    "answer": "answers out of a passage",
    "choose": "choice among several texts",
    "similarity": "vectors of sentences",
}
_HUB = {
    "classify": "text-classification",
    "tag": "token-classification",
    "answer": "question-answering",
    "choose": "multiple-choice",
    "similarity": "sentence-similarity",
}


def model_card(name: str, settings: TaskSettings, metrics: dict[str, Any], loaded: LoadedModel) -> str:
    """The text of README.md.

    Args:
        name: str. The name of the model.
        settings: `TaskSettings`.
        metrics: dict, as in report/metrics.json.
        loaded: the `LoadedModel`.

    Returns: str, Markdown.
    """
    start = _start_name(metrics["start"])
    architecture = loaded.config.architecture.with_article
    return "\n".join(
        [
            "---",
            "library_name: keras",
            f"pipeline_tag: {_HUB[settings.task]}",
            # In quotes: a folder may be called 2024.
            f"base_model: {json.dumps(start, ensure_ascii=False)}",
            "---",
            "",
            f"# {name}",
            "",
            f"{architecture[0].upper()}{architecture[1:]} model of {loaded.config.num_hidden_layers} layers of "
            f"{loaded.config.hidden_size}, fine-tuned for {TASK_NAMES[settings.task]} from {start}.",
            "",
            *_use(name, settings),
            "",
            "## How it was made",
            "",
            _making(metrics, settings),
            "",
            *_measured(metrics),
            "## Limits",
            "",
            "It learned only from its examples; on texts of another kind or language its predictions can be wrong with "
            "high confidence. It has the biases of the model it was trained from and of the examples. "
            "Measure it on your own data before you rely on it.",
            "",
        ]
    )


def _start_name(start):
    """The repository on the Hugging Face hub of a released or downloaded model, else the name of its folder."""
    if release := released(start):
        return release.repo
    repository = parse_name(start)
    # The path of a folder can look like OWNER/NAME.
    if repository and (models_dir() / folder_name(*repository)).is_dir():
        return repository[0]
    return Path(start).name


def _use(name, settings):
    output = []
    if settings.labels:
        labels = ", ".join(settings.labels[:20]) + (", …" if len(settings.labels) > 20 else "")
        output = [f"Labels: {labels}." if not settings.multi_label else f"Any of the labels: {labels}.", ""]
    elif settings.task == "similarity":
        output = ["It predicts the cosine of two sentences; sentence-transformers reads the folder too.", ""]
    elif settings.regression:
        output = ["It predicts one number.", ""]
    return [
        *output,
        "```python",
        "import bert_tf",
        "",
        f'task = bert_tf.load("{name}").task',
        "task.predict([...])",
        "```",
    ]


def _making(metrics, settings):
    how, frozen = metrics["training"], ""
    if how["lora"]:
        frozen = f"; low-rank updates (LoRA) of rank {how['lora']} in the place of the encoder's matrices"
        if how["freeze_layers"]:
            frozen += f", except in the lowest {how['freeze_layers']} layers"
    elif how["freeze_layers"]:
        frozen = f"; embeddings and the lowest {how['freeze_layers']} layers frozen"
    dropout = "the model's own dropout" if how["dropout"] is None else f"dropout {how['dropout']:g}"
    # A task has a step of windows if it reads them.
    reading = "long inputs read in windows of" if "stride" in settings.extra else "inputs cut to"
    done = metrics.get("epochs_trained", how["epochs"])
    stopped_early = f"{done:g} of " if done < how["epochs"] else ""
    return (
        f"{metrics['train_examples']:,} examples, {stopped_early}{how['epochs']} epoch{'s' * (how['epochs'] != 1)}, "
        "batches of "
        f"{how['batch_size']}, learning rate {how['learning_rate']:g}, warm-up {how['warmup']:g}, {dropout}, seed "
        f"{how['seed']}, precision {how['precision']}; {reading} {settings.max_length} tokens{frozen}."
    )


def _measured(metrics):
    if "dev" not in metrics:
        return []
    kept = f" ({metrics['epoch_kept']:g})" if "epoch_kept" in metrics else ""
    lines = [
        "## Measured",
        "",
        f"On {metrics['dev_examples']:,} examples of the dev set, by which the best epoch{kept} was chosen:",
        "",
        "| metric | value |",
        "|---|---|",
        *(f"| {name} | {score_text(value)} |" for name, value in metrics["dev"].items()),
        "",
    ]
    for name, value in metrics.get("seeds", {}).items():
        lines.append(f"- {name} over {len(value['values'])} seeds: {value['mean']:.4f} ± {value['std']:.4f}")
    return [*lines, ""] if "seeds" in metrics else lines
