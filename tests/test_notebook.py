"""The notebooks run from their first cell to their last."""

import base64
import pathlib
import re

import nbformat
import numpy as np
from nbclient import NotebookClient

import bert_tf

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[1] / "notebooks"


def ran(name):
    """The code cells of a notebook after its run, and what each printed."""
    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return cells, ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]


def test_the_training_gives_a_model_that_answers():
    _, output = ran("training.ipynb")
    for answers in output[-2:]:
        assert re.fullmatch(r"((positive|negative) [01]\.\d+\n){2}", answers)


def test_hooks_show_that_the_country_is_read_before_the_last_layer():
    _, output = ran("hooks.ipynb")
    effects = [float(number) for number in re.findall(r"([+-]\d+\.\d+) nats", output[3])]
    assert len(effects) == 6 and min(effects) < -1 and abs(effects[-1]) < 0.01


def test_the_tour_runs_and_finds_what_it_promises():
    cells, message = ran("tour.ipynb")
    assert "China" in message[2] and "ranks 1" in message[2]
    law, bunny = (float(line.split()[0]) for line in message[3].splitlines())
    assert law > bunny
    (drawn,) = (output["data"]["application/vnd.plotly.v1+json"] for output in cells[-1].outputs if "data" in output)
    layer, head = (int(number) - 1 for number in re.match(r"layer (\d+), head (\d+)", message[4]).groups())
    trace = bert_tf.load().trace("They sat on the bank of the river and watched the boats.", mask=["bank"])
    np.testing.assert_allclose(_numbers(drawn["data"][0]["z"]), trace.attentions[layer, head].ravel(), atol=1e-4)


def _numbers(packed):
    """The numbers of a figure as Plotly wrote them: lists, or the bytes of an array."""
    if "bdata" in packed:
        return np.frombuffer(base64.b64decode(packed["bdata"]), packed["dtype"])
    return np.ravel(packed)
