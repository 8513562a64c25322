"""Views say what they do not show."""

import pytest

from tests.app.look import told


@pytest.mark.parametrize("view, says", [
    ({"page": "predict"}, "a sure guess may be untrue"),
    ({"page": "whatif", "whatif.kind": "word", "whatif.word": "a0", "whatif.with": "A"}, "One change in one text"),
    ({"page": "whatif", "whatif.kind": "swap"}, "One change in one text"),
    ({"page": "timelapse"}, "with another seed"),
])  # fmt: skip
def test_the_view_says_its_limits(open_app, view, says):
    app = open_app(a="The cat sat.", b="It was good.", mask="a1", **view)
    assert not app.exception and not app.error and says in told(app), told(app)
