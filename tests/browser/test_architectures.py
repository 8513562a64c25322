"""Replaced-token detection, Directionality, and the architectures, in a real Chromium, on small random models."""

import re
import shutil

import pytest
from playwright.sync_api import expect

import bert_tf
from bert_tf import checkpoints
from bert_tf.explain import predict_span, replace_and_detect
from bert_tf.explain.models.walk_through import steps_of
from bert_tf.plots.numbers import percent
from tests.app.family_models import GOLDEN_FOLDERS, TEXTS
from tests.app.test_directionality import NAMES
from tests.browser.conftest import serving
from tests.browser.page_reading import (
    open_page,
    too_wide,
    wait_for_link,
)
from tests.browser.test_walk_through import expect_bars, go_deeper, press_every_stop
from tests.layers.test_causal import APART, LEFT, make_reader
from ui.widgets.formatting import count

SENTENCE = "The cat sat on the mat in Paris."
WORDS = "w1 w2 w3 w4 w5 w6 w7 w8"
GAME = (
    f"/?page=replaced_token_detection&model=electra-discriminator&a={WORDS.replace(' ', '+')}"
    "&replaced_token_detection.share=40"
)
ONE_WAY = f"/?page=directionality&a={SENTENCE.replace(' ', '+')}"


@pytest.fixture(scope="module")
def home(tmp_path_factory, tiny_folder):
    home = tmp_path_factory.mktemp("family-browser")
    for name in TEXTS:
        shutil.copytree(GOLDEN_FOLDERS / name, home / name)
    for name, kind in (("left_to_right", LEFT), ("two_one_way", APART)):
        reader = make_reader(kind)
        checkpoints.save(home / NAMES[name], reader.config, reader.tokenizer, reader.model)
    shutil.copytree(tiny_folder, home / NAMES["bidirectional"])
    (home / "explorer.toml").write_text(f'[models]\ndefault = "{NAMES["bidirectional"]}"\nwarm = false\n')
    return home


@pytest.fixture(scope="module")
def server(home):
    """In the place of the server of the other tests: one with the whole family."""
    with serving(home) as address:
        yield address


def test_the_game_is_the_library_s_and_is_drawn_again(visit, home):
    page = visit(GAME).page
    judge, writer = (bert_tf.load(home / f"electra-{name}") for name in ("discriminator", "generator"))
    for draw in (0, 1):
        game = replace_and_detect(writer, judge, WORDS, 0.4, (), draw)
        tips = [f"{token}: replaced {percent(float(score))}" for token, score in zip(game.tokens, game.scores)][1:-1]
        expect(page.locator(".marks .word")).to_have_text([token for token in game.tokens[1:-1]])
        tips_of_words = page.locator(".marks .word").evaluate_all("words => words.map((word) => word.dataset.tip)")
        assert [tip.partition(", original")[0] for tip in tips_of_words] == tips
        replaced = game.replaced[1:-1].tolist()
        assert [", original: " in tip for tip in tips_of_words] == replaced
        expect(page.get_by_text(f"scored {count(game.false_positives, 'original token')} as replaced")).to_be_visible()
        page.get_by_role("button", name="Draw again").click()
        wait_for_link(page, "replaced_token_detection.draw", str(draw + 1))


def test_a_pressed_word_is_written_anew(visit):
    page = visit(GAME).page
    page.locator("button.chip", has_text=re.compile("^w3$")).click()
    wait_for_link(page, "mask", "a2")
    expect(page.get_by_text("predicted 1 token")).to_be_visible()
    page.locator(".marks .word").nth(2).focus()
    expect(page.locator(".marks .hint")).to_contain_text(": replaced ")


def test_the_readers_expectations_stand_side_by_side(visit, home):
    page = visit(ONE_WAY).page
    expect(page.get_by_text("Press a word above to hide it")).to_be_visible()
    page.locator("button.chip", has_text=re.compile("^mat$")).click()
    wait_for_link(page, "mask", "a5")
    start = SENTENCE.index("mat")
    readings = [
        predict_span(bert_tf.load(home / NAMES[way]), SENTENCE, start, start + 3, 5)
        for way in ("left_to_right", "two_one_way", "bidirectional")
    ]
    actual = [one for reading in readings for one in reading.answer.predictions]
    expect(page.locator(".card .word")).to_have_text([one.token for one in actual])
    expect(page.locator(".card .share")).to_have_text([percent(one.probability) for one in actual])
    expect(page.locator(".spans").first).to_contain_text("____")
    expect(page.get_by_text("How likely “mat” is to each")).to_be_visible()


@pytest.mark.parametrize("name", ["roberta", "albert"])
def test_a_member_opens_on_the_pages(visit, home, name):
    text = TEXTS[name].replace(" ", "+")
    page = visit(f"/?model={name}&a={text}&mask=a1").page
    bert = bert_tf.load(home / name)
    trace = bert.trace(TEXTS[name], mask=[TEXTS[name].split()[1]])
    answers = bert.fill_mask(trace, 5)
    expect(page.locator(".card .share")).to_have_text(
        [percent(one.probability) for answer in answers for one in answer.predictions]
    )
    open_page(page, "All heads")
    page.locator(".board canvas").wait_for()
    expect(page.locator(".lines .left .token")).to_have_count(trace.length)


WALKED = {**TEXTS, NAMES["left_to_right"]: SENTENCE, NAMES["two_one_way"]: SENTENCE}


@pytest.mark.parametrize("name", WALKED)
def test_every_member_is_walked_through_to_its_answer(visit, home, name):
    text = WALKED[name]
    mask = [] if name == "electra-discriminator" else [text.split()[1]]
    link = f"/?page=walk_through&model={name}&a={text}".replace(" ", "+") + "&mask=a1" * bool(mask)
    page = visit(link, reduced_motion="reduce").page
    bert = bert_tf.load(home / name)
    press_every_stop(page, steps_of(bert))
    trace = bert.trace(text, mask=mask)
    if mask:
        answer = bert.fill_mask(trace, 5)[0]  # a word may have several masks
        expect_bars(page, [one.token for one in answer.predictions], [one.probability for one in answer.predictions])
    else:
        expect_bars(page, trace.tokens, trace.replaced)
    go_deeper(page)


def test_the_order_of_two_texts_is_the_library_s(visit, home):
    text = TEXTS["albert"]
    link = f"/?page=walk_through&model=albert&a={text}&b={text}&walk_through.step=sop".replace(" ", "+")
    page = visit(link, reduced_motion="reduce").page
    in_order = bert_tf.load(home / "albert").trace(text, text).sop.in_order
    expect_bars(page, ["in order", "swapped"], [in_order, 1 - in_order])


@pytest.mark.parametrize(
    "way, head, after", [("left_to_right", 1, True), ("two_one_way", 1, True), ("two_one_way", 4, False)]
)
def test_the_tokens_of_the_other_side_are_not_read(visit, home, way, head, after):
    token = 3
    link = f"/?page=walk_through&model={NAMES[way]}&a={SENTENCE}&head={head}&walk_through.step=head".replace(" ", "+")
    page = visit(f"{link}&walk_through.token={token}", reduced_motion="reduce").page
    tokens = bert_tf.load(home / NAMES[way]).trace(SENTENCE).tokens
    unread = page.locator(".walk .row.unread")
    expect(unread.locator(".name")).to_have_text(list(tokens[token + 1 :] if after else tokens[:token]))
    expect(unread.locator(".weight b")).to_have_text(["not read"] * unread.count())


def test_nothing_is_wider_than_a_telephone(visit):
    for link, sign in ((GAME, ".marks .word"), (ONE_WAY + "&mask=a5", ".bars .bar")):
        page = visit(link, viewport={"width": 390, "height": 844}).page
        page.locator(sign).last.wait_for()
        assert too_wide(page, link) == []
