"""Lessons in a real Chromium: a lesson is walked, done on another page, and its answer checked."""

import re

from playwright.sync_api import expect

from tests.browser.page_reading import open_page
from ui.samples.guided_lessons import LESSONS


def test_a_lesson_is_done_and_its_answer_checked(visit):
    page = visit("/?page=guided_lessons&guided_lessons.lesson=heads&guided_lessons.step=4").page
    expect(page.get_by_role("heading", name="Heads have habits")).to_be_visible()
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_role("heading", name="Now you")).to_be_visible()
    page.get_by_role("button", name=re.compile("Open Attention: All heads")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("All heads")
    page.locator(".lines .left .token").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    hint = page.locator(".lines .hint[aria-live=polite]")
    expect(hint).to_have_text(re.compile(r"looks most at “.+?”"))
    seen = re.search("at “(.+?)”", hint.inner_text()).group(1)
    open_page(page, "Lessons")
    answer = page.get_by_label("Your answer")
    answer.fill(seen)
    answer.press("Enter")
    expect(page.get_by_text(re.compile("^Right: "))).to_be_visible()
    answer.fill("nothing")
    answer.press("Enter")
    expect(page.get_by_text("is not what this model says")).to_be_visible()


def test_a_teacher_s_link_starts_a_class_at_its_step(visit):
    page = visit("/?page=guided_lessons&guided_lessons.lesson=sizes").page
    page.get_by_text("For teachers", exact=True).click()
    link = page.locator("[data-testid=stCode] code").nth(2)
    expect(link).to_contain_text("guided_lessons.step=3")
    pupil = visit(link.inner_text().strip().removeprefix(page.url.split("/?")[0])).page
    expect(pupil.get_by_role("heading", name=LESSONS[3].steps[2].title)).to_be_visible()
