"""Twenty random sessions; the campaign (tests/campaign) plays five hundred, with the shipped models."""

import hypothesis
import pytest

from tests.app.random_sessions import LIMITS, play, sessions, usable
from ui.shell.catalogue import pages

MODELS = ["tiny-cased", "tiny-uncased"]


@pytest.fixture
def quiet_limits(explorer_home, environment, tmp_path, monkeypatch):
    """Limits under which a session starts no process and asks no hub."""
    from ui.session import state

    offered = ", ".join(f'"{name}"' for name in MODELS)
    (tmp_path / "limits.toml").write_text(LIMITS.format(offered=offered, default=MODELS[0]))
    monkeypatch.setenv("BERT_TF_EXPLORER", str(tmp_path / "limits.toml"))
    state.limits.clear()


def test_random_sessions_end_in_no_fault(quiet_limits, open_app):
    played = []

    @hypothesis.settings(max_examples=20, deadline=None, derandomize=True, database=None)
    @hypothesis.given(sessions(list(pages()), MODELS))
    def session(one):
        output = []
        try:
            play(one, open_app, output.append)
        except AssertionError as error:
            error.add_note("\n".join(output))
            raise
        played.append(len(output))

    session()
    assert len(played) >= 20 and sum(played) > 40, "hardly an act was played"


def test_a_fault_of_a_page_ends_a_session(quiet_limits, open_app, monkeypatch):
    """Otherwise the test above would prove nothing."""

    def broken(name):
        raise KeyError("made")

    monkeypatch.setattr("ui.shell.catalogue.draw", broken)
    with pytest.raises(AssertionError, match="a fault of the program"):
        play(("predict", MODELS[0], "The cat sat.", []), open_app, str)


def test_widgets_of_a_page_are_found(quiet_limits, open_app):
    kinds = {widget.type for widget in usable(open_app(page="predict"))}
    assert {"text_area", "selectbox", "button"} <= kinds
