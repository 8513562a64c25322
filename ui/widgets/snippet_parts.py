"""Parts of the scripts of "Copy as Python"."""

from bert_tf.explain.datasets.text_rows import lines_of
from bert_tf.inference.words import read_texts
from ui.samples import concepts
from ui.session import runs
from ui.shell.limits import ROOT

_READ = {"most_rows": 1000, "max_characters": 2000}  # the defaults of `read_rows`


def script(imports, *parts):
    """A whole script: the imports, then the parts, with a blank line between them.

    Args:
        imports: lines beside ``import bert_tf``, in any order; names of one module are put on one line.
        parts: text of several lines each; empty ones are left out.
    """
    body = "\n\n".join(part.strip("\n") for part in parts if part.strip())
    standard, modules = set(), {}
    for line in imports:
        if line.startswith("import "):
            standard.add(line)
        else:
            module, _, names = line.removeprefix("from ").partition(" import ")
            names, _, note = names.partition("  #")
            modules.setdefault((module, note), set()).update(names.split(", "))
    ours = ["import bert_tf"] if "bert_tf." in body else []
    for (module, note), names in sorted(modules.items()):
        line = f"from {module} import {', '.join(sorted(names, key=lambda name: (name.islower(), name)))}"
        ours.append(f"{line}  #{note}" if note else line)
    blocks = ["\n".join(lines) for lines in (sorted(standard), ours) if lines]
    return "\n\n".join([*blocks, body]) + "\n"


def about(view, shared, trace, imports, *parts):
    """A script about one trace of the page's model; ``parts`` use the variables ``bert`` and ``trace``."""
    return script(imports, f"{loading(view, shared.name)}\n{reading(trace)}", *parts)


def loading(view, name, variable="bert"):
    """The line that loads a model."""
    precision = f", precision={view.precision!r}" if view.precision != "float32" else ""
    return f"{variable} = bert_tf.load({_loadable(name)}{precision})"


def _loadable(name):
    """The argument of ``bert_tf.load`` for a model's name, as Python code.

    For a snapshot this is its folder: one that comes with the explorer is found wherever the script runs, another one
    is relative to the folder of the runs.
    """
    snapshot = runs.snapshots().get(name) if "/" in name else None
    if snapshot is None:
        return repr(name)
    if snapshot.folder.is_relative_to(ROOT):
        return f"bert_tf.explorer_folder() / {snapshot.folder.relative_to(ROOT).as_posix()!r}"
    return repr(snapshot.folder.relative_to(runs.folder()).as_posix())


def reading(trace, variable="trace", bert="bert"):
    """The line that computes a trace again: its texts, without the ends that were not read, and its masks."""
    return f"{variable} = {bert}.trace({asked(trace)})"


def asked(trace):
    """The arguments of ``Bert.trace`` for a trace; masks that the visitor typed are in the texts."""
    a, b = read_texts(trace, trace.text_a, trace.text_b or "")
    pressed = [at for at in trace.masks if trace.original_tokens[at] != trace.tokens[at]]
    texts = [repr(text) for text in ((a, b) if trace.text_b is not None else (a,))]
    return ", ".join([*texts, *([f"mask={pressed}"] if pressed else [])])


def span(positions):
    """Token positions as Python code: a range if they follow each other, else a list."""
    positions = list(positions)
    if len(positions) > 1 and positions == list(range(positions[0], positions[-1] + 1)):
        return f"range({positions[0]}, {positions[-1] + 1})"
    return str(positions)


def listed(values):
    """Values as Python code: a list with each value on its own line."""
    return "[\n" + "".join(f"    {value!r},\n" for value in values) + "]"


def sample_lines(name):
    """Python code that reads the sentences of a concept from the project's samples."""
    return f'bert_tf.sample_file("{concepts.FOLDER}/{name}.txt").read_text("utf-8").splitlines()'


def target(answer, tokenizer):
    """(The line that imports the function that makes a ``Target``, the call of it on ``bert`` and ``trace``)."""
    label = tokenizer.spelling(answer.label) if answer.head == "mlm" else answer.label
    name, arguments = {
        "mlm": ("mask_target", f"{answer.position}, {label!r}"),
        "nsp": ("next_sentence_target", f"follows={answer.id == 0}"),
        "sop": ("sentence_order_target", f"in_order={answer.id == 0}"),
        "replaced": ("replaced_target", f"{answer.position}, replaced={answer.id == 1}"),
        "task": ("class_target", "" if answer.is_regression else repr(label)),
    }[answer.head]
    return f"from bert_tf.explain import {name}", f"{name}(bert, trace{', ' * bool(arguments)}{arguments})"


def rows_of(file):
    """(Import lines, lines that make ``rows``) for a ``ChosenFile``."""
    if file.typed:
        # With the empty lines, as the masked word of a row depends on its number.
        lines = listed(lines_of(file.data))
        rows = f'rows = read_rows("\\n".join({lines}){_other_bounds(file.bounds)}).rows'
        return ["from bert_tf.explain import read_rows"], rows
    imports = ["import pathlib"] * file.from_visitor + ["from bert_tf.explain import file_kind, read_rows"]
    return imports, reading_rows(file.name, not file.from_visitor, file.first, file.second, file.bounds)


def reading_rows(name, sample, first, second, bounds):
    """The lines that read an uploaded file, or a sample by its path in the project."""
    more = {"first": first, "second": second}
    chosen = "".join(f", {key}={value!r}" for key, value in more.items() if value is not None)
    chosen += _other_bounds(bounds)
    path = f'bert_tf.sample_file("{name}")' if sample else path_of(name)
    comment = "comes with the explorer" if sample else "your file"
    return f"file = {path}  # {comment}\nrows = read_rows(file.read_bytes(), file_kind(file.name){chosen}).rows"


def _other_bounds(bounds):
    """The bounds that are not the defaults of `read_rows`, as arguments in Python code."""
    return "".join(f", {key}={value!r}" for key, value in bounds.items() if value != _READ[key])


def path_of(name):
    """Python code for the path of a visitor's file: its name, which the user replaces with the path."""
    return f"pathlib.Path({name!r})"


def loading_two(view, names):
    """The lines that load two models as ``bert`` and ``second``; one model for both is loaded once."""
    first, second = names
    other = "second = bert" if first == second else loading(view, second, "second")
    return f"{loading(view, first)}\n{other}"


def reading_two(view, names, traces):
    """The lines that load two models as ``bert`` and ``second``, and compute their traces ``trace`` and ``other``."""
    return f"{loading_two(view, names)}\n{reading(traces[0])}\n{reading(traces[1], 'other', 'second')}"
