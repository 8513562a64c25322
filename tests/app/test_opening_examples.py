"""What a page opens with makes its point."""

import pytest

from tests.app.page_reading import component, page_text, param, run_until_done
from ui.samples.minimal_pairs import PAIRS, partner


def test_ablation_opens_with_the_effect_of_every_part(open_app):
    app = run_until_done(open_app(page="ablation"))
    assert app.button_group(key="w_ablation_colour").value == "effect"
    shades = component(app, "cells")["shades"]
    assert len({shade for shade in shades if shade is not None}) > 5
    # With a part switched off, the colours show how the other heads react.
    app = run_until_done(open_app(page="ablation", **{"ablation.off": "1-f"}))
    assert app.button_group(key="w_ablation_colour").value == "shift"


@pytest.mark.parametrize(
    "good, bad",
    [
        ("The dogs near the house are old.", "The dogs near the house is old."),
        ("I know that he was there.", "I know that he were there."),
        ("She reads these books.", "She reads this books."),
        ("This cat has sat.", "This cat have sat."),
    ],
)
def test_a_visitor_s_sentence_gets_an_ungrammatical_partner(good, bad, open_app):
    assert (partner(good).good, partner(good).bad) == (good, bad)
    app = open_app(page="counterfactuals", a=good, **{"counterfactuals.kind": "pairs"})
    assert [field.value for field in app.text_input] == [good, bad]


def test_a_sentence_without_a_partner_leaves_the_example(open_app):
    assert partner("Cats sleep.") is None
    for link in ({"a": "Cats sleep."}, {}):
        app = open_app(page="counterfactuals", **link, **{"counterfactuals.kind": "pairs"})
        assert [field.value for field in app.text_input] == [PAIRS[0].good, PAIRS[0].bad]


@pytest.mark.usefixtures("with_tasks")
def test_a_classifier_opens_with_a_text_to_classify_and_leaves_a_visitor_s_own(open_app):
    from ui.session import task_models

    praise = task_models.EXAMPLES["classify", False][0][1]
    app = run_until_done(open_app(page="saliency", model="classes"))
    assert param(app, "a") == praise and not param(app, "mask"), page_text(app)
    app = run_until_done(open_app(page="logit_lens"))
    before = param(app, "a"), param(app, "mask")
    app.selectbox(key="w_model").set_value("classes")
    run_until_done(app.run())
    assert param(app, "a") == praise
    app.selectbox(key="w_model").set_value("plain")
    run_until_done(app.run())
    assert (param(app, "a"), param(app, "mask")) == before
    app = run_until_done(open_app(page="saliency", a="the cat sat", mask="a1"))
    app.selectbox(key="w_model").set_value("classes")
    run_until_done(app.run())
    assert (param(app, "a"), param(app, "mask")) == ("the cat sat", "a1")
