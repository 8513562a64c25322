"""Views say what they do not show."""

import pytest

from tests.app.look import param, settled, told


@pytest.mark.parametrize(
    "view, says",
    [
        ({"page": "predict"}, "a sure guess may be untrue"),
        ({"page": "whatif", "whatif.kind": "word", "whatif.word": "a0", "whatif.with": "A"}, "One change in one text"),
        ({"page": "whatif", "whatif.kind": "swap"}, "One change in one text"),
        ({"page": "timelapse"}, "with another seed"),
        ({"page": "predict", "mask": ""}, "a high score does not say that B makes sense after A"),
        ({"page": "compare"}, "it does not say which of them is the better"),
        ({"page": "compare"}, "A mean hides what single heads do"),
        ({"page": "compare", "compare.look": "layers"}, "trained on the last layer alone"),
        ({"page": "whatif", "whatif.kind": "pairs"}, "One pair shows no rule"),
        ({"page": "family"}, "How well a model answers is in none of these numbers"),
    ],
)
def test_the_view_says_its_limits(open_app, view, says):
    app = settled(open_app(**{"a": "The cat sat.", "b": "It was good.", "mask": "a1", "with": "tiny-uncased", **view}))
    assert says in told(app), told(app)


@pytest.mark.parametrize(
    "view",
    [
        {"page": "compare", "with": "tiny-uncased"},
        {"page": "compare", "with": "tiny-uncased", "compare.drawn": "lines", "compare.head": "1"},
        {"page": "timelapse"},
        {"page": "architecture", "architecture.open": "attention", "architecture.values": "attentions"},
    ],
)
def test_a_map_of_attention_leads_to_why_it_is_no_explanation(open_app, view):
    app = open_app(a="The cat sat.", b="It was good.", **view)
    app.button(key="w_attention_read").click().run()
    assert not app.exception and param(app, "page") == "attention"
    assert "**No, not by itself.**" in told(app) and app.expander[-1].proto.expanded
