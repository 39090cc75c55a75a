"""Write docs/reference from the code (pages() says which); --check fails if they differ.

    python docs/generate.py          # make docs
    python docs/generate.py --check  # make lint
"""

from __future__ import annotations

import sys
from pathlib import Path

from tidegate.api import reference as api
from tidegate.cli import error_reference, reference
from tidegate.cli.main import app
from tidegate.config import reference as configuration
from tidegate.connectors.mysql import type_reference as mysql_types
from tidegate.connectors.postgres import type_reference

TARGET = Path(__file__).parent / "reference"


def pages() -> dict[str, str]:
    return {
        "api.md": api.reference(),
        "configuration.md": configuration.reference(),
        "cli.md": reference.reference(app),
        "errors.md": error_reference.reference(),
        "types.md": type_reference.reference(),
        "types-mysql.md": mysql_types.reference(),
    }


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for name, text in pages().items():
        path = TARGET / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            TARGET.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    if check and stale:
        print(f"out of date: {', '.join(stale)}; run `make docs`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
