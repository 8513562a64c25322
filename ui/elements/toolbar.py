"""A row of small controls, drawn as one component, which takes a browser less time than a Streamlit widget for each.

The controls change the view through a function of their own; what they show is read from the view in every run.
"""

import dataclasses
from collections.abc import Callable, Sequence

from ui.elements.component_registry import register

_TOOLBAR = register("toolbar", "controls")


@dataclasses.dataclass(frozen=True)
class Button:
    """A button; ``bare``: only its icon (a name of Material Symbols) is drawn."""

    name: str
    label: str
    icon: str
    help: str
    on_press: Callable[[], None]
    disabled: bool = False
    bare: bool = False
    kind = "button"

    def use(self, value):
        """Call the button's function; ``value``: None."""
        if not self.disabled:
            self.on_press()


@dataclasses.dataclass(frozen=True)
class Choice:
    """A menu of one line; ``chosen``: the index of the option that is chosen."""

    name: str
    label: str
    options: Sequence[str]
    chosen: int
    on_choose: Callable[[int], None]
    help: str = ""
    kind = "choice"

    def use(self, value):
        """Call the menu's function with the index of an option; any other value of the browser is ignored."""
        if type(value) is int and 0 <= value < len(self.options):
            self.on_choose(value)


@dataclasses.dataclass(frozen=True)
class Switch:
    """A switch that is on or off."""

    name: str
    label: str
    on: bool
    help: str
    on_turn: Callable[[bool], None]
    kind = "switch"

    def use(self, value):
        """Call the switch's function with True or False; any other value of the browser is ignored."""
        if type(value) is bool:
            self.on_turn(value)


def toolbar(key, *controls, heading=""):
    """Draw controls in a row, at the right of a heading if there is one.

    Args:
        key: of the component. controls: ``Button``, ``Choice`` and ``Switch``, each with a name of its own.
        heading: str. Of the part of the page that follows.
    """
    data = {"heading": heading, "controls": control_data(controls)}
    presses = {"use": use_control(controls)}
    _TOOLBAR(key=key, data=data, presses=presses, width="stretch" if heading else "content")


def control_data(controls):
    """What the browser needs of controls: for each a dict of its fields without its function."""
    return [
        {"kind": control.kind}
        | {
            field.name: value
            for field in dataclasses.fields(control)
            if not callable(value := getattr(control, field.name))
        }
        for control in controls
    ]


def use_control(controls):
    """The function that a component hands what a visitor did; it calls that of the control that was used."""

    def used(value):
        if isinstance(value, dict):
            for control in controls:
                if control.name == value.get("name"):
                    control.use(value.get("value"))

    return used
