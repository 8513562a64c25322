"""Random sessions of one visitor without a browser: random acts on random pages with random models.

A session is a tuple of numbers, so that Hypothesis can shrink one that fails; `play` gives the acts in words.
"""

import contextlib
import logging
import threading

from hypothesis import strategies as st

from tests.app.page_reading import walk
from ui.session.jobs import Job

TEXTS = (
    "",
    " ",
    "The cat sat on the mat.",
    "She saw [MASK] and [MASK].",
    "语言 😀 e\u0301 \u202eabc",
    "<script>alert(1)</script> **b** $x$ [a](javascript:1)",
    "a" * 300,
    "the cat " * 400,
    "\ud800",
    "1e308",
    "-1",
    "../../etc/passwd",
)
#: The limits of a session: it starts no process and asks no hub.
LIMITS = """
[models]
offered = [{offered}]
default = "{default}"
download = false
warm = false
[training]
train = false
"""
LONGEST = 6  # acts of a session


class Faults(logging.Handler):
    """Collects the faults of the program that a page shows as "Something went wrong here."."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.records = []

    def emit(self, record):
        self.records.append(record)

    def __enter__(self):
        logging.getLogger("explorer").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("explorer").removeHandler(self)


@contextlib.contextmanager
def stopped_jobs():
    """Stops the background jobs of the block, and waits for them: Python cannot exit while one computes in C++."""
    started, work = [], Job._work

    def noted(job):
        started.append((job, threading.current_thread()))
        work(job)

    Job._work = noted
    try:
        yield
    finally:
        Job._work = work
        for job, _ in started:
            job.stop()
        for _, thread in started:
            thread.join(120)


def sessions(pages, models):
    """A strategy of sessions: (page, model, text, acts); an act is (number of a widget, number of a value)."""
    act = st.tuples(st.integers(0, 60), st.integers(0, 40))
    return st.tuples(
        st.sampled_from(pages), st.sampled_from(models), st.sampled_from(TEXTS[2:5]), st.lists(act, max_size=LONGEST)
    )


def play(session, open_app, output):
    """Plays a session.

    Args:
        session: as `sessions` draws it. open_app: function that opens the explorer with the parameters of a link.
        said: function that takes each act in words.

    Raises: AssertionError after the first act that shows a traceback or logs a fault.
    """
    page, model, text, acts = session
    with Faults() as faults, stopped_jobs():
        output(f"open page={page} model={model} a={text!r}")
        app = open_app(page=page, model=model, a=text)
        _check(app, faults)
        for place, choice in acts:
            if not (widgets := usable(app)):
                return
            output(act_on(widgets[place % len(widgets)], choice))
            app.run()
            _check(app, faults)


def _check(app, faults):
    assert not app.exception, app.exception[0].stack_trace
    if faults.records:
        raise AssertionError(faults.records[0].getMessage()) from faults.records[0].exc_info[1]


def usable(app):
    """The widgets of a page that a visitor can use, in their order."""
    return [element for element in walk(app._tree.root) if _kind(element) and not element.disabled]


def _kind(element):
    return element.type if element.type in _ACTS and getattr(element, "disabled", None) is not None else None


def act_on(widget, choice):
    """Sets a widget to a value, or presses it. Returns: the act in words."""
    value = _ACTS[widget.type](widget, choice)
    return f"{widget.type} {widget.key or widget.label!r} <- {value!r}"


def _press(widget, choice):
    widget.click()
    return "press"


def _switch(widget, choice):
    widget.set_value(not widget.value)
    return not widget.value


def _takes_shown_options(widget):
    """The new value is an option as it is shown, as a browser sends it; `AppTest` would format it once more."""
    kind = type(widget)
    widget.__class__ = type(kind.__name__, (kind,), {"format_func": property(lambda self: str)})


def _choose(widget, choice):
    options = widget.options
    if options:
        _takes_shown_options(widget)
        widget.select_index(choice % len(options))
        return options[choice % len(options)]
    return None


def _choose_some(widget, choice):
    options = list(widget.options)
    chosen = [option for place, option in enumerate(options) if choice >> place % 6 & 1]
    widget.set_value([widget.value[0].__class__(option) for option in chosen] if widget.value else [])
    return chosen


def _slide(widget, choice):
    low, high = widget.min, widget.max
    whole = isinstance(low, int) and isinstance(high, int)
    share = low + (high - low) * (choice % 11) / 10
    value = int(share) if whole else share
    if isinstance(widget.value, (list, tuple)):
        value = (low, value)
    widget.set_value(value)
    return value


def _slide_choice(widget, choice):
    _takes_shown_options(widget)
    options = widget.options
    widget.set_value(options[choice % len(options)])
    return options[choice % len(options)]


def _count(widget, choice):
    low = widget.min if widget.min is not None else -5
    high = widget.max if widget.max is not None else 50
    value = low + (high - low) * (choice % 11) / 10
    value = int(value) if float(widget.step or 1).is_integer() and isinstance(low, int) else value
    widget.set_value(value)
    return value


def _type(widget, choice):
    text = TEXTS[choice % len(TEXTS)]
    text = text.encode("utf-8", "replace").decode()  # a browser sends no half of a surrogate pair
    widget.set_value(text)
    return text[:60]


_ACTS = {
    "button": _press,
    "checkbox": _switch,
    "toggle": _switch,
    "selectbox": _choose,
    "radio": _choose,
    "slider": _slide,
    "select_slider": _slide_choice,
    "number_input": _count,
    "text_area": _type,
    "text_input": _type,
}
