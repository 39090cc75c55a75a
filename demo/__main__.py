"""``python -m demo run|up|down``: behind ``make demo``, ``make up`` and ``make down``."""

from __future__ import annotations

import argparse
import signal
import sys

from demo import up
from demo.run import run
from demo.shops import KINDS
from tidegate.errors import TidegateError, exit_code


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    demo = verbs.add_parser("run", help="the whole story, from an empty database to a verdict")
    demo.add_argument("--keep", action="store_true", help="leave the stack running afterwards")
    demo.add_argument("--source", choices=KINDS, default=KINDS[0], help="the shop's database")
    start = verbs.add_parser("up", help="start the stack and leave it running")
    start.add_argument("--writer", action="store_true", help="with a source that keeps changing")
    start.add_argument("--source", choices=KINDS, help="as the last demo had it, unless told")
    verbs.add_parser("down", help="stop what was started")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stop the stack, as Ctrl-C does
    try:
        if arguments.verb == "run":
            return run(keep=arguments.keep, source=arguments.source)
        if arguments.verb == "up":
            return up.up(writer=arguments.writer, source=arguments.source)
        return up.down()
    except TidegateError as error:
        print(f"\n{error.message} [{error.code}]\n  → {error.hint}", file=sys.stderr)
        return int(exit_code(error))
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
