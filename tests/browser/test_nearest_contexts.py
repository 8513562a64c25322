"""Places of a file by one head, and their parts of speech by the tagger that ships, in a real Chromium."""

import csv
import io

import pytest
from playwright.sync_api import expect

import bert_tf
from bert_tf.explain import count_labels, head_outputs, matched_labels, nearest_contexts, read_rows
from tests.app.conftest import LIMITS, save_tiny
from tests.browser.conftest import serving
from tests.browser.page_reading import (
    PAIR,
    TEXTS,
    repeat_until,
    saved,
    wait_for_link,
    wider_than_the_screen,
)
from ui.shell.limits import ROOT

TAGGER = "parts-of-speech-base-cased"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    actual = tmp_path_factory.mktemp("places-browser")
    save_tiny(actual, "tiny-cased", "bert-base-cased-embedded", num_hidden_layers=3, num_attention_heads=4)
    (actual / "explorer.toml").write_text(LIMITS.replace('"tiny-uncased"', f'"{TAGGER}"'))
    return actual


@pytest.fixture(scope="module")
def server(home):
    """In the place of the server of the other tests: one that offers the tagger."""
    with serving(home) as address:
        yield address


def test_places_by_one_head_and_their_parts_of_speech(visit, home):
    page = visit(f"{PAIR}&page=nearest_words&nearest_words.at=2&nearest_words.vector=3&nearest_words.among=text").page
    expect(page.get_by_text("of the vectors after layer 2")).to_be_visible()
    head = page.get_by_role("option", name="Head 3")
    # A page that still moves closes the list.
    compared = page.get_by_role("combobox", name="Heads of layer 2 that are compared")
    repeat_until(compared.click, lambda patience: expect(head).to_be_visible(timeout=patience))
    head.click()
    page.keyboard.press("Escape")
    wait_for_link(page, "nearest_words.head", "3")
    expect(page.get_by_text("that head 3 of layer 2 adds there")).to_be_visible()
    bert = bert_tf.load(home / "tiny-cased")
    rows = read_rows((ROOT / "assets/samples/sentences.txt").read_bytes()).rows
    vectors = head_outputs(bert, bert.trace(*TEXTS).hidden_states[1], 1, 2)
    (places,) = nearest_contexts(bert, vectors[[2]], 1, rows, 20, True, head=2).nearest
    table = list(csv.DictReader(io.StringIO(saved(page, result=1))))
    assert [float(row["similarity"]) for row in table] == pytest.approx([one.similarity for one in places], abs=1e-4)
    page.keyboard.press("Escape")
    page.get_by_text("Parts of speech", exact=True).click()
    wait_for_link(page, "nearest_words.tags", "1")
    tagger = bert_tf.load(TAGGER)
    counts = count_labels(matched_labels(tagger, places))
    output = ", ".join(f"{tag} {number}" for tag, number in counts.items())
    expect(page.get_by_text(f"Parts of speech: {output}")).to_be_visible()
    assert len(counts) > 1 and sum(counts.values()) == len(places)
    expect(page.get_by_role("heading", name="What head 3 of layer 2 attends to there")).to_be_visible()
    table = list(csv.DictReader(io.StringIO(saved(page, result=2))))
    there = count_labels(matched_labels(tagger, [one.most_attended for one in places]))
    messages = {row["value"]: int(row["looked_at"]) for row in table if row["counted"] == "parts_of_speech"}
    assert {label: number for label, number in messages.items() if number} == there
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 390, "height": 844})
    assert wider_than_the_screen(page) <= 1
