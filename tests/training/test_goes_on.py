"""Whether a run seems to be trained at this moment, from its files alone."""

import json
import os

import pytest

from bert_tf.training.run_folder import read_run

NOW = 1_000_000.0


def made(folder, records, begun, steps=1000):
    """A run's folder: `records` as (step, seconds a step, seconds ago); `begun`: seconds since its settings."""
    (folder / "settings.json").write_text(json.dumps({"settings": {"steps": steps, "log_every": 50}}))
    os.utime(folder / "settings.json", (NOW - begun, NOW - begun))
    lines = [{"step": step, "seconds_per_step": pace, "time": NOW - ago} for step, pace, ago in records]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_run(folder)


@pytest.mark.parametrize(
    "records, begun, alive",
    [
        # A record every 165 s: three times as long is waited for the next.
        ([(50, 3.3, 565), (100, 3.3, 400)], 9000, True),
        ([(50, 3.3, 765), (100, 3.3, 600)], 9000, False),
        ([(50, 3.3, 160)], 500, True),
        ([(50, 3.3, 600)], 900, False),
        # Ten a second: a minute and a half, whatever happens.
        ([(50, 0.1, 85), (100, 0.1, 80)], 9000, True),
        ([(50, 0.1, 105), (100, 0.1, 100)], 9000, False),
        # Begun anew after a night: not the night is the time between two records.
        ([(50, 0.1, 40_000), (100, 0.1, 200)], 250, False),
        ([(50, 0.1, 40_000)], 30, True),
        # Nothing in the log yet.
        ([], 600, True),
        ([], 3600, False),
        # At its last step it is over.
        ([(1000, 0.1, 1)], 100, False),
    ],
)
def test_a_run_goes_on_while_the_next_record_may_come(records, begun, alive, tmp_path):
    assert made(tmp_path, records, begun).is_running(NOW) is alive


def test_a_run_whose_settings_are_not_written_yet_goes_on_from_its_log(tmp_path):
    (tmp_path / "metrics.jsonl").touch()
    os.utime(tmp_path / "metrics.jsonl", (NOW, NOW))
    assert read_run(tmp_path).is_running(NOW + 60) and not read_run(tmp_path).is_running(NOW + 3600)
