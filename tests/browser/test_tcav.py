"""Concepts and subsets of rows, pressed in a browser."""

import pytest
from playwright.sync_api import expect

from bert_tf.explain import concept_test
from tests.app.test_dataset import sample
from tests.browser.page_reading import press_row, repeat_until, wait_for_link
from ui.samples.concepts import OTHERS, sentences


def expect_in_help(page, output):
    """Point at the question mark behind the result's caption: its help has the text ``said``."""
    caption = page.get_by_test_id("stCaptionContainer").filter(has_text="The score is the share of ")
    repeat_until(
        caption.get_by_test_id("stTooltipIcon").hover,
        lambda patience: expect(page.get_by_text(output)).to_be_visible(timeout=patience),
    )


def test_a_concept_is_tested_and_a_layer_chosen(visit, bert):
    link = "/?page=tcav&tcav.file=sentences.txt&tcav.hide=last&tcav.word=table"
    rows = sample("sentences.txt").rows
    actual = concept_test(bert, rows, sentences("questions"), sentences(OTHERS), "word", "table", "last")
    page = visit(f"{link}&tcav.concept=questions&tcav.layer={len(actual.scores) - 1}").page
    output = page.get_by_text(f"After layer {len(actual.scores) - 1} the concept supports table in ")
    output.wait_for()
    assert float(output.inner_text().split(" in ")[1].split("%")[0]) == pytest.approx(
        100 * actual.scores[-1].mean(), abs=2
    )
    page.get_by_role("slider", name="After layer").press("ArrowLeft")
    wait_for_link(page, "tcav.layer", str(len(actual.scores) - 2))
    page.get_by_text(f"After layer {len(actual.scores) - 2} the concept supports table in ").wait_for()
    page.get_by_role("radio", name="Negation").click()
    wait_for_link(page, "tcav.concept", "negation")
    expect(page.get_by_role("textbox", name="Word")).to_have_value("table")
    expect_in_help(page, "sentences with the concept from as many others")


def test_ticked_rows_are_named_as_a_subset(visit):
    page = visit("/?page=dataset&dataset.ask=masks&dataset.hide=last").page
    press_row(page, 1, "Open row 2 in")
    page.get_by_text("Name a subset").click()
    page.get_by_label("Name of the 1 row ticked").fill("mine")
    page.get_by_label("Name of the 1 row ticked").press("Enter")
    page.get_by_role("button", name="Keep as a subset").click()
    wait_for_link(page, "dataset.subsets", "sentences.txt/mine/2")
    expect(page.get_by_role("heading", name="Subsets")).to_be_visible()


def test_rows_under_a_filter_become_a_concept(visit):
    page = visit("/?page=dataset&dataset.ask=masks&dataset.hide=last&dataset.words=of").page
    rows = [row.text_a for row in sample("sentences.txt").rows]
    own = [text for text in rows if "of" in text]
    page.get_by_text("Name a subset").click()
    page.get_by_role("button", name="Test as a concept").click()
    page.get_by_role("heading", name="Concepts (TCAV)").wait_for()
    expect(page.get_by_label("Sentences with the concept")).to_have_value("\n".join(own))
    rest = [text for text in rows if text not in own]
    expect(page.get_by_label("Others to compare with")).to_have_value("\n".join(rest))
    wait_for_link(page, "tcav.file", "sentences.txt")
    expect_in_help(page, f"that separates {min(len(own), len(rest) // 2)} sentences with the concept")
