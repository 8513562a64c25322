"""Take the README's moving picture again: python docs/moving_picture.py. Needs Chromium and requirements-dev.txt."""

import argparse
import io
import urllib.parse

from PIL import Image
from screenshots import _DONE, FOLDER, chromium, explorer

_TEXT = "They sat on the bank of the river and watched the boats."
#: The views that it shows, one after another: parameters of their links.
VIEWS = (
    {"page": "predict", "a": _TEXT},
    {"page": "predict", "a": _TEXT, "mask": "a4"},
    {"page": "predict", "a": _TEXT, "mask": "a4,a7"},
    {"page": "all_heads", "a": _TEXT, "mask": "a4", "layer": "3"},
    {"page": "all_heads", "a": _TEXT, "mask": "a4", "layer": "3", "head": "6"},
    {"page": "logit_lens", "a": _TEXT, "mask": "a4"},
    {"page": "side_by_side", "a": _TEXT, "mask": "a4"},
)
_SECONDS = 1.8
_SIZE = (960, 600)


def main():
    """Writes ``assets/screenshots/tour.webp``, one frame for each view."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    frames = []
    with chromium() as browser, explorer() as address:
        page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
        for view in VIEWS:
            page.goto(f"{address}/?{urllib.parse.urlencode(view)}")
            page.get_by_role("heading").first.wait_for(timeout=120_000)
            page.wait_for_function(_DONE, timeout=120_000)
            page.wait_for_timeout(4000)  # figures and fonts
            frames.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB").resize(_SIZE, Image.LANCZOS))
    first, *others = frames
    duration = int(1000 * _SECONDS)
    first.save(
        FOLDER / "tour.webp", save_all=True, append_images=others, duration=duration, loop=0, quality=80, method=6
    )


if __name__ == "__main__":
    main()
