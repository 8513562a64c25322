"""Every control of every page shows the value of which its figure is drawn, whatever was changed before."""

import pytest

from tests.app.page_reading import page_text, walk
from ui.shell import catalogue

TEXT, OTHER_TEXT = "The cat sat on the mat in the house.", "Paris is the capital of France and a city."
KINDS = ("Slider", "Selectbox", "ButtonGroup", "Checkbox")


@pytest.fixture
def sent_values(monkeypatch):
    """The values that the last run gave its controls before it drew them, as those of its figures: dict from keys."""
    from ui.session import state

    values, set_widget = {}, state.set_widget

    def recording(key, value, *more, **named):
        values[key] = value
        set_widget(key, value, *more, **named)

    monkeypatch.setattr(state, "set_widget", recording)
    return values


class Browser:
    """What a browser shows in the controls of a page.

    A browser keeps what a control shows until the server sends another value. A control with another id is a new one,
    which shows its default. So is a control that was not drawn in between.
    """

    def __init__(self, app, sent_values):
        self.app, self._sent_values, self.displayed = app, sent_values, {}
        self.receive()

    def controls(self):
        return [one for one in walk(self.app._tree.root) if type(getattr(one, "proto", None)).__name__ in KINDS]

    def receive(self):
        before, self.displayed = self.displayed, {}
        for control in self.controls():
            proto = control.proto
            if proto.set_value or proto.id not in before:
                self.displayed[proto.id] = _sent(proto)
            else:
                self.displayed[proto.id] = before[proto.id]

    def check(self, after):
        assert not self.app.exception, page_text(self.app)
        for control in self.controls():
            if control.key in self._sent_values:
                wanted = _label(control, self._sent_values[control.key])
                assert self.displayed[control.proto.id] == wanted, f"{control.key} after {after}: {page_text(self.app)}"

    def choose(self, key, displayed):
        """Let the visitor choose what a control then shows, and check every control; nothing if it is not drawn."""
        control = next((one for one in self.controls() if one.key == key), None)
        if control is not None:
            self.displayed[control.proto.id] = displayed
            self._run(f"{key} = {displayed}")

    def type(self, text):
        self.app.text_area(key="w_text_a").set_value(text)
        self._run("another text")

    def _run(self, after):
        """Run the page with the values that a browser sends, which are those that it shows."""
        states = self.app._tree.get_widget_states()
        for state in states.widgets:
            if state.id in self.displayed:
                displayed = self.displayed[state.id]
                if isinstance(displayed, bool):
                    state.bool_value = displayed
                elif isinstance(displayed, str):
                    state.string_value = displayed
                elif displayed and isinstance(displayed[0], float):
                    state.double_array_value.data[:] = displayed
                else:
                    state.string_array_value.data[:] = displayed
        self._sent_values.clear()
        self.app._run(states)
        self.receive()
        self.check(after)


def _sent(proto):
    """The value that a message sends: the new one, or the default of a new control."""
    kind = type(proto).__name__
    if kind == "Checkbox":
        return proto.value if proto.set_value else proto.default
    if kind == "Slider":
        if not proto.options:
            return list(proto.value if proto.set_value else proto.default)
        return list(proto.raw_value) if proto.set_value else [proto.options[int(place)] for place in proto.default]
    if kind == "Selectbox":
        if proto.set_value:
            return proto.raw_value
        return proto.options[proto.default] if proto.HasField("default") else ""
    return list(proto.raw_values) if proto.set_value else [proto.options[place].content for place in proto.default]


def _label(control, value):
    """A value as a control shows it."""
    kind = type(control.proto).__name__
    if kind == "Checkbox":
        return bool(value)
    if kind == "Slider" and not control.proto.options:
        return [float(one) for one in (value if isinstance(value, tuple) else [value])]
    if value is None:
        return [] if kind == "ButtonGroup" else ""
    if kind == "ButtonGroup":
        return [control.format_func(one) for one in (value if isinstance(value, list) else [value])]
    label = control.format_func(value)
    return [label] if kind == "Slider" else label


@pytest.mark.parametrize("page", list(catalogue.pages()))
def test_every_control_shows_the_value_of_its_figure(page, open_app, sent_values):
    app = open_app(page=page, model="tiny-cased", a=TEXT, mask="a1", layer="2", head="2", depth="66")
    browser = Browser(app, sent_values)
    browser.check("opening")
    # The sliders leave their defaults, which a control that is new by mistake would show.
    for control in browser.controls():
        proto = control.proto
        if type(proto).__name__ == "Slider" and control.key in sent_values:
            second = min(proto.max, proto.min + 1)
            browser.choose(control.key, list(proto.options[-1:]) or [proto.min, second][-len(proto.default) :])
    _change_inputs(browser)
    for control in browser.controls():
        proto = control.proto
        if type(proto).__name__ == "ButtonGroup" and control.key in sent_values and control.key != "w_precision":
            for option in proto.options:
                browser.choose(control.key, [option.content])
            _change_inputs(browser)


def _change_inputs(browser):
    """Change the model and the text, each there and back."""
    if any(one.key == "w_model" for one in browser.controls()):
        for model in ("tiny-uncased", "tiny-cased"):
            browser.choose("w_model", model)
    if any(one.key == "w_text_a" for one in browser.app.text_area):
        for text in (OTHER_TEXT, TEXT):
            browser.type(text)
