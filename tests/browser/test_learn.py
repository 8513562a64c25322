"""Architecture and Guide, in a real Chromium."""

import re

from playwright.sync_api import expect


def test_a_box_opens_and_the_layers_are_stepped_through(visit):
    page = visit("/?page=architecture&a=The+bunny+ate+the+carrot.").page
    boxes = page.locator(".tower .box")
    expect(boxes).to_have_count(8)
    expect(page.locator(".tower .box[aria-pressed=true] .title")).to_have_text("Self-attention")
    # The tiny model: four projections of 16 x 16 with their biases in each of three layers.
    expect(page.locator(".tower .box[data-name=attention] .size")).to_have_text("3.3 k")

    page.locator(".tower .box[data-name=feed_forward]").click()
    expect(page.get_by_role("heading", name="Feed-forward, layer 1")).to_be_visible()
    page.get_by_role("button", name="Next layer").click()
    expect(page.get_by_role("heading", name="Feed-forward, layer 2")).to_be_visible()
    expect(page.locator(".js-plotly-plot")).to_have_count(2)
    expect(page.get_by_text("all units")).to_be_visible()

    expect(page).to_have_url(re.compile("architecture.layer=2"))
    page.reload()
    expect(page.get_by_role("heading", name="Feed-forward, layer 2")).to_be_visible()


def test_the_guide_takes_the_text_along(visit):
    page = visit("/?page=guide&a=The+bunny+ate+the+carrot.").page
    page.get_by_role("button", name=re.compile("Predict")).first.click()
    expect(page.get_by_label("Text A")).to_have_value("The bunny ate the carrot.")
