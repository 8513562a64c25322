"""Take the documents' pictures again: python docs/screenshots.py. Needs Chromium and requirements-dev.txt."""

import argparse
import pathlib
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.clicks import chromium, explorer  # noqa: E402

FOLDER = ROOT / "assets" / "screenshots"
_HISTORY = {"a": "The legislators believed they were on the right side of history.", "b": "So they changed the law."}
_RIVER = {"a": "They sat on the bank of the river and watched the boats.", "mask": "a4"}
_ATTENTION = {"architecture.open": "attention", "architecture.layer": "5"}
#: Name of the picture -> (parameters of the link, width, height, colour scheme).
PICTURES = {
    "predict": ({"page": "predict", **_HISTORY, "mask": "a10,b4"}, 1440, 1020, "light"),
    "attention": ({"page": "all_heads", **_RIVER, "layer": "3"}, 1440, 900, "light"),
    "compare": ({"page": "side_by_side", **_RIVER}, 1440, 900, "light"),
    "word-senses": ({"page": "word_senses"}, 1440, 900, "light"),
    "architecture": ({"page": "architecture", **_HISTORY, "mask": "a10", **_ATTENTION}, 1440, 900, "light"),
    "phone": ({"page": "predict", "a": "Shanghai is a city in China.", "mask": "a5"}, 390, 1190, "dark"),
}
_DONE = "() => document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'"


def main():
    """Writes one PNG file for each picture."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with chromium() as browser, explorer() as address:
        for name, (link, width, height, scheme) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(f"{address}/?{urllib.parse.urlencode(link)}")
            page.get_by_role("heading").first.wait_for(timeout=120_000)
            page.wait_for_function(_DONE, timeout=120_000)
            page.wait_for_timeout(4000)  # figures and fonts
            page.screenshot(path=FOLDER / f"{name}.png")
            page.close()


if __name__ == "__main__":
    main()
