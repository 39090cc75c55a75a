"""Files that are small and mean harm, or are only wrong, are refused at once, with their line.

In a child of its own: where a bound is missing, it would take the machine's memory.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tidegate.config.loader import load_pipeline

ROOT = Path(__file__).parents[3]
SECONDS = 60
"""All of them take some three; one without its bound takes minutes."""
MEMORY = 1 << 30
LOAD = """
import json, sys
from tidegate.config.loader import load_pipeline
from tidegate.config.problems import ConfigProblems
for file in sys.argv[1:]:
    try:
        load_pipeline(file, resolve_secrets=False)
        told = None
    except ConfigProblems as refused:
        told = [[p.line, p.path, p.message] for p in refused.problems], len(str(refused))
    print(json.dumps(told), flush=True)
"""
HEAD = "pipeline_id: demo\nsource: {database: shop, password: x, tables: [public.a]}\n"


def bomb(first: str, line: str) -> str:
    """Each line repeats the one before it nine times."""
    lines = [f"a0: &a0 {first}"]
    for number in range(1, 12):
        below = ", ".join([f"*a{number - 1}"] * 9)
        keyed = ", ".join(f"k{index}: *a{number - 1}" for index in range(9))
        lines.append(f"a{number}: &a{number} " + line.format(below=below, keyed=keyed))
    return "\n".join(lines)


VALUES, DEEP, LONG = "more than 100,000 values", "nested deeper than", "longer than 100 characters"
NO_VALUE = "neither a number, a date nor true or false"
CASES = {
    "a list of aliases": (bomb("[x]", "[{below}]"), VALUES),
    "mappings of aliases": (bomb("[x]", "{{{keyed}}}"), VALUES),
    "merged aliases": (bomb("{k: v}", "{{<<: [{below}], own: v}}"), VALUES),
    "brackets": ("a: " + "[" * 100_000, DEEP),
    "braces": ("a: " + "{a: " * 30_000, DEEP),
    "indents": ("".join(" " * n + "a:\n" for n in range(300)), DEEP),
    "dashes": ("a:\n  " + "- " * 50_000, DEEP),
    "question marks": ("? " * 50_000, DEEP),
    "a chain of aliases": (
        "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 2_000)),
        DEEP,
    ),
    "a chain of merges": (
        "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: *a{n - 1}}}\n" for n in range(1, 2_000)),
        DEEP,
    ),
    "a mapping merged into itself": ("a: &a {<<: *a}\n", "merged into itself"),
    "something else merged": ("a: {<<: [1]}\n", "<< takes a mapping"),
    "a huge number": (HEAD + "x: " + "1" * 100_000, LONG),
    "a number to the base of sixty": (HEAD + "x: 1" + ":1" * 50_000, LONG),
    "a thirteenth month": (HEAD + "x: 2026-13-01", NO_VALUE),
    "no time": (HEAD + "x: !!timestamp soon", NO_VALUE),
    "no truth": (HEAD + "x: !!bool maybe", NO_VALUE),
    "no number": (HEAD + 'x: !!int ""', NO_VALUE),
    "a file of rubbish": (HEAD + "".join(f"k{n}: 1\n" for n in range(5_000)), "unknown key"),
    "sinks without end": (HEAD + f"sinks: [{'{},' * 15_000}]", "a required key is missing"),
    "one table very often": (HEAD.replace("public.a", "a.b, " * 20_000), "more than once: a.b"),
    "a very long name": (HEAD.replace("public.a", "a." * 50_000), "…"),
    "variables without end": (f"{HEAD}owner: '{'${A:-' * 20_000}'", "not a variable"),
    "a very large file": ("#" * 1_000_001, "the file is larger than 1,000,000 bytes"),
    "a control character": ("a: \x01", "not readable as YAML text"),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("bounds")
    files = []
    for number, (text, _) in enumerate(CASES.values()):
        files.append(folder / f"{number}.yaml")
        files[-1].write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *map(str, files)],
        env={"PYTHONPATH": str(ROOT / "include")},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    return dict(zip(CASES, map(json.loads, done.stdout.splitlines()), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_what_is_too_much_is_refused_with_its_line(refusals: dict[str, Any], case: str) -> None:
    problems, size = refusals[case]
    assert CASES[case][1] in problems[0][2]
    assert problems[0][0] is not None or case in ("a very large file", "a control character")
    assert len(problems) <= 100 and size < 50_000, "what is said stays small"


def test_ordinary_anchors_and_large_pipelines_stay_possible(tmp_path: Path) -> None:
    names = [f"public.t{number}" for number in range(5_000)]
    overrides = "".join(f"        {name}: {{<<: *mode, sort_by: [id]}}\n" for name in names[1:])
    file = tmp_path / "large.yaml"
    file.write_text(
        "pipeline_id: demo\n"
        f"source: {{database: shop, password: x, tables: [{', '.join(names)}]}}\n"
        "sinks:\n  - sink_id: lake\n    sink_type: iceberg\n    iceberg:\n      tables:\n"
        f"        {names[0]}: &mode {{write_mode: history, soft_delete: false}}\n{overrides}"
    )
    last = load_pipeline(file).targets[-1]
    assert (last.write_mode.value, last.sort_by) == ("history", ("id",))
