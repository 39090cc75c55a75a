"""``tidegate`` again and again in one process: a JSON line with the words, one with the answer."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

from tidegate.cli.main import main


def run(words: list[str]) -> tuple[int, str]:
    """What a shell would see; the descriptors, because a JVM writes to those."""
    with tempfile.TemporaryFile("w+b") as said:
        kept = os.dup(1), os.dup(2)
        for number in (1, 2):
            os.dup2(said.fileno(), number)
        try:
            main(words)
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, copy in zip((1, 2), kept, strict=True):
                os.dup2(copy, number)
                os.close(copy)
        said.seek(0)
        return code, said.read().decode(errors="replace")


def serve() -> None:
    base = dict(os.environ)
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        os.environ.clear()
        os.environ.update(base | order["variables"])
        os.chdir(order["folder"])
        code, said = run(order["words"])
        print(json.dumps({"code": code, "said": said}), flush=True)


if __name__ == "__main__":
    serve()
