"""Work beside a page that the page no longer asks for."""

import time

import pytest
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

from bert_tf.errors import report
from tests.app.page_reading import PATIENCE, page_text
from ui.session import jobs

WORDS = "the cat sat on the mat " * 11


@pytest.fixture(autouse=True)
def endless(monkeypatch):
    """Every job goes on until it is stopped."""
    made = []

    def work(progress):
        while True:
            report(progress, 0, 1)
            time.sleep(0.01)

    class Endless(jobs.Job):
        def __init__(self, key, function, *more):
            super().__init__(key, work, *more)
            made.append(self)

    monkeypatch.setattr(jobs, "Job", Endless)
    yield
    for job in made:
        job.stop()


def running(app):
    return {name: one for name, one in app.session_state["_jobs"].items() if one.running}


def over(job):
    deadline = time.monotonic() + PATIENCE
    while job.running and time.monotonic() < deadline:
        time.sleep(0.01)
    return job.status == "stopped"


CASES = {
    "family speed": ({"page": "architectures", "architectures.speed": "1"}, "toggle", "w_architectures_speed", False),
    "ablation": ({"page": "ablation", "ablation.colour": "effect"}, "button_group", "w_ablation_colour", "shift"),
    "counterfactuals_pairs": (
        {"page": "counterfactuals", "counterfactuals.kind": "pairs", "counterfactuals.all": "1"},
        "toggle",
        "w_counterfactuals_all",
        False,
    ),
    "counterfactuals_less": (
        {"page": "counterfactuals", "counterfactuals.kind": "less"},
        "button_group",
        "w_counterfactuals_kind",
        "swap",
    ),
    "saliency input-reduction": (
        {"page": "saliency", "saliency.method": "input-reduction"},
        "button_group",
        "w_saliency_method",
        "occlusion",
    ),
    "saliency hotflip": (
        {"page": "saliency", "saliency.method": "hotflip"},
        "button_group",
        "w_saliency_method",
        "lime",
    ),
    "saliency lime": ({"page": "saliency", "saliency.method": "lime"}, "button_group", "w_saliency_method", "hotflip"),
    "patching state": (
        {"page": "patching", "patching.a": "The cat was."},
        "button_group",
        "w_patching_part",
        "attention",
    ),
    "nearest_words": (
        {"page": "nearest_words", "nearest_words.among": "text", "nearest_words.at": "2", "nearest_words.vector": "2"},
        "button_group",
        "w_near_among",
        "vocabulary",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_switched_off_is_stopped(open_app, name):
    link, kind, key, off = CASES[name]
    app = open_app(a="The cat sat.", mask="a1", **link)
    others, job = running(app), running(app).pop(name)
    del others[name]
    getattr(app, kind)(key=key).set_value(off).run()
    assert not app.exception and not app.error, page_text(app)
    assert over(job) and name not in app.session_state["_jobs"]
    assert {one: running(app).get(one) for one in others} == others  # what is still asked for goes on


def test_words_of_a_long_text_that_are_not_to_be_covered_any_more(with_tasks, open_app):
    app = open_app(
        page="task_predictions", a=WORDS, **{"task_predictions.model": "classes", "task_predictions.words": "1"}
    )
    job = running(app)["task words"]
    app.toggle(key="w_task_words").set_value(False).run()
    assert over(job) and not running(app)


def test_it_goes_on_while_another_page_is_open_and_is_found_again(open_app):
    link = {"page": "ablation", "a": "The cat sat.", "mask": "a1", "ablation.colour": "effect"}
    app = open_app(**link)
    job = running(app)["ablation"]
    app.query_params["page"] = "guide"
    app.run()
    app.query_params.update(link)
    app.run()
    assert running(app) == {"ablation": job}


def test_a_run_that_is_cut_off_while_its_job_begins_leaves_no_second_job(open_app, monkeypatch):
    begun = []

    class CutOff(jobs.Job):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            begun.append(self)
            if len(begun) == 1:  # the visitor's next press
                context = get_script_run_ctx()
                context.script_requests.request_rerun(RerunData(query_string=context.query_string))

    monkeypatch.setattr(jobs, "Job", CutOff)
    app = open_app(page="ablation", a="The cat sat.", mask="a1", **{"ablation.colour": "effect"})
    assert running(app) == {"ablation": begun[0]} and len(begun) == 1
