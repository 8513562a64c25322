"""The view: all choices of a visitor that decide the contents of a page, and their form in a link.

A ``View`` is immutable and does not use Streamlit; ``ui.session.state`` holds one for each visitor.
"""

import dataclasses
import difflib
import re
import string

from ui.shell import aliases, catalogue
from ui.shell.limits import PRECISIONS, Limits

SELECTIONS = ("all", "aa", "ab", "ba", "bb")
FILLS = ("independent", "joint")
MOST_SETTINGS, LONGEST_SETTING = 40, 2_000
_UNCHANGED = (string.ascii_letters + string.digits + "_.-~ ").encode()  # one character in a link; a space becomes "+"
_MASK_POSITION = re.compile(r"([ab])(\d{1,5})(?:\.(\d{1,3}))?")


@dataclasses.dataclass(frozen=True, order=True)
class MaskPosition:
    """A masked word or piece, by its number in the text: a word has the same number under every tokenizer.

    Attributes:
        source: "a" or "b".
        word: index of the word in its text.
        piece: index of the piece in the word; -1 for the whole word.
    """

    source: str
    word: int
    piece: int = -1

    def __str__(self):
        return f"{self.source}{self.word}" + (f".{self.piece}" if self.piece >= 0 else "")

    @classmethod
    def parse(cls, text):
        """Read a text like "a5" or "b2.1"; None for any other text."""
        match = _MASK_POSITION.fullmatch(text)
        if not match:
            return None
        source, word, piece = match.groups()
        return cls(source, int(word), -1 if piece is None else int(piece))


@dataclasses.dataclass(frozen=True)
class View:
    """The choices of a visitor. Layers and heads count from 0 here, and from 1 in links and labels.

    ``settings`` are the settings of single pages: pairs of "page.name" and text, sorted by name.
    """

    page: str = "predict"
    a: str = ""
    b: str = ""
    masks: tuple[MaskPosition, ...] = ()
    model: str = ""
    other: str = ""
    precision: str = "float32"
    top_k: int = 5
    fill: str = "independent"
    whole: bool = True
    layer: int = 0
    head: int = 0
    selection: str = "all"
    special: bool = True
    punctuation: bool = True
    start: int = 0
    depth: int = 50
    settings: tuple[tuple[str, str], ...] = ()

    def setting(self, name):
        """The text of the setting "page.name", or None if it is at its default."""
        return dict(self.settings).get(name)

    def with_setting(self, name, text):
        """The view with one setting changed; None sets it to its default."""
        changed = {**dict(self.settings), name: text}
        not_default = ((key, value) for key, value in changed.items() if value is not None)
        return dataclasses.replace(self, settings=tuple(sorted(not_default)))

    def with_text(self, a, b, words):
        """The view with other texts; the masks of words that an edit has kept stay, with the words' new numbers.

        Args:
            a, b: str. The texts.
            words: callable (text) -> list of str, its words as `MaskPosition` counts them. Called only if a changed
                text has masks.
        """
        before, after = {"a": self.a, "b": self.b}, {"a": a, "b": b}
        masks = [spot for spot in self.masks if after[spot.source] == before[spot.source]]
        for source in {spot.source for spot in self.masks} - {spot.source for spot in masks}:
            moved = _kept_words(words(before[source]), words(after[source]))
            masks += [
                dataclasses.replace(spot, word=moved[spot.word])
                for spot in self.masks
                if spot.source == source and spot.word in moved
            ]
        return dataclasses.replace(self, a=a, b=b, masks=tuple(sorted(masks)), start=0)

    def toggled(self, spot):
        """The view with ``spot`` masked; if it is masked already, with it unmasked."""
        if spot in self.masks:
            return self.without(spot)
        # The mask of a whole word replaces the masks of its pieces, so that no token is masked twice.
        others = [
            mask for mask in self.masks if spot.piece >= 0 or (mask.source, mask.word) != (spot.source, spot.word)
        ]
        return dataclasses.replace(self, masks=tuple(sorted([*others, spot])))

    def without(self, spot):
        """The view with ``spot`` not masked."""
        return dataclasses.replace(self, masks=tuple(mask for mask in self.masks if mask != spot))

    def swapped(self):
        """The view with text A and text B swapped, and their masks."""
        other = {"a": "b", "b": "a"}
        masks = tuple(sorted(dataclasses.replace(spot, source=other[spot.source]) for spot in self.masks))
        return dataclasses.replace(self, a=self.b, b=self.a, masks=masks, start=0)


_DEFAULT = View()
_PLAIN = {
    "page": "page",
    "a": "a",
    "b": "b",
    "model": "model",
    "other": "with",
    "precision": "precision",
    "fill": "fill",
    "selection": "show",
}
_NUMBERS = {
    "top_k": ("top", 0),
    "layer": ("layer", 1),
    "head": ("head", 1),
    "start": ("from", 1),
    "depth": ("depth", 0),
}
_SWITCHES = {"whole": "words", "special": "special", "punctuation": "punctuation"}
#: The names of the parameters of a link to any page, as in docs/reference/links.md.
PARAMETERS = (*_PLAIN.values(), "mask", *(key for key, _ in _NUMBERS.values()), *_SWITCHES.values())


def _kept_words(before, after):
    """Number of a word before an edit -> its number after it, for the words that the edit has kept."""
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {old + step: new + step for old, new, size in blocks for step in range(size)}


def to_params(view: View, limits: Limits) -> dict[str, str]:
    """The view as query parameters, without the fields at their defaults. If both texts are empty, ``a`` is present.

    Percent-encoded the parameters have at most ``limits.max_link_characters`` characters: servers refuse addresses of
    twice that length. Settings longer than ``LONGEST_SETTING`` are empty in the link. If the rest is too long, its
    longest texts are empty too. They are empty, not absent, so that the link opens with an empty field and not with
    the default text. The masks of an empty text are left out. ``left_out`` names these texts.
    """
    return _fitted(view, limits)[0]


def left_out(view: View, limits: Limits) -> list[tuple[str, int]]:
    """The texts that are too long for a link to the view: list of ("a", "b" or a setting's name, its characters)."""
    return _fitted(view, limits)[1]


def _fitted(view, limits):
    """(the parameters of `to_params`, what `left_out` returns)."""
    settings = dict(_page_settings(view))
    texts = {"a": view.a, "b": view.b, **settings}
    missing = {name for name, text in settings.items() if len(text) > LONGEST_SETTING}
    params = _params(view, missing, limits)
    while _query_length(params) > limits.max_link_characters:
        rest = [name for name, text in texts.items() if text and name not in missing]
        if not rest:
            break
        missing.add(max(rest, key=lambda name: _encoded_length(texts[name])))
        params = _params(view, missing, limits)
    return params, [(name, len(text)) for name, text in texts.items() if name in missing]


def _params(view, missing, limits):
    params, default = {}, dataclasses.replace(_DEFAULT, precision=limits.precision)
    for name, key in _PLAIN.items():
        value = getattr(view, name)
        if value != getattr(default, name):
            params[key] = "" if name in missing else value
    if not view.a and not view.b:
        params["a"] = ""  # a link without the parameter opens with an example
    mask_positions = [spot for spot in view.masks if params.get(spot.source)]
    if mask_positions:
        params["mask"] = ",".join(map(str, mask_positions))
    for name, (key, base) in _NUMBERS.items():
        if getattr(view, name) != getattr(_DEFAULT, name):
            params[key] = str(getattr(view, name) + base)
    for name, key in _SWITCHES.items():
        if getattr(view, name) != getattr(_DEFAULT, name):
            params[key] = "1" if getattr(view, name) else "0"
    return params | {name: "" if name in missing else text for name, text in _page_settings(view)}


def _page_settings(view):
    # Only the settings of the view's page: a link opens one page, and the others would make it longer.
    return [(name, text) for name, text in view.settings if name.startswith(f"{view.page}.")]


def _query_length(params):
    """The number of characters of the query that a browser sends for ``params``."""
    return sum(_encoded_length(name) + _encoded_length(text) + len("=&") for name, text in params.items())


def _encoded_length(text):
    """The number of characters of a text in an address: three for each byte that is not in ``_UNCHANGED``."""
    raw = text.encode("utf-8")
    return len(raw) + 2 * len(raw.translate(None, _UNCHANGED))


def missing_page(params: dict[str, str]) -> str:
    """The name of the page that query parameters ask for, if there is none of this name; else ""."""
    asked = aliases.current(params).get("page", "")
    return "" if asked in catalogue.pages() else asked


def from_params(params: dict[str, str], limits: Limits) -> View:
    """Read a view from query parameters, which may be wrong.

    A field with a wrong value gets its default, so that a damaged link still opens a page. Old names of pages are read
    as their current names.
    """
    params = aliases.current(params)
    values = {name: params[key] for name, key in _PLAIN.items() if key in params}
    values = {
        name: value for name, value in values.items() if len(value) <= (limits.max_characters if name in "ab" else 200)
    }
    for name, (key, base) in _NUMBERS.items():
        text = params.get(key, "")
        if text.isascii() and text.isdigit() and len(text) < 6:
            values[name] = max(int(text) - base, 0)
    for name, key in _SWITCHES.items():
        if params.get(key) in ("0", "1"):
            values[name] = params[key] == "1"
    mask_positions = filter(None, (MaskPosition.parse(text) for text in params.get("mask", "").split(",")))
    values["masks"] = tuple(sorted(set(mask_positions)))[: limits.max_masks]
    values["settings"] = _settings(params)
    for name, known in (
        ("page", catalogue.pages()),
        ("precision", PRECISIONS),
        ("fill", FILLS),
        ("selection", SELECTIONS),
    ):
        if values.get(name) not in known:
            values.pop(name, None)
    view = View(**{"precision": limits.precision, **values})
    return dataclasses.replace(view, top_k=min(max(view.top_k, 1), limits.max_top_k), depth=min(view.depth, 100))


def _settings(params):
    """The settings of pages among the query parameters; at most ``MOST_SETTINGS`` of at most ``LONGEST_SETTING``
    characters."""
    known = {f"{page.name}.{setting}" for page in catalogue.pages().values() for setting in page.settings}
    settings = [(key, text) for key, text in params.items() if key in known and len(text) <= LONGEST_SETTING]
    return tuple(sorted(settings)[:MOST_SETTINGS])
