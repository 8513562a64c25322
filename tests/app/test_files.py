"""A visitor's own file on a page: read, kept from page to page, taken away."""

import pytest

from tests.app.page_reading import page_text, run_until_done

SMALL, LARGE = b"The cat sat.\nIt was good.", b"The cat sat.\n" * 100


@pytest.fixture
def app(open_app, explorer_home, tmp_path, monkeypatch):
    """The page Data with a file of the visitor's; files have at most 1 kB."""
    limits = tmp_path / "small.toml"
    limits.write_text((explorer_home / "explorer.toml").read_text() + "[files]\nmax_file_kilobytes = 1\n")
    monkeypatch.setenv("BERT_TF_EXPLORER", str(limits))
    app = open_app(page="dataset", **{"dataset.file": "upload"})
    return uploaded(app, SMALL)


def uploaded(app, data):
    app.file_uploader(key="w_dataset_upload").upload("mine.txt", data, "text/plain").run()
    return app


def away_and_back(app):
    app.query_params["page"] = "guide"
    app.run()
    app.query_params["page"], app.query_params["dataset.file"] = "dataset", "upload"
    return run_until_done(app.run())


def is_read(app):
    return "Read from mine.txt" in page_text(app).replace("\\", "") and "Choose a file" not in page_text(app)


def test_a_file_that_is_taken_from_the_widget_is_gone(app):
    assert is_read(run_until_done(app))
    app.file_uploader(key="w_dataset_upload").set_value(None).run()
    assert not is_read(app) and "Choose a file" in page_text(app)
    assert not is_read(away_and_back(app))


def test_a_file_outlives_its_widget_and_can_be_taken_away_then(app):
    assert is_read(away_and_back(app))
    app.button(key="w_dataset_forget").click().run()
    assert not is_read(app) and "Choose a file" in page_text(app)


@pytest.mark.parametrize("data", [b"", b"\n  \n"])
def test_an_empty_file_is_named(data, app):
    said = page_text(uploaded(run_until_done(app), data))
    assert "is empty; choose a file with texts" in said and "Choose a file" not in said


def test_a_file_that_is_too_large_takes_the_place_of_the_one_before(app):
    assert "at most 1 kB are read" in page_text(uploaded(run_until_done(app), LARGE))
    assert not is_read(away_and_back(app))
