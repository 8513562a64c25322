"""The notebook runs from its first cell to its last."""

import base64
import pathlib
import re

import nbformat
import numpy as np
from nbclient import NotebookClient

import bert_tf

NOTEBOOK = pathlib.Path(__file__).resolve().parents[1] / "notebooks" / "tour.ipynb"


def test_the_tour_runs_and_finds_what_it_promises():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    said = ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]
    assert "China" in said[1] and "ranks 1" in said[1]
    law, bunny = (float(line.split()[0]) for line in said[2].splitlines())
    assert law > bunny
    (drawn,) = (output["data"]["application/vnd.plotly.v1+json"] for output in cells[-1].outputs if "data" in output)
    layer, head = (int(number) - 1 for number in re.match(r"layer (\d+), head (\d+)", said[3]).groups())
    trace = bert_tf.load().trace("They sat on the bank of the river and watched the boats.", mask=["bank"])
    np.testing.assert_allclose(_numbers(drawn["data"][0]["z"]), trace.attentions[layer, head].ravel(), atol=1e-4)


def _numbers(packed):
    """The numbers of a figure as Plotly wrote them: lists, or the bytes of an array."""
    if "bdata" in packed:
        return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
    return np.ravel(packed)
