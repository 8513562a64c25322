"""Tasks and Before and after, in a real Chromium, on random fine-tuned models."""

import re

import pytest
from playwright.sync_api import expect

from tests.app.made_tasks import save_tasks
from tests.browser.conftest import serving

expect.set_options(timeout=60_000)  # the machine may be busy


@pytest.fixture(scope="module")
def task_home(tmp_path_factory):
    home = tmp_path_factory.mktemp("task-browser")
    save_tasks(home)
    return home


@pytest.fixture(scope="module")
def server(task_home):
    """In the place of the server of the other tests: one with fine-tuned models."""
    with serving(task_home) as address:
        yield address


def test_a_model_is_picked_and_marks_the_visitors_own_text(visit, task_home):
    import bert_tf

    text = "the cat ran in London"
    page = visit("/?page=tasks&tasks.model=tags").page
    page.get_by_label("Text").fill(text)
    page.get_by_label("Text").press("Tab")
    (said,) = bert_tf.load(task_home / "tags").task.predict([text])
    found = [entity["text"] for entity in said["entities"]]
    expect(page.locator(".spans .text")).to_contain_text("London")
    expect(page.locator(".spans .span")).to_have_count(len(found))
    assert page.locator(".spans .text").inner_text().replace("\n", "").startswith("the")
    page.locator(".spans .span").first.focus()
    expect(page.locator(".spans .hint")).to_contain_text(found[0])
    page.keyboard.press("End")
    expect(page.locator(".spans .hint")).to_contain_text(found[-1])

    page.get_by_role("radio", name="classes").click()
    expect(page.get_by_role("heading", name="Classes")).to_be_visible()
    expect(page.locator(".marks .word")).to_have_count(5)
    page.get_by_role("button", name="Open its attention").click()
    expect(page.get_by_role("heading", level=1, name="Where every token looks")).to_be_visible()
    expect(page).to_have_url(re.compile("model=classes"))


def test_an_answer_stands_in_the_passage(visit):
    link = "/?page=tasks&tasks.model=answers&a=where+was+it&b=the+dog+ran.+it+was+in+London."
    page = visit(link).page
    expect(page.locator(".spans .span")).to_have_count(1)
    expect(page.locator(".js-plotly-plot")).to_be_visible()


def test_the_heads_that_moved_are_listed(visit):
    page = visit("/?page=finetuned&finetuned.model=classes&a=the+cat+sat").page
    expect(page.get_by_role("heading", name="The heads that moved most")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    page.get_by_role("button", name="Open before").click()
    expect(page).to_have_url(re.compile("model=plain"))
