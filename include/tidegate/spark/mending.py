"""From differences to a mended table: build the branch, compare it again, publish it.

The comparison on the branch is the audit: every row of the selection, not counts alone. Where it
still finds a difference, or the user's suite says no, nothing is published.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.errors import DataError
from tidegate.spark.expectations import run_suite
from tidegate.spark.repair import Repair
from tidegate.spark.selection import Selection
from tidegate.spark.verify import Comparison, compare
from tidegate.spark.verify_rows import lake_rows


def mend(
    repair: Repair, selection: Selection, found: Comparison, check: Callable[[], None]
) -> tuple[Comparison, int]:
    """Read the differing keys of ``found`` again; the comparison that is left, and ``main``.

    ``check`` raises if the lease is gone: a stale writer cannot publish (I4).
    """
    repair.check()
    assert found.keys is not None
    snapshot = repair.build(found.keys)
    sides = repair.sides
    branch = selection.lake(sides, snapshot)
    bucket = selection.bucket(sides.schema)
    left = compare(lambda: selection.source(sides), branch, sides.schema, bucket, limit=0)
    left.release()
    if not left.equal:
        raise _refused(repair, f"{left.count} differences are left on the branch")
    table = lake_rows(sides.session, repair.target, sides.schema, snapshot)  # whole, as in a sweep
    failed = [v for v in run_suite(table, repair.target.options.expectations) if not v.passed]
    if failed:
        raise _refused(repair, "; ".join(f"{v.name}: {v.detail}" for v in failed))
    check()
    return left, repair.publish()


def _refused(repair: Repair, why: str) -> DataError:
    return DataError(
        "repair.audit_failed",
        f"{repair.target.source}: the mended branch {repair.branch} was not published: {why}",
        hint="sweep the whole table, or mend what the expectation complains about at the source",
    )
