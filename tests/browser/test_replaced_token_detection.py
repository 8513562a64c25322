"""Replaced-token detection with the shipped model in a real Chromium: it starts at once, with the library's results."""

import re

import pytest
from playwright.sync_api import expect

import bert_tf
from bert_tf.explain import replace_and_detect
from bert_tf.plots.numbers import percent
from tests.browser.conftest import serving
from tests.browser.page_reading import too_wide, wait_for_link
from ui.widgets.formatting import count

expect.set_options(timeout=60_000)  # the machine may be busy
TEXT = "The river runs through the old city to the sea."
GAME = f"/?page=replaced_token_detection&a={TEXT.replace(' ', '+')}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """In the place of the server of the other tests: one with the shipped models alone."""
    home = tmp_path_factory.mktemp("shipped-browser")
    (home / "explorer.toml").write_text("[models]\nwarm = false\n")
    with serving(home) as address:
        yield address


@pytest.fixture(scope="module")
def players():
    return bert_tf.load("bert-base-cased-student"), bert_tf.load("electra-base-cased-embedded")


def expect_game(page, game):
    """See that the page has the game: every token, its score, what stood there, and the two counts."""
    inside = [at for at, source in enumerate(game.sources) if source]
    words = page.locator(".marks .word")
    expect(words).to_have_text([game.tokens[at].removeprefix("##") for at in inside])
    tips = words.evaluate_all("words => words.map((word) => word.dataset.tip)")
    assert tips == [
        f"{game.tokens[at]}: replaced {percent(float(game.scores[at]))}"
        + (f", original: {game.original_tokens[at]}" if game.replaced[at] else "")
        for at in inside
    ]
    expect(page.get_by_text(f"scored {count(game.false_positives, 'original token')} as replaced")).to_be_visible()
    if game.replaced.any():
        expect(page.get_by_text(f"found {game.true_positives} of {int(game.replaced.sum())}")).to_be_visible()


def test_it_plays_without_a_choice_and_by_presses(visit, players):
    page = visit(GAME).page
    expect_game(page, replace_and_detect(*players, TEXT, 0.15))
    expect(page.get_by_text("Generator: BERT Base's student. Discriminator: ELECTRA Base, cased.")).to_be_visible()
    page.get_by_role("radio", name="40%").click()
    wait_for_link(page, "replaced_token_detection.share", "40")
    expect_game(page, replace_and_detect(*players, TEXT, 0.4))
    page.get_by_role("button", name="Draw again").click()
    wait_for_link(page, "replaced_token_detection.draw", "1")
    expect_game(page, replace_and_detect(*players, TEXT, 0.4, seed=1))
    page.locator("button.chip", has_text=re.compile("^river$")).click()
    wait_for_link(page, "mask", "a1")
    expect_game(page, replace_and_detect(*players, TEXT, mask=(2,), seed=1))


def test_it_fits_a_telephone(visit):
    page = visit(GAME, viewport={"width": 390, "height": 844}).page
    page.locator(".marks .word").last.wait_for()
    assert too_wide(page, "game") == []
