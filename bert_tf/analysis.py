"""What is declared of an analysis, once: its function, options, needs and source.

A module of `bert_tf.explain` that holds an analysis ends with ``ANALYSIS = Analysis(...)`` (or `ANALYSES`, several);
`bert_tf.analyses` finds them there. The command line, the exports, "Copy as Python", the documents and the tests read
these records.
"""

import inspect
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

from bert_tf.errors import InputError


@dataclass(frozen=True)
class Option:
    """One keyword argument of an analysis.

    Attributes:
        name: of the argument in Python; on the command line its underscores are dashes, and a switch that is on by
            default is "--no-" and its name.
        help: one line.
        type: int, float, str or bool; bool is a switch.
        default: the value where none is named.
        choices: the values it may have, or None for any.
        minimum, maximum: bounds of a number, both included; None for none.
        several: whether it takes any number of values, a tuple.
        metavar: what stands for the value in a usage line.
        required: whether it must be named.
        parse: a function from the text typed on the command line to the value, where `type` does not say it.
        aliases: earlier names that still work on the command line, without dashes before them.
        value_aliases: earlier words for its choices: dict from the old to the one of now.
        positional: whether the command line takes it by its place, without its name.
        model: whether it names a model or its folder, for which the function gets the loaded `Bert`.
    """

    name: str
    help: str
    type: type = str
    default: Any = None
    choices: Optional[tuple] = None
    minimum: Optional[float] = None
    maximum: Optional[float] = None
    several: bool = False
    metavar: Optional[str] = None
    required: bool = False
    parse: Optional[Callable] = None
    aliases: tuple = ()
    positional: bool = False
    model: bool = False
    value_aliases: dict = field(default_factory=dict)

    @property
    def flag(self):
        """The option on the command line."""
        switched_off = self.type is bool and self.default
        return ("--no-" if switched_off else "--") + self.name.replace("_", "-")

    @property
    def flags(self):
        """All names of the option on the command line, the one of now first."""
        return self.flag, *("--" + name.replace("_", "-") for name in self.aliases)

    def check(self, value):
        """Raise InputError unless a value is within the bounds."""
        for one in value if self.several and value is not None else (value,):
            if one is None or self.type not in (int, float):
                continue
            low = self.minimum is not None and one < self.minimum
            high = self.maximum is not None and one > self.maximum
            if low or high:
                bounds = [f"at least {self.minimum}"] * (self.minimum is not None)
                bounds += [f"at most {self.maximum}"] * (self.maximum is not None)
                raise InputError(f"{self.name} must be {' and '.join(bounds)}, not {one}.")


def parse_head(text):
    """(layer, head) of "3.11", both from 0.

    Raises: InputError: anything else.
    """
    layer, _, head = text.partition(".")
    if not (layer.isdecimal() and head.isdecimal()):
        raise InputError(f"A head is named LAYER.HEAD, both from 0, such as 3.11; not {text!r:.40}.")
    return int(layer), int(head)


def underscored(text):
    """A value whose words may be parted by dashes on the command line."""
    return text.replace("-", "_")


#: The number of predictions or rows that many analyses return.
TOP_K = Option("top_k", "number of predictions", int, 5, minimum=1, metavar="K")


@dataclass(frozen=True)
class Analysis:
    """One analysis.

    Attributes:
        name: its standard name, as the command line takes it: "logit-lens".
        function: called with the model and what `inputs` and `target` say, then the options by name; it returns a
            `bert_tf.results.Result`. One that has an argument `progress` reports its progress to it.
        summary: what it shows, one line without a full stop.
        source: where it is published.
        options: its `Option`s.
        inputs: "pair" is called with (bert, trace), "file" with (bert, rows), "pair or file" with (bert, trace, rows),
            one of them None, "pair with file" with (bert, trace, rows), rows None where no file is named, "none" with
            (bert), "text" with (bert, text), a single text that is not traced, "texts" with (bert, text A, text B or
            None, words to mask), not traced. Where `model` is False, bert is left out.
        target: whether a `Target`, the answer that is explained, comes next.
        needs: what a model must have: names of `bert_tf.models.ALL_HEADS`, "classes" (a fine-tuned classifier);
            several alternatives joined with "|".
        masks: whether words of the texts can be masked.
        model: whether a model is loaded for it.
        check: a function of the dict of options that raises InputError before the model is loaded, or None.
        check_rows: a function of the dict of options and the file's rows that does so too, or None.
        aliases: earlier names that still work.
    """

    name: str
    function: Callable
    summary: str
    source: str = ""
    options: tuple = ()
    inputs: str = "pair"
    target: bool = False
    needs: tuple = ()
    masks: bool = True
    model: bool = True
    check: Optional[Callable] = None
    check_rows: Optional[Callable] = None
    aliases: tuple = ()

    def check_options(self, options):
        """Raise InputError where an option is out of bounds or options do not go together."""
        for option in self.options:
            option.check(options.get(option.name))
        if self.check is not None:
            self.check(options)

    @property
    def reports_progress(self):
        """Whether the function takes `progress`."""
        return "progress" in inspect.signature(self.function).parameters
