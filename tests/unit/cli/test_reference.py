"""Reference pages are complete and up to date."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tidegate.cli import error_reference
from tidegate.config.keys import keys
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.reference import reference

ROOT = Path(__file__).parents[3]


def test_every_key_is_described() -> None:
    text = reference()
    for model in (PipelineConfig, PlatformConfig):
        for key in keys(model):
            assert key.field.description, key.path
            assert f"| `{key.name}` |" in text, key.path


def test_the_error_scan_finds_codes_messages_and_hints(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text(
        "CODE = 'a.constant'\n"
        "def f(x):\n"
        "    raise FatalError('a.plain', f'lost {x}', hint='look')\n"
        "def g(x):\n"
        "    raise errors.HeldError(CODE, 'm', hint='one' if x else 'two')\n"
        "class Own(ConfigError):\n"
        "    def __init__(self):\n"
        "        super().__init__('a.own', 'x' + str(1), hint='h')\n"
    )
    found = {(r.code, r.kind, r.message, r.hint) for r in error_reference.found(tmp_path)}
    assert found == {
        ("a.plain", "FatalError", "lost …", "look"),
        ("a.constant", "HeldError", "m", "one / two"),
        ("a.own", "Own", "x…", "h"),
    }


def test_the_check_mode_tells_stale_pages_from_fresh_ones(tmp_path: Path) -> None:
    (tmp_path / "generate.py").write_bytes((ROOT / "docs/generate.py").read_bytes())
    command = [sys.executable, str(tmp_path / "generate.py")]
    environment = {"PYTHONPATH": str(ROOT / "include")}
    stale = subprocess.run([*command, "--check"], env=environment, capture_output=True, text=True)
    assert (stale.returncode, "cli.md" in stale.stderr) == (1, True)
    subprocess.run(command, env=environment, check=True, capture_output=True)
    assert subprocess.run([*command, "--check"], env=environment).returncode == 0
