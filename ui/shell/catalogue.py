"""The list of all pages: one for every file `pages/<group>/<name>.py` that has a `PAGE`."""

import functools
import importlib

from ui.shell.limits import ROOT
from ui.shell.page import GROUPS, Page


@functools.cache
def _modules():
    """Name of a page -> its module, in the order of the navigation."""
    paths = sorted((ROOT / "pages").glob("*/*.py"))
    modules = [importlib.import_module(f"pages.{path.parent.name}.{path.stem}") for path in paths]
    page_modules = [module for module in modules if hasattr(module, "PAGE")]
    page_modules.sort(key=lambda module: (GROUPS.index(module.PAGE.group), module.PAGE.order))
    return {module.PAGE.name: module for module in page_modules}


@functools.cache
def pages() -> dict[str, Page]:
    """Name -> `Page`, in the order of the navigation. The first call imports the files of all pages."""
    return {name: module.PAGE for name, module in _modules().items()}


def draw(name: str) -> None:
    """Draw the page called ``name`` below its title."""
    _modules()[name].page()
