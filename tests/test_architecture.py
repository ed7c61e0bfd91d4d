"""The flows of docs/architecture.md are those that a tracer sees."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# In a process of its own: a tracer would take the place of coverage, and other tests import more.
CHECK = """
import sys; sys.path.insert(0, "tools")
import trace_flows as tool
page, traced = tool.read_page(tool.PAGE.read_text("utf-8")), tool.trace_all()
for name in {**page, **traced}:
    differ = sorted({*page.get(name, ())} ^ {*traced.get(name, ())})
    if differ:
        print(name, *differ)
"""


def test_the_flows_on_the_page_are_those_of_the_tracer():
    process = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not process.stdout, f"run: python tools/trace_flows.py\n{process.stdout}"
