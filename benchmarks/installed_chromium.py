"""The Chromium of this machine."""

import shutil

SHELL = "chromium-headless-shell"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", SHELL)


def find_chromium(first=_NAMES[0]):
    """The path of the Chromium on the PATH, None without one; ``first``: the name to look for before the others."""
    return next(filter(None, map(shutil.which, (first, *_NAMES))), None)
