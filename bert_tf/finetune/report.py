"""The report of a fine-tuned model: measured again as it will be used, in figures, tables and words."""

import dataclasses
from pathlib import Path

from bert_tf.checkpoints.files import write_json


def write_report(output, dev, train_count, how, start, scores, say=print):
    """Loads the model of a folder, measures it in float32 on the dev set, and writes `report/`.

    Args:
        output: folder of the model. dev: list of examples, may be empty. train_count: examples it learned from.
        how: `FitSettings`. start: what it was trained from. scores: list of the best scores of each seed.

    Returns: dict as in metrics.json.
    """
    import bert_tf
    from bert_tf.finetune.seeds import spread

    output = Path(output)
    model = bert_tf.load(output).task
    family, settings = model.family, model.settings
    metrics = {"task": settings.task, "metric": settings.metric, "start": str(start), "train_examples": train_count,
               "dev_examples": len(dev), "settings": dataclasses.asdict(how)}
    if dev:
        predictions = model.predict(dev)
        metrics["dev"] = family.score(dev, predictions, settings)
    if len(scores) > 1:
        metrics["seeds"] = spread(scores)
    (output / "report").mkdir(exist_ok=True)
    write_json(output / "report" / "metrics.json", metrics)
    for name, value in metrics.get("dev", {}).items():
        say(f"{name} {value:.4f}")
    return metrics
