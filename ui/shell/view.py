"""The view: everything that decides what a page shows, and its form in a link.

A ``View`` is immutable and knows nothing of Streamlit; ``ui.session.state`` keeps one per visitor.
"""

import dataclasses
import re
import string

from ui.shell import aliases, catalogue
from ui.shell.limits import Limits

SELECTIONS = ("all", "aa", "ab", "ba", "bb")
PRECISIONS = ("float32", "bfloat16")
FILLS = ("independent", "joint")
MOST_SETTINGS, LONGEST_SETTING = 40, 2_000
_UNCHANGED = (string.ascii_letters + string.digits + "_.-~ ").encode()  # a space becomes "+"
_MASK_POSITION = re.compile(r"([ab])(\d{1,5})(?:\.(\d{1,3}))?")


@dataclasses.dataclass(frozen=True, order=True)
class MaskPosition:
    """A masked place, named so that it means the same under every tokenizer.

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
        """Read "a5" or "b2.1"; anything else gives None."""
        match = _MASK_POSITION.fullmatch(text)
        if not match:
            return None
        source, word, piece = match.groups()
        return cls(source, int(word), -1 if piece is None else int(piece))


@dataclasses.dataclass(frozen=True)
class View:
    """What a visitor looks at. Layers and heads count from 0 here and from 1 in links and labels.

    ``settings`` are what single pages add: pairs of "page.name" and text, sorted by name.
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
    shown: str = "all"
    special: bool = True
    punctuation: bool = True
    start: int = 0
    depth: int = 50
    settings: tuple[tuple[str, str], ...] = ()

    def setting(self, name):
        """The text of the setting "page.name", or None where it is at its default."""
        return dict(self.settings).get(name)

    def with_setting(self, name, text):
        """The view with one setting changed; None puts it back to its default."""
        changed = {**dict(self.settings), name: text}
        kept = ((key, value) for key, value in changed.items() if value is not None)
        return dataclasses.replace(self, settings=tuple(sorted(kept)))

    def with_text(self, a, b):
        """The view of other texts: masks of a text that changed point nowhere and are dropped."""
        kept = tuple(
            spot for spot in self.masks if (spot.source == "a" and a == self.a) or (spot.source == "b" and b == self.b)
        )
        return dataclasses.replace(self, a=a, b=b, masks=kept, start=0)

    def toggled(self, spot):
        """The view with ``spot`` masked, or unmasked where it was."""
        if spot in self.masks:
            return self.without(spot)
        # A whole word takes the place of its pieces, so that no position is named twice.
        others = [one for one in self.masks if spot.piece >= 0 or (one.source, one.word) != (spot.source, spot.word)]
        return dataclasses.replace(self, masks=tuple(sorted([*others, spot])))

    def without(self, spot):
        """The view with ``spot`` no longer masked."""
        return dataclasses.replace(self, masks=tuple(one for one in self.masks if one != spot))

    def swapped(self):
        """Text A and text B changed over, their masks with them."""
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
    "shown": "show",
}
_NUMBERS = {
    "top_k": ("top", 0),
    "layer": ("layer", 1),
    "head": ("head", 1),
    "start": ("from", 1),
    "depth": ("depth", 0),
}
_SWITCHES = {"whole": "words", "special": "special", "punctuation": "punctuation"}


def to_params(view: View, limits: Limits) -> dict[str, str]:
    """The view as query parameters, what is at its default left out; where both texts are empty, the first says so.

    Percent-encoded they have at most ``limits.max_link_characters`` characters: servers refuse addresses of twice
    that length. What is too long for it, the longest first, and settings longer than ``LONGEST_SETTING`` are empty
    in the link, so that it opens with an empty field and not with another text than this one, and the masks of an
    empty text stay out; ``left_out`` names them.
    """
    return _params(view, {name for name, _ in left_out(view, limits)})


def left_out(view: View, limits: Limits) -> list[tuple[str, int]]:
    """What is too long for a link to the view's page: ("a", "b" or the name of a setting, number of characters)."""
    own = dict(_own(view))
    texts = {"a": view.a, "b": view.b, **own}
    missing = {name for name, text in own.items() if len(text) > LONGEST_SETTING}
    while _length(_params(view, missing)) > limits.max_link_characters:
        rest = [name for name, text in texts.items() if text and name not in missing]
        if not rest:
            break
        missing.add(max(rest, key=lambda name: _encoded(texts[name])))
    return [(name, len(text)) for name, text in texts.items() if name in missing]


def _params(view, missing):
    params = {}
    for name, key in _PLAIN.items():
        value = getattr(view, name)
        if value != getattr(_DEFAULT, name):
            params[key] = "" if name in missing else value
    if not view.a and not view.b:
        params["a"] = ""  # a link without a text is a first visit, which begins with an example
    mask_positions = [spot for spot in view.masks if params.get(spot.source)]
    if mask_positions:
        params["mask"] = ",".join(map(str, mask_positions))
    for name, (key, base) in _NUMBERS.items():
        if getattr(view, name) != getattr(_DEFAULT, name):
            params[key] = str(getattr(view, name) + base)
    for name, key in _SWITCHES.items():
        if getattr(view, name) != getattr(_DEFAULT, name):
            params[key] = "1" if getattr(view, name) else "0"
    return params | {name: "" if name in missing else text for name, text in _own(view)}


def _own(view):
    # A link opens one page: the settings of the others would only make it longer.
    return [(name, text) for name, text in view.settings if name.startswith(f"{view.page}.")]


def _length(params):
    """Characters of the query that a browser sends for ``params``."""
    return sum(_encoded(name) + _encoded(text) + len("=&") for name, text in params.items())


def _encoded(text):
    """Characters of a text in an address: three for each byte that is not a plain letter, a digit or a space."""
    raw = text.encode("utf-8")
    return len(raw) + 2 * len(raw.translate(None, _UNCHANGED))


def from_params(params: dict[str, str], limits: Limits) -> View:
    """Read a view from query parameters written by anybody.

    What cannot be understood keeps its default: a mangled link still opens a page. Names that pages had before are read
    as their names now.
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
    for name, known in (("page", catalogue.pages()), ("precision", PRECISIONS), ("fill", FILLS), ("shown", SELECTIONS)):
        if values.get(name) not in known:
            values.pop(name, None)
    view = View(**values)
    return dataclasses.replace(view, top_k=min(max(view.top_k, 1), limits.max_top_k), depth=min(view.depth, 100))


def _settings(params):
    """The settings among query parameters: only those that pages declare, of a bounded number and length."""
    known = {f"{page.name}.{setting}" for page in catalogue.pages().values() for setting in page.settings}
    found = [(key, text) for key, text in params.items() if key in known and len(text) <= LONGEST_SETTING]
    return tuple(sorted(found)[:MOST_SETTINGS])
