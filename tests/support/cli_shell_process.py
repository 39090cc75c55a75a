"""``tidegate`` again and again in one process: a JSON line with the words, one with the answer."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import IO, Any

from tidegate.cli.main import main


def run(words: list[str]) -> dict[str, Any]:
    """What a shell would see; the descriptors, because a JVM writes to those."""
    with tempfile.TemporaryFile("w+b") as out, tempfile.TemporaryFile("w+b") as err:
        kept = os.dup(1), os.dup(2)
        for number, file in ((1, out), (2, err)):
            os.dup2(file.fileno(), number)
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
        return {"code": code, "out": _said(out), "err": _said(err)}


def _said(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def serve() -> None:
    base = dict(os.environ)
    for line in sys.stdin:
        order: dict[str, Any] = json.loads(line)
        os.environ.clear()
        os.environ.update(base | order["variables"])
        os.chdir(order["folder"])
        print(json.dumps(run(order["words"])), flush=True)


if __name__ == "__main__":
    serve()
