"""What a training says of itself: `metrics.jsonl`, a TensorBoard log, and the means that go into both."""

import json
import math
import time
from pathlib import Path

import numpy as np

from bert_tf.files import atomic_write

METRICS_FILE, TENSORBOARD_FOLDER = "metrics.jsonl", "tensorboard"


class RunLog:
    """Appends records to a run's logs; a context manager.

    Args:
        folder: of the run. active: False on the machines that write nothing. first_step: updates done before; what the
            log has of later ones is of a run that was killed, and taken out.
    """

    def __init__(self, folder, active=True, first_step=math.inf):
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

    def write(self, record):
        """Args: record: dict of numbers with "step"."""
        if not self.active:
            return
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        with self._events.as_default(step=record["step"]):
            for name, value in record.items():
                if name not in ("step", "time"):
                    _scalar(name, value)
        self._events.flush()


def truncate_log(path, step):
    """Takes out of a log what is of later steps, and what a full disk or a loss of power left of its last line, which
    would spoil the next one. A file that is not there stays so."""
    if not path.is_file():
        return
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if line.endswith(b"\n") and _step_of(line) <= step]
    if len(kept) < len(lines):
        with atomic_write(path) as temporary:
            temporary.write_bytes(b"".join(kept))


def _step_of(line):
    """The step of a log's line; -1 for one that is damaged, which is for those who read the log to tell."""
    try:
        return json.loads(line)["step"]
    except (ValueError, KeyError, TypeError):
        return -1


def _scalar(name, value):
    # What `tf.summary.scalar` writes; that one asks for the whole of TensorBoard to be installed.
    import tensorflow as tf

    kind = tf.compat.v1.SummaryMetadata(
        plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"), data_class=1
    )
    tf.summary.write(name, tf.constant(value, tf.float32), metadata=kind)


class RunningMeans:
    """Means since the last record.

    Args:
        peak: FLOP/s that the devices together can do, or None where it is not known.
        ratios: what is a mean over a part of the tokens that is known only after each update: name in the record ->
            (value, value that it is divided by). The first of them is left out, and the name too where the second
            is 0 all along.
    """

    def __init__(self, peak=None, ratios=None):
        self.peak, self.ratios = peak, ratios or {}
        self.clear()

    def clear(self):
        self.values, self.tokens, self.flops, self.start = [], 0, 0.0, time.perf_counter()

    def add(self, values, tokens, flops=0.0):
        """One update: dict of its values, real tokens in it, and what it takes by arithmetic."""
        self.last = values
        self.values.append(values)
        self.tokens += tokens
        self.flops += flops

    def record(self, step, learning_rate):
        """Args: step, learning_rate: of the last update. Returns: the record, a JSON-able dict; begins anew.

        A value that is not finite (the gradient's norm, in a step that the loss scale left out) counts in no mean; a
        name without another one is left out.
        """
        finite = {name: [one for value in self.values if math.isfinite(one := value[name])] for name in self.last}
        means = {name: float(np.mean(values)) for name, values in finite.items() if values}
        for name, (part, whole) in self.ratios.items():
            value = means.pop(part)
            means |= {name: value / means[whole]} if means[whole] else {}
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
