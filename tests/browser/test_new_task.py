"""The file of a new task in a real Chromium: its limit, what it holds, and a file that nothing can be learnt from."""

import re

from playwright.sync_api import expect


def choose(page, content):
    """Choose a CSV file for the new task."""
    file = {"name": "films.csv", "mimeType": "text/csv", "buffer": content.encode()}
    with page.expect_response(lambda answer: "upload_file" in answer.url):
        page.locator("input[type=file]").set_input_files(file)


def test_the_label_alone_tells_the_limit_of_a_file(visit):
    page = visit("/?page=fine_tune").page
    expect(page.get_by_text("Examples (csv, tsv, jsonl), at most 500 kB")).to_be_visible()
    expect(page.locator("input[type=file]")).to_be_attached()
    expect(page.get_by_text(re.compile("MB per file")).filter(visible=True)).to_have_count(0)


def test_a_file_with_only_a_header_is_refused_before_training(visit, server_home):
    page = visit("/?page=fine_tune").page
    choose(page, "text,label\n")
    expect(page.get_by_text("films.csv holds no example; it needs a row for each.")).to_be_visible()
    page.get_by_role("button", name="Train", exact=True).click()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.get_by_text("films.csv holds no example; it needs a row for each.")).to_be_visible()
    for name in ("Stop", "Try it", "Delete"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
    assert not list(server_home.glob("own-*"))


def test_a_table_with_semicolons_shows_its_rows_and_labels(visit):
    page = visit("/?page=fine_tune").page
    choose(page, "text;label\n" + "".join(f"good, many times {n};yes\nbad {n};no\n" for n in range(10)))
    expect(page.get_by_text("20 examples: 16 to learn from, 4 held out.")).to_be_visible()
    expect(page.get_by_text("2 labels, with the number of examples: yes 10 · no 10")).to_be_visible()
    table = page.get_by_test_id("stDataFrame")
    for text in ("good, many times", "yes"):
        expect(table.locator("td").filter(has_text=text).first).to_be_attached()
