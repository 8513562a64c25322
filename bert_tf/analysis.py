"""The record that declares an analysis: its function, options, model requirements and source.

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
        name: str. The name of the argument in Python. The command line writes dashes for its underscores, and "--no-"
            before the name of a switch that is on by default.
        help: str. One line.
        type: int, float, str or bool; bool is a switch.
        default: the default value.
        choices: tuple or None. The allowed values; None for any.
        minimum, maximum: number or None. Bounds of a number, both included; None for no bound.
        several: bool. Whether the option takes any number of values, as a tuple.
        metavar: str or None. The placeholder for the value in a usage line.
        required: bool. Whether the user must name it.
        parse: function or None. It turns the text typed on the command line into the value, where `type` cannot.
        aliases: tuple of str. Earlier names that still work on the command line, without leading dashes.
        positional: bool. Whether the command line takes it by position, without its name.
        model: bool. Whether its value is the name or folder of a model; the function gets the loaded `Bert`.
        default_model: function or None. It takes the `Bert` that is analysed and returns the name or folder of the
            model that the option means where it names none; it raises InputError if there is none.
        value_aliases: dict str -> str. Earlier words for its choices -> the present ones.

    Example:
        option = Option("top_k", "number of predictions", int, 5, minimum=1, metavar="K")
        option.flag  # "--top-k"
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
    default_model: Optional[Callable] = None
    value_aliases: dict = field(default_factory=dict)

    @property
    def flag(self) -> str:
        """The option's name on the command line."""
        switched_off = self.type is bool and self.default
        return ("--no-" if switched_off else "--") + self.name.replace("_", "-")

    @property
    def flags(self) -> tuple[str, ...]:
        """All names of the option on the command line, the present one first."""
        return self.flag, *("--" + name.replace("_", "-") for name in self.aliases)

    def models(self, value: Any, bert: Any) -> Any:
        """The name or names of the models that a value means for an analysis of a `Bert`; None if it means no model."""
        if not self.model:
            return None
        return self.default_model(bert) if value is None and self.default_model is not None else value

    def check(self, value: Any) -> None:
        """Raise InputError unless a value is within the bounds."""
        for number in value if self.several and value is not None else (value,):
            if number is None or self.type not in (int, float):
                continue
            is_low = self.minimum is not None and not number >= self.minimum  # NaN is neither below nor above
            is_high = self.maximum is not None and not number <= self.maximum
            if is_low or is_high:
                bounds = [f"at least {self.minimum}"] * (self.minimum is not None)
                bounds += [f"at most {self.maximum}"] * (self.maximum is not None)
                raise InputError(f"{self.name} must be {' and '.join(bounds)}, not {number}.")


def parse_head(text: str) -> tuple[int, int]:
    """(layer, head) of a text such as "3.11", both from 0.

    Raises:
        InputError: the text is not two numbers with a dot between them.
    """
    layer, _, head = text.partition(".")
    if not (layer.isdecimal() and head.isdecimal()):
        raise InputError(f"A head is named LAYER.HEAD, both from 0, such as 3.11; not {text!r:.40}.")
    return int(layer), int(head)


def underscored(text: str) -> str:
    """A text with underscores for its dashes: the command line accepts both between the words of a value."""
    return text.replace("-", "_")


#: What an analysis of one answer needs: any head that gives an answer.
ANY_ANSWER = ("mlm|nsp|sop|replaced|classes",)
#: The number of predictions or rows that many analyses return.
TOP_K = Option("top_k", "number of predictions", int, 5, minimum=1, metavar="K")


@dataclass(frozen=True)
class Analysis:
    """One analysis.

    Attributes:
        name: str. Its standard name, as the command line takes it: "logit-lens".
        function: callable. Its positional arguments follow from `model`, `inputs` and `target`; the options follow by
            name. It returns a `bert_tf.results.Result`. A function with an argument `progress` reports its progress.
        summary: str. What the analysis shows, one line without a full stop.
        source: str. The publication.
        options: tuple of `Option`.
        inputs: str. The positional arguments of the function; without `bert` where `model` is False:
            "pair": (bert, trace);
            "file": (bert, rows);
            "pair or file": (bert, trace, rows), one of the last two None;
            "pair with file": (bert, trace, rows), rows None without a file;
            "none": (bert);
            "text": (bert, text), one text without a trace;
            "texts": (bert, text A, text B or None, words to mask), without a trace.
        target: bool. Whether the next positional argument is a `Target`, the answer to explain.
        needs: tuple of str. What the model must have: names of `bert_tf.model_outputs.ALL_HEADS`, "classes" (a
            fine-tuned classifier); alternatives are joined with "|". `bert_tf.analyses.check_model` checks it.
        attentions: bool. Whether the function reads the attention maps of the trace.
        masks: bool. Whether words of the texts can be masked.
        model: bool. Whether a model is loaded for it.
        check: function or None. It takes the dict of options and raises InputError before the model is loaded.
        check_rows: function or None. It takes the dict of options and the file's rows and does the same.
        aliases: tuple of str. Earlier names that still work.
    """

    name: str
    function: Callable
    summary: str
    source: str = ""
    options: tuple = ()
    inputs: str = "pair"
    target: bool = False
    needs: tuple = ()
    attentions: bool = False
    masks: bool = True
    model: bool = True
    check: Optional[Callable] = None
    check_rows: Optional[Callable] = None
    aliases: tuple = ()

    def option(self, name: str) -> Option:
        """The option of this name.

        Raises: KeyError if there is none.
        """
        return {option.name: option for option in self.options}[name]

    def check_options(self, options: dict[str, Any]) -> None:
        """Raise InputError where an option is out of bounds or options contradict each other."""
        for option in self.options:
            option.check(options.get(option.name))
        if self.check is not None:
            self.check(options)

    @property
    def reports_progress(self) -> bool:
        """Whether the function takes `progress`."""
        return "progress" in inspect.signature(self.function).parameters
