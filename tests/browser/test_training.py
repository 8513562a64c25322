"""Trainings in a real Chromium: the shipped run's curves, and its time-lapse from first prediction to last."""

import os
import re

from playwright.sync_api import expect

from tests.browser.page_reading import open_page, repeat_until, wait_for_link

BORN = "/?page=time_lapse&a=He+was+born+in+London.&mask=a2"


def test_the_shipped_run_is_opened(visit):
    page = visit("/?page=training_curves").page
    expect(page.get_by_text(re.compile(r"Step [\d,]+ of [\d,]+"))).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(3)
    page.get_by_role("button", name="Time-lapse").click()
    expect(page.get_by_role("heading", name="Time-lapse")).to_be_visible()


def test_the_time_lapse_plays_and_its_link_opens_the_same(visit):
    page = visit(BORN).page
    expect(page.locator(".card .title")).to_have_text(["born"])
    expect(page.get_by_text(re.compile(r"^born is .*first at step [\d,]+\.$"))).to_be_visible()
    last = page.locator(".card .word").all_text_contents()
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.locator(".card .word")).not_to_have_text(last)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator(".card .word")).to_have_text(last)

    slider = page.get_by_role("slider", name="Step of the training")
    slider.focus()
    slider.press("ArrowLeft")
    expect(page.locator(".card .word")).not_to_have_text(last)
    before = page.locator(".card .word").all_text_contents()
    expect(page).to_have_url(re.compile("time_lapse.at="))
    page.get_by_label("Text B").focus()
    page.get_by_label("Text B").fill("It is in England.")
    page.get_by_label("Text B").press("Tab")
    wait_for_link(page, "b", "It is in England.")
    assert "time_lapse.at" in page.url
    expect(page.locator(".gauge .left")).to_have_text(re.compile(r"IsNext"))
    again = visit(re.sub(r"^[^?]*", "/", page.url).replace("b=It+is+in+England.", "b=")).page
    expect(again.locator(".card .word")).to_have_text(before)


def test_on_a_phone_nothing_is_wider_than_the_page(visit):
    page = visit(BORN, viewport={"width": 390, "height": 844}).page
    page.locator(".card .word").first.wait_for()
    page.wait_for_function("() => document.documentElement.scrollWidth <= 390")


def test_two_tabs_that_were_opened_before_the_cookie_are_one_visitor(visit):
    first = visit("/?page=guide").page
    second = first.context.new_page()
    second.goto(first.url)
    cookies, start = [], "Train a small model on your own text"
    for page in (first, second):
        open_page(page, "Training curves")
        expect(page.get_by_text(start)).to_be_visible()
        page.wait_for_function("() => document.cookie.includes('bert_explorer_visitor')")
        page.wait_for_timeout(1000)  # the second tab may take another one for a moment
        cookies += [one["value"] for one in first.context.cookies() if one["name"] == "bert_explorer_visitor"]
    assert len(cookies) == 2 and len(set(cookies)) == 1
    expect(second.get_by_text(start)).to_be_visible()


def test_a_run_is_deleted_by_a_second_press(visit, server_home):
    folder = server_home / "runs" / "own-260101-1200-abcd"
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").touch()
    os.utime(folder / "metrics.jsonl", (1, 1))  # an earlier server left it
    page = visit(f"/?page=training_curves&training_curves.run={folder.name}").page
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("for everybody who opens this explorer.")).to_be_visible()
    assert folder.exists()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("button", name="Delete", exact=True)).to_have_count(0)
    expect(page.get_by_text(folder.name)).to_have_count(0)
    assert not folder.exists()


def test_a_short_text_is_refused_with_a_sentence(visit):
    page = visit("/?page=training_curves").page
    page.get_by_text("Train a small model on your own text").click()
    page.get_by_label("Text", exact=True).fill("Too few words.")
    refused = page.get_by_text(re.compile("3 words; give at least 300"))
    repeat_until(
        page.get_by_role("button", name="Train", exact=True).click,
        lambda patience: expect(refused).to_be_visible(timeout=patience),
    )
