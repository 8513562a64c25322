"""Views say what they do not show."""

import pytest

from tests.app.page_reading import page_text, run_until_done


@pytest.mark.parametrize(
    "view, says",
    [
        ({"page": "predict"}, "a confident prediction may be untrue"),
        (
            {
                "page": "counterfactuals",
                "counterfactuals.kind": "word",
                "counterfactuals.word": "a0",
                "counterfactuals.with": "A",
            },
            "one change in one text",
        ),
        ({"page": "counterfactuals", "counterfactuals.kind": "swap"}, "one change in one text"),
        ({"page": "time_lapse"}, "with another seed"),
        ({"page": "predict", "mask": ""}, "a high score does not say that B makes sense after A"),
        ({"page": "side_by_side"}, "does not show which side is better"),
        ({"page": "side_by_side"}, "A mean hides single heads"),
        ({"page": "side_by_side", "side_by_side.look": "layers"}, "trained on the last layer alone"),
        ({"page": "counterfactuals", "counterfactuals.kind": "pairs"}, "One pair does not prove a rule"),
        ({"page": "architectures"}, "None of these numbers measures the quality of the predictions"),
    ],
)
def test_the_view_says_its_limits(open_app, view, says):
    app = run_until_done(
        open_app(**{"a": "The cat sat.", "b": "It was good.", "mask": "a1", "with": "tiny-uncased", **view})
    )
    assert says in page_text(app), page_text(app)


@pytest.mark.parametrize(
    "view",
    [
        {"page": "side_by_side", "with": "tiny-uncased"},
        {"page": "side_by_side", "with": "tiny-uncased", "side_by_side.drawn": "lines", "side_by_side.head": "1"},
        {"page": "time_lapse"},
        {"page": "architecture", "architecture.open": "attention", "architecture.values": "attentions"},
    ],
)
def test_a_map_of_attention_leads_to_why_it_is_no_explanation(open_app, view):
    app = open_app(a="The cat sat.", b="It was good.", **view)
    assert not app.exception and "Is attention an explanation? No, not by itself." in page_text(app)
