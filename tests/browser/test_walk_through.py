"""Walk through, in a real Chromium: its steps by keyboard, slider and play, its numbers, on a telephone, still."""

import re

import pytest
from playwright.sync_api import expect

from bert_tf.explain import logit_lens
from bert_tf.explain.models.walk_through import ENCODER_STEPS
from bert_tf.inference.predictions import fill_mask
from bert_tf.plots.numbers import percent
from tests.browser.page_reading import ASKED, settled, share, wait_for_link, wider_than_the_screen

LINK = ASKED.replace("/?", "/?page=walk_through&")


def step(page):
    return page.locator(".walk .stop[aria-current=step]")


def count(page):
    return page.locator(".walk .stop").count()


def moving(page):
    return page.locator(".walk").evaluate("walk => walk.getAnimations({ subtree: true }).length")


def press_every_stop(page, steps):
    """Press the stop of every step, the last one last: each is drawn, with its shapes, and nothing fails."""
    stops, stage = page.locator(".walk .stop"), page.locator(".walk .stage")
    expect(stops).to_have_count(len(steps))
    for index, name in enumerate(steps):
        stops.nth(index).click()
        expect(stops.nth(index)).to_have_attribute("aria-current", "step")
        expect(stage).to_have_class(f"stage {name}")
        expect(stage).not_to_be_empty()
        expect(stage).not_to_have_text(re.compile("NaN|undefined"))
        expect(page.locator(".walk .shapes .shape").first).to_be_visible()
        expect(page.get_by_test_id("stAlertContentError")).to_have_count(0)


def go_deeper(page):
    """Press the link of a step: it leads to the page that it names."""
    link = page.locator(".walk .deeper")
    title = link.inner_text().removesuffix(" →").split(": ")[-1]  # after its group, if the link says it
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def expect_bars(page, words, shares):
    expect(page.locator(".walk .bar .name")).to_have_text(list(words))
    shares_on_page = page.locator(".walk .bar .share").all_inner_texts()
    assert [share(text) for text in shares_on_page] == pytest.approx([float(one) for one in shares], abs=1.1e-3)


@pytest.fixture
def walk(visit):
    def open_walk(link=LINK, **options):
        page = visit(link, **options).page
        expect(step(page)).to_have_count(1)
        return page

    return open_walk


def test_arrow_keys_walk_and_the_place_is_in_the_link(walk):
    page = walk()
    expect(page.locator(".walk .title")).to_have_text("Words become tokens")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(step(page)).to_have_attribute("aria-label", "Step 3: One head")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".walk .title")).to_have_text("Three vectors become one")
    wait_for_link(page, "walk_through.step", "embeddings")
    # The page was drawn again: a key still goes one step.
    page.keyboard.press("ArrowRight")
    expect(step(page)).to_have_attribute("aria-label", "Step 3: One head")
    page.keyboard.press("ArrowLeft")
    page.locator(".walk .token").nth(2).click()
    page.locator(".walk .token").nth(2).press("ArrowRight")
    expect(page.locator(".walk .token[aria-checked=true]")).to_be_focused()
    wait_for_link(page, "walk_through.token", "3")
    page.reload()
    expect(page.locator(".walk .title")).to_have_text("Three vectors become one")
    expect(page.locator(".walk .token[aria-checked=true]")).to_have_text("##un")


def test_the_slider_goes_to_every_step_and_each_is_drawn(walk):
    page = walk()
    slider = page.get_by_role("slider", name="Step", exact=True)
    slider.focus()
    titles = set()
    for index in range(count(page)):
        expect(step(page)).to_have_attribute("aria-label", re.compile(f"^Step {index + 1}: "))
        expect(page.locator(".walk .stage > *").first).to_be_visible()
        assert page.locator(".walk .text").inner_text().count(". ") == 1, page.locator(".walk .text").inner_text()
        titles.add(page.locator(".walk .title").inner_text())
        slider.press("ArrowRight")
    assert len(titles) == count(page)


def test_scrolling_walks_sideways_and_over_the_steps(walk):
    page = walk(LINK + "&walk_through.step=head")
    expect(step(page)).to_have_attribute("aria-label", "Step 3: One head")
    page.locator(".walk .rail").hover()
    page.mouse.wheel(0, 120)
    expect(step(page)).to_have_attribute("aria-label", "Step 4: All heads")
    page.wait_for_timeout(500)
    page.locator(".walk .stage").hover(position={"x": 5, "y": 5})
    page.mouse.wheel(-120, 0)
    expect(step(page)).to_have_attribute("aria-label", "Step 3: One head")
    page.wait_for_timeout(500)
    # Down on the drawing the page scrolls, and the step stays.
    page.mouse.wheel(0, 300)
    page.wait_for_function("() => document.querySelector('.stMain').scrollTop > 0")
    expect(step(page)).to_have_attribute("aria-label", "Step 3: One head")


def test_a_finger_walks_sideways(walk):
    page = walk(LINK + "&walk_through.step=head", viewport={"width": 390, "height": 844})
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    card = page.locator(".walk .text").bounding_box()

    def swipe(from_x, to_x, down=0):
        y = card["y"] + 20
        for kind, x, at in (("touchStart", from_x, y), ("touchMove", to_x, y + down), ("touchEnd", None, None)):
            points = [] if x is None else [{"x": x, "y": at}]
            devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    swipe(300, 150)
    expect(step(page)).to_have_attribute("aria-label", "Step 4: All heads")
    swipe(100, 260)
    expect(step(page)).to_have_attribute("aria-label", "Step 3: One head")
    swipe(300, 270)  # too short
    page.wait_for_timeout(300)
    expect(step(page)).to_have_attribute("aria-label", "Step 3: One head")


def test_play_goes_on_by_itself_until_it_is_stopped(walk):
    page = walk()
    page.clock.install()
    play = page.get_by_role("button", name="Play", exact=True)
    play.click()
    page.clock.run_for(6500)
    expect(step(page)).to_have_attribute("aria-label", re.compile("^Step 2: "))
    page.get_by_role("button", name="Pause", exact=True).click()
    page.clock.run_for(20_000)
    expect(step(page)).to_have_attribute("aria-label", re.compile("^Step 2: "))


def test_it_moves_unless_the_visitor_wants_no_motion(walk):
    page = walk()
    page.get_by_role("button", name="Next step").click()
    assert moving(page) > 0
    still = walk(reduced_motion="reduce")
    for _ in range(3):
        still.get_by_role("button", name="Next step").click()
        assert moving(still) == 0
    still.get_by_role("button", name="Play", exact=True).click()
    assert moving(still) == 0


def test_a_head_of_another_layer_is_chosen_at_its_step(walk):
    page = walk(LINK + "&walk_through.step=head")
    page.locator(".walk select.layer").select_option(label="2")
    wait_for_link(page, "layer", "2")
    expect(page.locator(".walk select.layer")).to_have_value("1")
    page.locator(".walk .stop").nth(3).click()
    page.locator(".walk .head-card").nth(2).click()
    wait_for_link(page, "head", "3")


def test_a_value_is_told_at_the_pointer_and_the_link_goes_deeper(walk):
    page = walk(LINK + "&walk_through.step=embeddings")
    page.locator(".walk .equation .strip").first.hover()
    expect(page.locator(".walk .readout")).to_have_text(re.compile(r"unit [\d,]+ of 16 is [−\d.]+"))
    formula = page.locator(".walk .formula p").first
    expect(formula).to_be_hidden()
    page.get_by_text("Formula", exact=True).click()
    expect(formula).to_be_visible()
    page.locator(".walk .deeper").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Input embeddings")


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_every_step_fits_a_telephone(walk, colours):
    page = walk(viewport={"width": 390, "height": 844}, color_scheme=colours, reduced_motion="reduce")
    settled(page, colours)
    for index in range(count(page)):
        page.locator(".walk .stop").nth(index).click()
        assert moving(page) == 0
        assert wider_than_the_screen(page) <= 1, index
        cut = page.locator(".walk").evaluate("""walk => {
          const edge = walk.getBoundingClientRect();
          return [...walk.querySelectorAll(".stage *")].filter((one) => {
            const box = one.getBoundingClientRect();
            return box.width && (box.left < edge.left - 1 || box.right > edge.right + 1);
          }).map((one) => one.className);
        }""")
        assert cut == [], index


def test_the_climbing_token_stays_in_the_picture_on_a_telephone(walk):
    page = walk(viewport={"width": 390, "height": 844})
    page.locator(".walk .stop").nth(6).click()
    expect(page.locator(".walk .floor .name").last).to_have_text("emb.")
    box = page.locator(".walk .climber").bounding_box()
    assert 0 <= box["x"] and box["x"] + box["width"] <= 390


def test_a_long_text_is_walked_through_a_part_at_a_time(walk):
    words = "+".join(["The+bunny+ate+a+carrot+."] * 60)
    page = walk(f"/?page=walk_through&a={words}&walk_through.token=200&walk_through.step=head")
    expect(page.locator(".walk .hint")).to_have_text(re.compile(r"^Tokens \d+ to \d+ of \d+ are drawn"))
    expect(page.locator(".walk .token")).to_have_count(24)
    expect(page.locator(".walk .board .row:not(.top)")).to_have_count(24)
    page.locator(".walk .token").last.click()
    # The drawn part goes along with the token.
    chosen = page.locator(".walk .token[aria-checked=true]")
    expect(page.locator(".walk .token").last).not_to_have_attribute("aria-checked", "true")
    expect(chosen).to_have_count(1)


def test_few_parts_move_at_the_same_time(walk):
    page = walk()
    for index in range(count(page)):
        # Each moving element is a layer that the browser puts together in every frame.
        assert moving(page) <= 40, step(page).get_attribute("aria-label")
        page.keyboard.press("ArrowRight")


def test_the_step_is_sent_when_nothing_moves_any_more(walk):
    # The page runs again then, which would make the motion stumble.
    page = walk()
    page.keyboard.press("ArrowRight")
    moving_then = page.locator(".walk").evaluate("""walk => new Promise((resolve) => {
      const long = walk.querySelector('.stage').animate([{ opacity: 1 }, { opacity: .9 }], { duration: 4000 });
      const send = walk.walk.send;
      walk.walk.send = (...sent) => {
        resolve([...sent, long.playState]);
        send(...sent);
      };
    })""")
    assert moving_then == ["pause", {"step": "embeddings", "token": moving_then[1]["token"]}, "finished"]
    wait_for_link(page, "walk_through.step", "embeddings")


def test_every_stop_is_drawn(walk):
    press_every_stop(walk(), (*ENCODER_STEPS, "nsp", "mlm"))


def test_the_words_of_the_floors_are_those_of_the_logit_lens(walk, bert, trace):
    page = walk(LINK + "&walk_through.step=layers", reduced_motion="reduce")
    lens = logit_lens(bert, trace)
    floors = page.locator(".walk .floor")
    # The last layer is the highest floor.
    expect(floors.locator(".word")).to_have_text([best[0] for best in lens.predicted_tokens[0]][::-1])
    expect(floors.locator(".share")).to_have_text([percent(best[0]) for best in lens.probabilities[0]][::-1])


def test_the_last_step_has_the_words_of_the_mask(walk, bert, trace):
    page = walk(LINK + "&walk_through.step=mlm", reduced_motion="reduce")
    (answer,) = fill_mask(trace, bert.tokenizer, 5)
    expect_bars(page, [one.token for one in answer.predictions], [one.probability for one in answer.predictions])


def test_the_pair_has_the_trace_s_probabilities(walk, trace):
    page = walk(LINK + "&walk_through.step=nsp", reduced_motion="reduce")
    expect_bars(page, ["B follows A", "B does not follow A"], [trace.nsp.is_next, 1 - trace.nsp.is_next])


def test_the_weights_of_a_head_are_the_trace_s(walk, trace):
    page = walk(LINK + "&walk_through.step=head&layer=2&head=3&walk_through.token=4", reduced_motion="reduce")
    rows = page.locator(".walk .board .row:not(.top)")
    expect(rows.locator(".name")).to_have_text(list(trace.tokens))
    weights = [share(text) for text in rows.locator(".weight b").all_inner_texts()]
    assert weights == pytest.approx(trace.attentions[1, 2, 4].tolist(), abs=1.1e-3)


@pytest.mark.parametrize("name", [*ENCODER_STEPS, "nsp", "mlm"])
def test_the_link_of_every_step_leads_to_the_page_that_it_names(walk, name):
    page = walk(f"{LINK}&walk_through.step={name}", reduced_motion="reduce")
    address = page.locator(".walk .deeper").evaluate("(link) => link.href")
    go_deeper(page)
    title = page.get_by_role("heading", level=1).inner_text()
    # As in a new tab.
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def test_the_names_of_all_steps_are_whole_beside_the_sidebar(visit):
    page = visit(LINK, viewport={"width": 1024, "height": 768}).page
    names = page.locator(".walk .stop span")
    names.last.wait_for()
    cut = names.evaluate_all(
        "(all) => all.filter((one) => one.scrollWidth > one.clientWidth || getComputedStyle(one).display === 'none'"
        " || one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right)"
        ".map((one) => one.innerText)"
    )
    assert cut == []
