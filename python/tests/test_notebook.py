"""The notebook in docs: every cell runs, and shows a picture or a value."""

import ast
import json
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_every_cell_of_the_notebook_runs(monkeypatch):
    monkeypatch.chdir(DOCS)
    notebook = json.loads((DOCS / "experiments.ipynb").read_text())
    names, pictures = {}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        # The last line of a cell is an expression, which a notebook shows.
        module = ast.parse("".join(cell["source"]))
        last = module.body.pop()
        assert isinstance(last, ast.Expr), ast.unparse(last)
        exec(compile(module, "notebook", "exec"), names)
        shown = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
        assert repr(shown) and shown is not None
        if hasattr(shown, "_repr_svg_"):
            assert shown._repr_svg_().startswith("<svg")
            pictures += 1
    assert pictures >= 3
