"""The logs of a training: `metrics.jsonl`, a TensorBoard log, and the running means that go into both."""

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from bert_tf.files import atomic_write

METRICS_FILE, TENSORBOARD_FOLDER = "metrics.jsonl", "tensorboard"


class RunLog:
    """A context manager that appends records to the logs of a run.

    Args:
        folder: str or Path. The run folder.
        active: bool. False on machines that write nothing.
        first_step: int. The number of updates done before. Records of later steps come from a run that was killed, and
            are removed.

    Example:
        with RunLog("run") as log:
            log.write({"step": 1, "loss": 2.5})
    """

    def __init__(self, folder: str | Path, active: bool = True, first_step: float = math.inf) -> None:
        self.folder, self.active, self.first_step = Path(folder), active, first_step

    def __enter__(self):
        if self.active:
            import tensorflow as tf

            self.folder.mkdir(parents=True, exist_ok=True)
            truncate_log(self.folder / METRICS_FILE, self.first_step)
            self._file = open(self.folder / METRICS_FILE, "a", encoding="utf-8")
            self._events = tf.summary.create_file_writer(str(self.folder / TENSORBOARD_FOLDER))
        return self

    def __exit__(self, *_):
        if self.active:
            self._file.close()
            self._events.close()

    def write(self, record: dict[str, Any]) -> None:
        """Writes one record.

        Args:
            record: dict of numbers with "step".
        """
        if not self.active:
            return
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        with self._events.as_default(step=record["step"]):
            for name, value in record.items():
                if name not in ("step", "time"):
                    _scalar(name, value)
        self._events.flush()


def truncate_log(path: Path, step: float) -> None:
    """Removes the records after a step, and an incomplete last line, which would damage the next line.

    A full disk or a power failure can leave an incomplete line. Without the file nothing happens.

    Args:
        path: Path. A `metrics.jsonl` file.
        step: int. The last step to keep.
    """
    if not path.is_file():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if line.endswith(b"\n") and _step_of(line) <= step]
    if len(kept) < len(lines):
        with atomic_write(path) as temporary:
            temporary.write_bytes(b"".join(kept))


def _step_of(line):
    """The step of a log line; -1 if the line is damaged: it stays, and the reader of the log reports it."""
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return -1


def _scalar(name, value):
    # Writes the same as `tf.summary.scalar`, which needs the TensorBoard package.
    import tensorflow as tf

    kind = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"), data_class=1
    )
    tf.summary.write(name, tf.constant(value, tf.float32), metadata=kind)


class RunningMeans:
    """The means of the logged values since the last record.

    Args:
        peak: float. The FLOP/s of all devices together, or None if unknown.
        ratios: dict name in the record -> (numerator, denominator), two names of values; or None. It is for means over
            a number of tokens that is known only after the update. The record does not contain the numerator; nor the
            name if the denominator is always 0.

    Example:
        means = RunningMeans()
        means.add({"loss": 2.5}, tokens=512)
        record = means.record(step=1, learning_rate=1e-4)
    """

    def __init__(self, peak: float | None = None, ratios: dict[str, tuple[str, str]] | None = None) -> None:
        self.peak, self.ratios = peak, ratios or {}
        self.clear()

    def clear(self) -> None:
        self.values: list[dict[str, float]] = []
        self.tokens, self.flops, self.start = 0, 0.0, time.perf_counter()

    def add(self, values: dict[str, float], tokens: int, flops: float = 0.0) -> None:
        """Adds one update.

        Args:
            values: dict of float. The values of the update.
            tokens: int. The number of tokens without padding.
            flops: float. The floating-point operations of the update.
        """
        self.last = values
        self.values.append(values)
        self.tokens += tokens
        self.flops += flops

    def record(self, step: int, learning_rate: float) -> dict[str, Any]:
        """Makes a record of the means and clears them.

        A value that is not finite (the gradient norm of a step that the loss scale skipped) does not count in the mean.
        A name without any finite value is left out.

        Args:
            step: int. The step of the last update.
            learning_rate: float. The learning rate of the last update.

        Returns: the record, a dict of JSON values.
        """
        finite = {name: [value for values in self.values if math.isfinite(value := values[name])] for name in self.last}
        means = {name: float(np.mean(values)) for name, values in finite.items() if values}
        for name, (numerator, denominator) in self.ratios.items():
            value = means.pop(numerator)
            means |= {name: value / means[denominator]} if means[denominator] else {}
        means = {name: round(value, 5) for name, value in means.items()}
        seconds = time.perf_counter() - self.start
        record = {
            "step": step,
            **means,
            "learning_rate": learning_rate,
            "tokens_per_second": round(self.tokens / seconds, 1),
            "seconds_per_step": round(seconds / len(self.values), 4),
            "time": round(time.time(), 1),
        }
        if self.peak:
            record["peak_share"] = round(self.flops / seconds / self.peak, 4)
        self.clear()
        return record
