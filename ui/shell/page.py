"""What is declared of a page, once, in its own file; navigation, links, snippets, documents and tests read it there.

The groups of the navigation and their order stand here too.
"""

import dataclasses
from collections.abc import Callable, Mapping

#: The groups of pages in the order of their links; each has a folder in `pages/`.
GROUPS = (
    "Predict",
    "Attention",
    "Explain",
    "Representations",
    "Compare",
    "Tasks",
    "Training",
    "Data",
    "Learn",
    "Models",
)
#: Link parameters that mask the second word of text A.
MASKED = {"mask": "a1"}


@dataclasses.dataclass(frozen=True)
class Press:
    """What the click benchmark presses on a page; see `benchmarks/clicks.py`.

    Attributes:
        what: "chip" is a word of the strip, "word" one of a strip that hides one at a time, "head" a place of the
            canvas of all heads, "zoom" one that opens another view, "choice: LABEL: A|B" the choices A and B of a
            group of buttons in turn, "open" the link to the page, anything else elements by their selector.
        link: more parameters of the link.
        of_texts: whether the page shows the two texts; any other is measured once, against the shorter time.
        long: whether a press begins work beside the page that takes minutes; it is stopped before the next.
        most: tokens that the page takes.
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
        name: of the page in a link, and of its file `pages/<group>/<name>.py`, whose function `page` draws it.
        group: one of `GROUPS`.
        order: place among the pages of its group, from 1.
        title: the field's standard name, on the page and in the navigation.
        question: the same in plain words, below the title.
        summary: what the page shows; its row in docs/explorer.md.
        presses: what the click benchmark presses: name of a view of the page ("" for the page as it opens) -> `Press`.
        analyses: kinds of `python -m bert_tf explain` that the page shows.
        reads_texts: whether the page reads text A and text B.
        reads_texts_if: (setting, value) with which a page reads the texts that otherwise reads none.
        settings: names of the settings that a link to the page may hold: `at` is `<name>.at` there.
        settings_help: what these settings mean; their row in docs/explorer.md.
        long_settings: setting -> words for it where it is too long for a link.
        opens_rows: whether "Open row in" offers the page.
        is_available: whether the models or trainings that the page needs are here; asked before a row is offered.
        from_row: view of a row -> the view in which the page shows it. The view's page is still the one with the table.
        snippet: function (view, what the page gave...) that writes the lines of "Copy as Python"; None for no lines.
        snippet_language: "python", or "bash" where the lines are a command.
    """

    name: str
    group: str
    order: int
    title: str
    question: str
    summary: str
    presses: Mapping[str, Press]
    analyses: tuple[str, ...] = ()
    reads_texts: bool = True
    reads_texts_if: tuple[str, str] | None = None
    settings: tuple[str, ...] = ()
    settings_help: str = ""
    long_settings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    opens_rows: bool = False
    is_available: Callable[[], bool] = lambda: True
    from_row: Callable = lambda view: view
    snippet: Callable[..., str] | None = None
    snippet_language: str = "python"

    @property
    def full_title(self) -> str:
        """The title with the group before it where these differ: "Explain: Logit lens"."""
        return self.title if self.title == self.group else f"{self.group}: {self.title}"

    def shows_texts(self, view) -> bool:
        """Whether the page reads the texts of this `View`."""
        if self.reads_texts_if is None:
            return self.reads_texts
        setting, value = self.reads_texts_if
        return view.setting(f"{self.name}.{setting}") == value
