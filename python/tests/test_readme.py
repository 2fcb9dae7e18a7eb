"""The README's examples print the output that it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("code, shown", EXAMPLES, ids=["experiments", "local", "on Spark"])
def test_an_example_prints_what_is_shown(code, shown):
    # As in an activated environment: Spark's workers use the Python in PATH.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert run.stdout == shown, run.stderr
