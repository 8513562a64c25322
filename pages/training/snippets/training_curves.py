"""The Python code for what the page training curves shows."""

from bert_tf.plots.training.curves import PANELS
from pages.training.snippets.reading import reading_run
from ui.widgets.snippet_parts import script

_CURVES = """\
print(run.step, run.total)
for name in {names}:
    steps, values = run.curve(name)
    print(name, list(zip(steps, values))[-5:])  # the last five"""


def snippet(view, run):
    """The curves of a ``Run``."""
    imports, read = reading_run(run.folder)
    names = [name for panel, _ in PANELS.values() for name, _ in panel if run.curve(name)[0]]
    return script(imports, read, _CURVES.format(names=tuple(names)))
