"""What the explorer's own components have in common, run in a real Chromium."""

import re

import numpy as np
import pytest

from ui.limits import ROOT
from ui.words import percent

FOLDER = ROOT / "assets" / "components"
SCRIPTS = sorted(FOLDER.glob("*.js"))


@pytest.fixture
def blank(chromium):
    """A function that opens an empty page with the scripts of the components of these names in it."""
    context = chromium.new_context()

    def opened(*names):
        page = context.new_page()
        page.set_default_timeout(120_000)
        scripts = [(FOLDER / f"{name}.js").read_text("utf-8") for name in ("shared", *names)]
        page.add_script_tag(content="\n".join(scripts).replace("export default function", "function drawn"))
        return page

    yield opened
    context.close()


def test_no_two_components_hold_the_same_function():
    found = {}
    for path in SCRIPTS:
        for name, body in re.findall(r"^(?:export )?function (\w+)(\(.*?\n})", path.read_text("utf-8"), re.M | re.S):
            assert body not in found, (name, path.name, found[body])
            found[body] = path.name


def test_a_share_is_written_by_the_components_as_the_pages_write_it(blank):
    shares = [0.0, 1e-9, 0.0009, 0.0011, 0.0123, 0.0999, 0.1, 0.4611, 0.9949, 0.9994, 0.9996, 1.0]
    for name in ("bars", "lines", "neuron", "gauge"):
        assert blank(name).evaluate("(shares) => shares.map(percent)", shares) == [percent(one) for one in shares]


def test_the_grid_has_the_ramps_colours(blank):
    ramp = ["#ffffff", "#0072b2", "#102030"]
    packed = np.array(blank("grid").evaluate("(ramp) => [...colours(ramp)]", ramp), np.uint32)
    stops = np.array([[int(one[at : at + 2], 16) for at in (1, 3, 5)] for one in ramp])
    wanted = [np.interp(np.linspace(0, 1, 256), [0, 0.5, 1], stops[:, c]) for c in range(3)]
    found = packed.view(np.uint8).reshape(256, 4)  # red, green, blue, opacity as the canvas has them
    assert (found[:, 3] == 255).all() and np.abs(found[:, :3] - np.stack(wanted, 1)).max() <= 0.5 + 1e-9
