"""A model fetched in a real Chromium while its visitor does other things."""

import re

import pytest
from playwright.sync_api import expect

from bert_tf.checkpoints.registry import released
from tests.app.conftest import LIMITS, save_tiny
from tests.browser.conftest import serving
from tests.browser.page_reading import PAIR, chip, repeat_until
from tests.checkpoints.conftest import Hub

NAME = "bert-large-uncased"


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A hub that holds the second half of a small model under the name of a released one back."""
    folder, hub = tmp_path_factory.mktemp("hub"), Hub()
    save_tiny(folder, NAME, "bert-small-uncased-embedded", num_hidden_layers=2, num_attention_heads=2)
    hub.add_model(released(NAME).repo, folder / NAME)
    hub.gate.clear()
    yield hub
    hub.gate.set()
    hub.close()


@pytest.fixture(scope="module")
def server(hub, tmp_path_factory):
    """In the place of the server of the other tests: one that may fetch that model."""
    home = tmp_path_factory.mktemp("fetching")
    for name in ("tiny-cased", "tiny-uncased"):
        save_tiny(home, name, "bert-small-uncased-embedded", num_hidden_layers=2, num_attention_heads=2)
    offered = f'offered = ["tiny-cased", "tiny-uncased", "{NAME}"]'
    (home / "explorer.toml").write_text(re.sub("offered = .*", offered, LIMITS))
    with serving(home, HF_ENDPOINT=hub.endpoint, HF_HUB_DOWNLOAD_TIMEOUT="600") as address:
        yield address


def test_a_chip_pressed_meanwhile_does_not_stop_a_download(visit, hub):
    page = visit(PAIR + "&page=side_by_side").page
    page.get_by_role("button", name=f"Get {NAME}").click()
    # Not Streamlit's own button of that name, in the corner while a page runs.
    expect(page.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True)).to_be_visible()
    repeat_until(
        lambda: chip(page, "bunny").click(),
        lambda wait: expect(page).to_have_url(re.compile(r"[?&]mask=a1(&|$)"), timeout=wait),
    )
    expect(page.locator(".card .title").first).to_have_text("bunny")
    expect(page.get_by_text(f"{NAME}: ")).to_be_visible()
    other = visit("/?page=models").page
    expect(other.get_by_text(f"{NAME}: ")).to_be_visible()
    hub.gate.set()
    # It appears by itself on both pages, and nothing is offered any more.
    expect(other.get_by_role("heading", name=NAME)).to_be_visible()
    for one in (page, other):
        expect(one.get_by_test_id("stMain").get_by_role("button", name="Stop", exact=True)).to_have_count(0)
        expect(one.get_by_role("button", name=f"Get {NAME}")).to_have_count(0)
    page.get_by_role("combobox", name=re.compile("The other")).click()
    expect(page.get_by_role("option", name=NAME)).to_be_visible()
    # It was begun once; on a machine so busy that the hub seemed too slow, it was resumed where it had ended.
    parts = [part for method, name, part in hub.requests if (method, name) == ("GET", "model.safetensors")]
    assert parts[0] is None and all(parts[1:])
