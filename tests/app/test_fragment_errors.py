"""An error in a fragment, which runs again by itself, is a sentence on the page, as an error of the whole page is."""

import json

import pytest

from tests.app.page_reading import page_text
from ui.session import runs


@pytest.fixture
def run_folder(tmp_path, monkeypatch):
    """A run whose log has records without the usual numbers."""
    folder = tmp_path / "runs" / "bare"
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps({"settings": {"steps": 20, "batch_size": 8, "length": 32}}))
    monkeypatch.setattr(runs, "SHIPPED", folder.parent)
    return folder


@pytest.mark.parametrize("missing", ["tokens_per_second", "seconds_per_step", "loss"])
def test_a_log_without_a_number_has_the_other_curves(open_app, run_folder, missing):
    record = {"loss": 3.0, "tokens_per_second": 99.0, "seconds_per_step": 0.5, "mlm_accuracy": 0.25, "time": 1.0}
    del record[missing]
    (run_folder / "metrics.jsonl").write_text("".join(json.dumps({"step": step, **record}) + "\n" for step in (5, 20)))
    app = open_app(page="training_curves", **{"training_curves.run": "bare"})
    assert not app.exception and not app.error, page_text(app)
    assert "masked words right **25.0%**" in page_text(app)


def test_an_error_in_a_fragment_is_a_sentence(open_app, run_folder, monkeypatch):
    from pages.training import training_curves

    (run_folder / "metrics.jsonl").write_text(json.dumps({"step": 20, "loss": 3.0}) + "\n")

    def fail(*_):
        raise KeyError("a fault of the program")

    monkeypatch.setattr(training_curves, "_figures", fail)
    app = open_app(page="training_curves", **{"training_curves.run": "bare"})
    assert not app.exception and "Something went wrong here" in app.error[0].value
