"""No text of a model card, a label or a file makes a visitor's browser ask another server."""

import re
from types import SimpleNamespace

import pytest

from pages.models.models import _shown
from tests.app.page_reading import page_text
from ui.session.task_models import spans_to_draw
from ui.widgets.formatting import escape_markdown
from ui.widgets.highlights import token_highlights

IMAGE = re.compile(r"!\[")


@pytest.mark.parametrize(
    "card",
    ["![p](http://there/p.png)", "!![p](http://there/p.png)", "a ![p][one]\n\n[one]: http://there/p.png", "![p]"],
)
def test_a_card_has_no_image_of_another_server(card):
    cleaned = _shown(card)
    assert not IMAGE.search(cleaned) and "[p]" in cleaned


def test_a_link_to_a_file_beside_a_card_is_plain_text():
    card = "[a](../../NOTICE) [b](./LICENSE) [c](https://there/p) [d](#part) [e](mailto:a@b.c) [f](/NOTICE)"
    assert _shown(card) == "a b [c](https://there/p) [d](#part) [e](mailto:a@b.c) f"


def test_the_page_of_models_shows_a_card_without_its_images(open_app, explorer_home):
    card = explorer_home / "tiny-cased" / "README.md"
    before = card.read_text()
    card.write_text("# Mine!\n\n![tracker](http://there.example/pixel.png) and text")
    try:
        app = open_app(page="models")
        assert not app.exception
        text = page_text(app)
        assert "tracker" in text and "Mine!" in text and not IMAGE.search(text)
    finally:
        card.write_text(before)


def test_a_licence_is_shown_as_it_is_written(open_app, explorer_home):
    card = explorer_home / "tiny-cased" / "README.md"
    before = card.read_text()
    card.write_text("---\nlicense: ![x](http://there.example/p.png)\n---\n")
    try:
        text = page_text(open_app(page="models"))
        assert "there.example" in text and not IMAGE.search(text)
    finally:
        card.write_text(before)


# mdast-util-gfm-autolink-literal/lib/index.js, which Streamlit's Markdown uses: what it makes a link, after the escapes
# have been undone.
URL = re.compile(r"(https?://|www(?=\.))([-.\w]+)([^ \t\r\n]*)", re.IGNORECASE)
MAIL = re.compile(r"([-.\w+]+)@([-\w]+(?:\.[-\w]+)+)")


@pytest.mark.parametrize(
    "label", ["http://there.example/a", "HTTPS://there.example", "see www.there.example", "me@there.example"]
)
def test_a_bare_address_in_a_label_is_no_link(label):
    unescaped = re.sub(r"\\(.)", r"\1", escape_markdown(label))
    assert (URL.search(label) or MAIL.search(label)) and not URL.search(unescaped) and not MAIL.search(unescaped)
    assert unescaped.replace("\u2060", "") == label


def test_other_texts_are_escaped_as_before():
    assert escape_markdown("a*b: www x") == r"a\*b\: www x"


def test_what_is_written_from_right_to_left_is_kept_apart():
    assert escape_markdown("שלום!") == "\u2068שלום\\!\u2069" and escape_markdown("é!") == "é\\!"
    text = "שלום a"
    trace = SimpleNamespace(text_a=text, text_b=None, sources=["a", "a"], offsets=[(0, 4), (5, 6)], masks=())
    parts = token_highlights(trace, [0.5, 0.5], lambda place: f"{place} nats")["a"]
    assert [part["tip"] for part in parts if "tip" in part] == ["\u2068שלום\u2069: 0 nats", "a: 1 nats"]
    tagged = {"text": text, "spans": [(0, 4), (5, 6)], "labels": ["X", "X"], "probabilities": [0.5, 0.25]}
    assert [tip for *_, tip in spans_to_draw(tagged)[0]] == ["⁨שלום⁩: X, 50.0%", "a: X, 25.0%"]
