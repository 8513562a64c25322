"""Settings of the documentation site: python -m sphinx -W -b html docs build/site."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import generated  # noqa: E402

import bert_tf  # noqa: E402

project = "bert_tf"
author = "the authors of bert_tf"
version = release = bert_tf.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["README.md"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say types with their shapes
suppress_warnings = ["myst.header"]
html_theme = "pydata_sphinx_theme"
html_title = "bert_tf"
html_favicon = "../assets/icon.png"
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "collapse_navigation": True,
}
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = []

_FENCE = re.compile(r"^```(python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^]]+)\]\((\.\./[^)#\s]+)\)")


def _prepare(app, docname, source):
    """Fills in the generated parts, and turns links to files outside the site into downloads of these files."""
    folder = pathlib.Path(app.env.doc2path(docname)).parent
    text = generated.filled(source[0])

    def outside(link):
        path = (folder / link[2]).resolve()
        if path.is_relative_to(ROOT / "docs") or not path.is_file():
            return link[0]
        return f"[{link[1]}](<path:{link[2]}>)"

    source[0] = _LINK.sub(outside, text)


def _with_generated_parts(app, env, added, changed, removed):
    """Documents with generated parts are read at every build: what they come from is no document."""
    return [name for name in env.found_docs if generated.has_parts(pathlib.Path(env.doc2path(name)).read_text("utf-8"))]


def _as_restructured_text(app, what, name, value, options, lines):
    """A docstring's code in fences becomes a directive, and a plural like `Word`s gets the break that Sphinx needs."""
    text = re.sub(r"(`\w+`)(?=\w)", r"\1\\ ", "\n".join(lines))

    def block(fence):
        code = "\n".join("    " + line for line in fence[2].splitlines())
        return f".. code-block:: python\n\n{code}\n"

    lines[:] = _FENCE.sub(block, text).splitlines()


def setup(app):
    """Connects the functions above to the build."""
    app.connect("source-read", _prepare)
    app.connect("autodoc-process-docstring", _as_restructured_text)
    app.connect("env-get-outdated", _with_generated_parts)
