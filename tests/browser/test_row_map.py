"""The map of a file's rows, in a real Chromium: its points, a press on one, its numbers for the keyboard."""

import pytest
from playwright.sync_api import expect

from bert_tf.explain import nearest_rows, project_to_plane, read_rows, row_vectors, score_rows
from tests.browser.page_reading import (
    FIGURE,
    NUMBERS,
    numbers,
    parameters,
    repeat_until,
    wait_for_link,
    wider_than_the_screen,
)
from ui.shell.limits import ROOT


def test_a_press_on_a_point_opens_its_row_and_lists_the_nearest(visit, bert):
    rows = read_rows((ROOT / "assets/samples/pairs.jsonl").read_bytes(), "jsonl").rows
    vectors = row_vectors(bert, rows).vectors[3]
    wanted, _ = project_to_plane(vectors)
    page = visit("/?page=dataset&dataset.file=pairs.jsonl&dataset.ask=next&dataset.hide=given").page
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    page.get_by_role("radio", name="Map").click()
    wait_for_link(page, "dataset.look", "map")
    (drawn,) = numbers(page)
    assert len(drawn["x"]) == len(rows)
    assert drawn["x"] == pytest.approx(wanted[:, 0].tolist(), abs=1e-3)
    scores = [one.is_next for one in score_rows(bert, rows, ("next",), "given")]
    colours = page.evaluate(f"() => Array.from(document.querySelector('{FIGURE}').data[0].marker.color)")
    assert colours == pytest.approx(scores, abs=1e-4)
    # The point that lies farthest from all others is under no other one.
    apart = ((wanted[:, None] - wanted[None]) ** 2).sum(axis=-1)
    at = int((apart + (apart == 0) * apart.max()).min(axis=1).argmax())
    point, title = page.locator(f"{FIGURE} .points path").nth(at), f"Nearest to row {rows[at].number}"

    def press():
        point.scroll_into_view_if_needed()
        box = point.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    repeat_until(
        press, lambda patience: expect(page.get_by_role("heading", name=title)).to_be_visible(timeout=patience)
    )
    wait_for_link(page, "dataset.row", str(rows[at].number))
    rings = [place for place, one in enumerate(numbers(page)) if len(one["x"]) == 1]
    near = nearest_rows(vectors, at, 8)
    assert [numbers(page)[place]["x"][0] for place in rings] == pytest.approx(
        [wanted[at, 0], *(wanted[index, 0] for index, _ in near)], abs=1e-3
    )
    page.get_by_role("button", name="Open here").click()
    expect(page.get_by_role("heading", level=1, name="Predict")).to_be_visible()
    wait_for_link(page, "a", rows[at].text_a)
    assert parameters(page)["b"] == rows[at].text_b


def test_the_map_is_no_wider_than_a_telephone_and_tsne_draws_every_row(visit):
    link = "/?page=dataset&dataset.look=map&dataset.hide=last&dataset.ask=masks&dataset.row=2"
    page = visit(link, viewport={"width": 390, "height": 844}).page
    page.locator(FIGURE).first.wait_for()
    assert wider_than_the_screen(page) <= 1
    page.get_by_role("radio", name="t-SNE").click()
    wait_for_link(page, "dataset.way", "tsne")
    expect(page.get_by_text("t-SNE keeps rows near")).to_be_visible()
    rows = read_rows((ROOT / "assets/samples/sentences.txt").read_bytes()).rows
    page.wait_for_function(
        f"(rows) => ({NUMBERS})(['{FIGURE}', 0]).reduce((sum, one) => sum + one.x.length, 0) === rows + 9",
        arg=len(rows),
    )
