"""The parts of the site that are written while it is built, from the records that declare them.

A line ``<!-- generated: NAME -->`` in a document stands for the Markdown that the function NAME of `PARTS` returns.
"""

import argparse
import re
import tomllib

import bert_tf
import bert_tf.explain
from bert_tf.analyses import catalogue as analyses
from bert_tf.cli import COMMANDS, PROG, argument_parser
from bert_tf.files import explorer_folder
from ui.samples.glossary import TERMS
from ui.shell import catalogue
from ui.shell.page import SECTIONS

_MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)

#: What an analysis takes beside its options, by its `inputs`.
_INPUTS = {
    "pair": "a text or pair",
    "file": "`--input FILE`",
    "pair or file": "a text or pair, or `--input FILE`",
    "pair with file": "a text or pair; `--input FILE`",
    "text": "a text",
    "texts": "a text or pair",
    "none": "",
}
#: What a model must have, by the names in an analysis' `needs`.
_NEEDS = {
    "mlm": "masked words",
    "nsp": "next sentence",
    "sop": "sentence order",
    "replaced": "replaced tokens",
    "classes": "classifier",
}


def has_parts(text):
    """Whether a document has a line that stands for a generated part."""
    return bool(_MARK.search(text))


def filled(text):
    """A document with its generated parts in the place of the lines that stand for them."""
    return _MARK.sub(lambda mark: PARTS[mark[1]](), text)


def pages():
    """A section for each one of the sidebar, with a row for each page."""
    parts = []
    for section, groups in SECTIONS.items():
        rows = [(one.title, one.question, one.summary) for one in catalogue.pages().values() if one.group in groups]
        parts.append(f"### {section}\n\n{_table(('page', 'question', 'what it does'), rows)}")
    return "\n\n".join(parts)


def page_settings():
    """A section for each page that has parameters of its own."""
    parts = []
    for page in catalogue.pages().values():
        if page.settings:
            names = ", ".join(f"`{page.name}.{setting}`" for setting in page.settings)
            parts.append(f"**{page.full_title}**\n: {names}\n: {_text(page.settings_help)}")
    return "\n\n".join(parts)


def analysis_list():
    """A section for each analysis: what it shows, takes and needs, its options and its source."""
    parts = []
    for analysis in analyses().values():
        takes = "; ".join(filter(None, [_INPUTS[analysis.inputs], *["the answer to explain"] * analysis.target]))
        heads = "; ".join(" or ".join(_NEEDS[name] for name in need.split("|")) for need in analysis.needs)
        facts = {"Takes": takes, "Needs a head for": heads, "Function": _function(analysis), "Source": analysis.source}
        lines = [f"- {name}: {value}" for name, value in facts.items() if value]
        options = [
            (f"`{option.name.upper() if option.positional else option.flag}`", option.help)
            for option in analysis.options
        ]
        parts.append(
            f"## {analysis.name}\n\n{_sentence(analysis.summary)}\n\n" + "\n".join(lines)
            + (f"\n\n{_table(('option', 'meaning'), options)}" if options else "")
        )  # fmt: skip
    return "\n\n".join(parts)


def commands():
    """A section for each command, with its usage and its arguments as its parser declares them."""
    (choices,) = _commands_of(argument_parser(list(COMMANDS)))
    return "\n\n".join(_command(choices[name], help_line, 2) for name, (_, help_line) in COMMANDS.items())


def limits():
    """A section for each section of ``explorer.toml``, with the values of the public file beside its own."""
    own, public = (explorer_folder() / name for name in ("explorer.toml", "explorer.public.toml"))
    there = tomllib.loads(public.read_text("utf-8"))
    parts, section, rows = [], None, []
    for line in own.read_text("utf-8").splitlines():
        if match := re.match(r"\[(\w+)\]", line):
            section, rows = match[1], []
            parts.append((section, rows))
        elif match := re.match(r"(\w+) = (.+?)\s+# (.*)", line):
            value = there.get(section, {}).get(match[1])
            rows.append([f"`{match[1]}`", f"`{match[2]}`", _toml(value), match[3]])
        elif rows and (match := re.match(r"\s+# (.*)", line)):
            rows[-1][3] += " " + match[1]
    heading = ("key", "for one person", "in public", "meaning")
    return "\n\n".join(f"## {name}\n\n{_table(heading, rows)}" for name, rows in parts)


def glossary():
    """The terms of the explorer's glossary, each with its other names and the page where it is seen."""
    parts = []
    for term in TERMS:
        others = f" Also: {', '.join(term.others)}." if term.others else ""
        page = catalogue.pages()[term.page].full_title
        parts.append(f"{_text(term.name)}\n: {_text(term.text)}{_text(others)} Page: {page}.")
    return "\n\n".join(parts)


def public_names():
    """The public names of `bert_tf`, with their docstrings."""
    return _documented(bert_tf, [name for name in bert_tf.__all__ if name != "__version__"])


def explain_names():
    """The public names of `bert_tf.explain`, with their docstrings, in a section for each of its folders."""
    folders = {}
    for name, module in sorted(bert_tf.explain._HOMES.items()):
        folders.setdefault(module.split(".")[2], []).append(name)
    return "\n\n".join(
        f"## {folder[0].upper()}{folder[1:]}\n\n{_documented(bert_tf.explain, names)}"
        for folder, names in folders.items()
    )


PARTS = {
    part.__name__: part
    for part in (
        pages,
        page_settings,
        analysis_list,
        commands,
        limits,
        glossary,
        public_names,
        explain_names,
    )
}


def _command(parser, help_line, level):
    """The section of a command, and one for each of its own commands; the analyses have a page of their own."""
    parts = [f"{'#' * level} {parser.prog.removeprefix(PROG).strip()}", _sentence(help_line)]
    parts.append(f"```text\n{parser.format_usage().removeprefix('usage: ').strip()}\n```")
    actions = [action for action in parser._actions if action.help is not argparse.SUPPRESS]
    actions = [one for one in actions if not isinstance(one, (argparse._HelpAction, argparse._SubParsersAction))]
    if actions:
        rows = [(_names(action), (action.help or "") % _values(action)) for action in actions]
        parts.append(_table(("argument", "meaning"), rows))
    if parser.prog != f"{PROG} explain":
        for choices in _commands_of(parser):
            parts += [_command(sub, sub.description or name, level + 1) for name, sub in choices.items()]
    return "\n\n".join(parts)


def _commands_of(parser):
    """For each group of a parser's own commands a dict, name -> parser."""
    return [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]


def _names(action):
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else None)
    if isinstance(value, tuple):
        value = " ".join(value)
    if not action.option_strings:
        return f"`{value or action.dest}`"
    value = None if action.nargs == 0 else value or action.dest.upper()
    return ", ".join(f"`{' '.join(filter(None, [name, value]))}`" for name in action.option_strings)


def _values(action):
    return {**vars(action), "choices": ", ".join(map(str, action.choices or ()))}


def _documented(package, names):
    """The directives that print the docstrings of a package's public names."""
    parts = []
    for name in names:
        value = getattr(package, name)
        if callable(value):
            kind, place = "class" if isinstance(value, type) else "function", f"{package.__name__}.{name}"
            options = "\n   :members:" if kind == "class" else ""
        else:  # its comment stands where it is defined
            kind, place, options = "data", f"{package._HOMES[name]}.{name}", "\n   :no-value:"
        parts.append(f"```{{eval-rst}}\n.. auto{kind}:: {place}{options}\n```")
    return "\n\n".join(parts)


def _function(analysis):
    return f"`{analysis.function.__module__}.{analysis.function.__name__}`"


def _table(heading, rows):
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(_text(cell) for cell in line)} |" for line in lines)


def _text(cell):
    """A text in which no character starts another cell, HTML or a footnote."""
    return re.sub(r"(?<!\\)([|<])", r"\\\1", str(cell)) if "`" not in str(cell) else str(cell).replace("|", "\\|")


def _toml(value):
    if value is None:
        return "the same"
    if isinstance(value, list):
        return f"{len(value)} models" if value else "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _sentence(text):
    return f"{text[0].upper()}{text[1:].rstrip('.')}."
