"""`Page`, the declaration of a page. Each page has one in its file; navigation, links, snippets and tests read it.

The sections of the navigation are in this file too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ui.samples.examples import Example

#: Sections of the navigation, in order -> their groups of pages; each group has a folder in `pages/`.
SECTIONS = {
    "Predict": ("Predict", "Data"),
    "Attention": ("Attention",),
    "Explain": ("Explain",),
    "Representations": ("Representations",),
    "Compare": ("Compare",),
    "Models and training": ("Models", "Tasks", "Training"),
    "Learn": ("Learn",),
}
#: The groups in the order of the navigation.
GROUPS = tuple(group for groups in SECTIONS.values() for group in groups)
#: Link parameters that mask the second word of text A.
MASKED = {"mask": "a1"}


@dataclasses.dataclass(frozen=True)
class Press:
    """The element of a page that the click benchmark presses; see `benchmarks/clicks.py`.

    Attributes:
        what: "chip" is a token of the chip strip; "word" is a token of a strip in which one word at a time is masked;
            "head" is a tile on the canvas of all heads; "zoom" is a tile that opens another view; "choice: LABEL: A|B"
            are the choices A and B of a group of buttons in turn; "open" is the link to the page; any other text is
            the selector of the elements.
        link: further parameters of the link.
        of_texts: whether the page shows the two texts. Another page is measured once, against the shorter time.
        long: whether a press starts a background job of minutes; the job is stopped before the next press.
        most: the largest number of tokens that the page takes.
    """

    what: str
    link: Mapping[str, str] = dataclasses.field(default_factory=dict)
    of_texts: bool = True
    long: bool = False
    most: int = 512


@dataclasses.dataclass(frozen=True)
class Page:
    """One page of the explorer.

    Attributes:
        name: of the page in a link, and of its file `pages/<group>/<name>.py`; the file's function `page` draws it.
        group: one of `GROUPS`.
        order: position among the pages of its group, from 1.
        title: the field's standard name, on the page and in the navigation.
        question: the title in plain words, below it.
        summary: the contents of the page; its row in docs/reference/explorer.md.
        presses: name of a view of the page ("" for the page as it opens) -> the `Press` of the click benchmark.
        analyses: kinds of `python -m bert_tf explain` that the page shows.
        terms: further words by which the search of the navigation shows the page: its views, methods and other names.
        reads_texts: whether the page reads text A and text B.
        reads_texts_if: (setting, value): the page reads the texts only if the setting has this value. None: see
            `reads_texts`.
        example: the example with which the page opens while the visitor has not chosen a text; None: the first of all.
        settings: names of the settings that a link to the page may have; `at` is `<name>.at` in the link.
        settings_help: the meaning of these settings; shown in the site's docs/reference/links.md.
        long_settings: setting -> its name in the note about settings that are too long for a link.
        opens_rows: whether "Open row in" lists the page.
        is_available: callable () -> whether the models or trainings that the page needs are installed; called before
            "Open row in" lists the page.
        from_row: view of a row -> the view in which the page shows it. The given view's page is the one with the table.
        snippet: function (view, arguments of `ui.shell.snippets.give`...) that writes the text of "Copy as Python";
            None for no text.
        snippet_language: "python", or "bash" if the text is a command.
        in_float32: whether the page computes in float32 in every precision of the sidebar.
    """

    name: str
    group: str
    order: int
    title: str
    question: str
    summary: str
    presses: Mapping[str, Press]
    analyses: tuple[str, ...] = ()
    terms: str = ""
    reads_texts: bool = True
    reads_texts_if: tuple[str, str] | None = None
    example: Example | None = None
    settings: tuple[str, ...] = ()
    settings_help: str = ""
    long_settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    opens_rows: bool = False
    is_available: Callable[[], bool] = lambda: True
    from_row: Callable = lambda view: view
    snippet: Callable[..., str] | None = None
    snippet_language: str = "python"
    in_float32: bool = False

    @property
    def section(self) -> str:
        """The section of the navigation with the page."""
        return next(title for title, groups in SECTIONS.items() if self.group in groups)

    @property
    def full_title(self) -> str:
        """The title after its section, like "Explain: Logit lens"; the title alone if both are the same."""
        return self.title if self.title == self.section else f"{self.section}: {self.title}"

    def shows_texts(self, view) -> bool:
        """Whether the page reads the texts of this `View`."""
        if self.reads_texts_if is None:
            return self.reads_texts
        setting, value = self.reads_texts_if
        return view.setting(f"{self.name}.{setting}") == value
