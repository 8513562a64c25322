"""The notebook runs from its first cell to its last."""

import pathlib

import nbformat
from nbclient import NotebookClient

NOTEBOOK = pathlib.Path(__file__).resolve().parents[1] / "notebooks" / "tour.ipynb"


def test_the_tour_runs_and_finds_what_it_promises():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    said = ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]
    assert "China" in said[1] and "ranks 1" in said[1]
    law, bunny = (float(line.split()[0]) for line in said[2].splitlines())
    assert law > bunny
    assert any("application/vnd.plotly.v1+json" in output.get("data", {}) for output in cells[-1].outputs)
