"""Write the tables of docs/explorer.md from the records of the pages and analyses: python docs/explorer_tables.py."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bert_tf.analyses import catalogue as analyses  # noqa: E402
from ui.shell import catalogue  # noqa: E402

FILE = ROOT / "docs" / "explorer.md"


def page_rows():
    """The rows of the table of pages."""
    return [f"| {page.full_title} | {page.summary} |" for page in catalogue.pages().values()]


def setting_rows():
    """The rows of the table of a page's own parameters."""
    rows = []
    for page in catalogue.pages().values():
        if page.settings:
            names = ", ".join(f"`{page.name}.{setting}`" for setting in page.settings)
            rows.append(f"| {names} | {page.settings_help} |")
    return rows


#: What an analysis takes beside its options, by its `inputs`.
INPUTS = {
    "pair": "a text or pair",
    "file": "`--input FILE`",
    "pair or file": "a text or pair, or `--input FILE`",
    "pair with file": "a text or pair; `--input FILE`",
    "text": "a text",
    "texts": "a text or pair",
    "none": "",
}


#: What a model must have, by the names in an analysis' `needs`.
NEEDS = {
    "mlm": "masked words",
    "nsp": "next sentence",
    "sop": "sentence order",
    "replaced": "replaced tokens",
    "classes": "classifier",
}


def analysis_rows():
    """The rows of the table of analyses."""
    return [_analysis_row(analysis) for analysis in analyses().values()]


def _analysis_row(analysis):
    options = [option.name.upper() if option.positional else option.flag for option in analysis.options]
    answer = ["the answer to explain"] * analysis.target
    takes = [INPUTS[analysis.inputs], *answer, " ".join(f"`{option}`" for option in options)]
    heads = "; ".join(" or ".join(NEEDS[name] for name in need.split("|")) for need in analysis.needs)
    cells = (f"`{analysis.name}`", "; ".join(filter(None, takes)), heads, analysis.summary, analysis.source)
    return f"| {' | '.join(cells)} |"


def written(text):
    """The document with its tables as the records have them."""
    text = _with_rows(text, "| analysis |", analysis_rows())
    text = _with_rows(text, "| page |", page_rows())
    return _with_rows(text, "| parameter of one page |", setting_rows())


def _with_rows(text, heading, rows):
    lines = text.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith(heading)) + 2
    last = next(place for place in range(first, len(lines)) if not lines[place].startswith("|"))
    return "\n".join([*lines[:first], *rows, *lines[last:]]) + "\n"


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text("utf-8")), "utf-8")
