"""The SQL of a merge. Key bounds are parameters, so that its text holds no value (I9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tidegate.names import quote_spark
from tidegate.spark.bounds import Bound
from tidegate.spark.typed import LakeShape

SOURCE_VIEW: Final = "tidegate_batch"


def upsert_sql(ref: str, shape: LakeShape, bounds: Sequence[Bound]) -> str:
    """Rows that are gone are deleted, all others put."""
    return (
        _head(ref, shape, bounds)
        + "\nWHEN MATCHED AND s.gone THEN DELETE"
        + f"\nWHEN MATCHED THEN UPDATE SET {_assign(_own(shape))}"
        + f"\nWHEN NOT MATCHED AND NOT s.gone THEN INSERT {_insert(_own(shape))}"
    )


def soft_delete_sql(ref: str, shape: LakeShape, bounds: Sequence[Bound]) -> str:
    """Rows that are gone stay, flagged; a row that comes again loses the flag."""
    flags = [("_cdc_deleted", "s.gone"), ("_cdc_position", "s.at")]
    everything = [*_own(shape), *flags]
    return (
        _head(ref, shape, bounds)
        + f"\nWHEN MATCHED AND s.gone AND NOT s.imaged THEN UPDATE SET {_assign(flags)}"
        + f"\nWHEN MATCHED THEN UPDATE SET {_assign(everything)}"
        + f"\nWHEN NOT MATCHED AND s.imaged THEN INSERT {_insert(everything)}"
    )


def history_sql(ref: str, shape: LakeShape, bounds: Sequence[Bound]) -> str:
    """Close the current version of every key in the batch, add the batch's versions."""
    ends = [
        ("_cdc_valid_to", "s.to_ts"),
        ("_cdc_to_position", "s.to_at"),
        ("_cdc_current", "s.current"),
        ("_cdc_deleted", "s.ended"),
    ]
    begins = [("_cdc_valid_from", "s.from_ts"), ("_cdc_from_position", "s.from_at")]
    version = [*_own(shape), *begins, *ends]
    return (
        _head(ref, shape, bounds, "t._cdc_current AND s.close")
        + f"\nWHEN MATCHED THEN UPDATE SET {_assign(ends)}"
        + f"\nWHEN NOT MATCHED AND NOT s.close THEN INSERT {_insert(version)}"
    )


def close_all_sql(ref: str) -> str:
    """A truncate in history mode; parameters ``at`` and ``micros``."""
    return (
        f"UPDATE {ref} SET _cdc_valid_to = timestamp_micros(:micros), _cdc_to_position = :at,"
        " _cdc_current = false, _cdc_deleted = true WHERE _cdc_current"
    )


def flag_all_sql(ref: str) -> str:
    """A truncate with soft delete; parameter ``at``."""
    return f"UPDATE {ref} SET _cdc_deleted = true, _cdc_position = :at WHERE NOT _cdc_deleted"


def parameters(bounds: Sequence[Bound]) -> dict[str, Any]:
    """The values of the bounds in a statement's text."""
    return {
        f"{name}{bound.key}_{place}": value
        for bound in bounds
        for place, pair in enumerate(bound.ranges)
        for name, value in zip(("low", "high"), pair, strict=True)
    }


def _head(ref: str, shape: LakeShape, bounds: Sequence[Bound], extra: str | None = None) -> str:
    on = [f"t.{quote_spark(shape.names[place])} = s.k{i}" for i, place in enumerate(shape.key)]
    # The join alone would read every file: bounds let Iceberg skip those without such keys.
    on += [inside_sql(shape, bound) for bound in bounds]
    if extra:
        on.append(extra)
    return f"MERGE INTO {ref} t USING {SOURCE_VIEW} s ON {' AND '.join(on)}"


def inside_sql(shape: LakeShape, bound: Bound) -> str:
    """Whether a row of ``t`` lies in the ranges of a bound (:func:`parameters`)."""
    column = f"t.{quote_spark(shape.names[shape.key[bound.key]])}"
    spans = []
    for place in range(len(bound.ranges)):
        low, high = (bound.mark.format(f":{name}{bound.key}_{place}") for name in ("low", "high"))
        spans.append(f"({column} >= {low} AND {column} <= {high})")
    return f"({' OR '.join(spans)})"


def _own(shape: LakeShape) -> list[tuple[str, str]]:
    return [(name, f"s.v{i}") for i, name in enumerate(shape.names)]


def _assign(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"t.{quote_spark(name)} = {value}" for name, value in pairs)


def _insert(pairs: Sequence[tuple[str, str]]) -> str:
    names = ", ".join(quote_spark(name) for name, _ in pairs)
    return f"({names}) VALUES ({', '.join(value for _, value in pairs)})"
