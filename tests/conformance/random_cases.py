"""Random tables and random histories, as event cases: what fails can be kept as one."""

from __future__ import annotations

from dataclasses import dataclass

import yaml
from hypothesis import strategies as st

from tidegate.testing.conformance.cases import BATCH, EventCase

_BIG = "(SELECT string_agg(md5((i * {0})::text), '') FROM generate_series(1, 90) i)"

# None that a policy would change: the source's own text is what the lake must hold.
VALUES: dict[str, list[str]] = {
    "int": ["0", "-2147483648", "2147483647", "NULL"],
    "bigint": ["9223372036854775807", "-1", "NULL"],
    "numeric(10,2)": ["1.5", "-99999999.99", "NULL"],
    "numeric": ["1.500", "1e30", "'NaN'", "'-Infinity'", "NULL"],
    "double precision": ["0.1", "'NaN'", "-0.0", "1e-300", "NULL"],
    "text": ["''", "'NULL'", "E'a\\nb\\\\'", "'👩‍👩‍👧'", "NULL", *(_BIG.format(n) for n in (1, 2))],
    "boolean": ["true", "false", "NULL"],
    "date": ["'2024-02-29'", "'0001-01-01'", "'9999-12-31'", "NULL"],
    "timestamp": ["'1582-10-10 00:00'", "'1969-12-31 23:59:59.999999'", "NULL"],
    "timestamptz": ["'2024-03-31 02:30+01'", "'9999-12-31 23:59:59.999999+00'", "NULL"],
    "bytea": ["''", "'\\x00ff'", "NULL", "sha512('x') || sha512('y')"],
    "uuid": ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "NULL"],
    "jsonb": ["'null'", '\'{"b": [1.10], "a": "ü"}\'', "NULL", f"to_jsonb({_BIG.format(3)})"],
    "text[]": ["'{}'", "ARRAY['a,b', NULL, 'NULL', '']", f"ARRAY[{_BIG.format(4)}]", "NULL"],
    "numeric(6,2)[]": ["'{1.5,NULL,-0.01}'", "'{}'", "NULL"],
    "interval": ["'1 year -2 days 03:04:05.6'", "NULL"],
    "inet": ["'10.0.0.1'", "'::1/64'", "NULL"],
}
KEYS: dict[str, list[str]] = {
    "int": ["1", "2", "-3", "2147483647", "5"],
    "bigint": ["1", "-9223372036854775808", "9223372036854775807", "4"],
    "text": ["''", "'a'", "'A'", "'ä'", "'👩'", "E'q\\'\"`.'"],
    "uuid": [f"'00000000-0000-0000-0000-00000000000{n}'" for n in "189ab"],
    "date": ["'0001-01-01'", "'0999-12-31'", "'1970-01-01'", "'9999-12-31'"],
    "timestamp": ["'0001-01-01 00:00'", "'1899-12-31 23:59:59.5'", "'2024-01-01 00:00:00.000001'"],
    "timestamptz": ["'0001-01-01 00:00+00'", "'1969-12-31 23:59:59.9+00'", "'2024-01-01 00:00+02'"],
    "numeric(10,2)": ["-0.01", "0", "99999999.99", "1.5"],
    "boolean": ["true", "false"],
    "bytea": ["''", "'\\x00'", "'\\xff00'"],
    "character(4)": ["'a'", "'ab'", "''"],
}


@dataclass(frozen=True)
class Shape:
    """A table's columns and how its old rows are sent; without keys, as a whole."""

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    full: bool

    @property
    def ddl(self) -> list[str]:
        named = [f"k{i} {type_}" for i, type_ in enumerate(self.keys)]
        named += [f"c{i} {type_}" for i, type_ in enumerate(self.columns)]
        key = ", ".join(f"k{i}" for i in range(len(self.keys)))
        named += [f"PRIMARY KEY ({key})"] if key else []
        made = [f"CREATE TABLE {{t}} ({', '.join(named)})"]
        return made + (["ALTER TABLE {t} REPLICA IDENTITY FULL"] if self.full else [])


_columns = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5).map(tuple)
_keys = st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=2).map(tuple)
shapes = st.builds(Shape, _keys, _columns, st.booleans())
keyless_shapes = st.builds(Shape, st.just(()), _columns, st.just(True))


@st.composite
def changes(draw: st.DrawFn, shape: Shape) -> str:
    """One statement that never fails."""
    if not shape.keys:
        return draw(keyless_changes(shape))
    key = [draw(st.sampled_from(KEYS[type_])) for type_ in shape.keys]
    where = " AND ".join(f"k{i} = {value}" for i, value in enumerate(key))
    match draw(st.sampled_from(["insert"] * 4 + ["update"] * 4 + ["delete", "move", "truncate"])):
        case "insert":
            values = [draw(st.sampled_from(VALUES[type_])) for type_ in shape.columns]
            return f"INSERT INTO {{t}} VALUES ({', '.join(key + values)}) ON CONFLICT DO NOTHING"
        case "update":
            place = draw(st.integers(0, len(shape.columns) - 1))
            value = draw(st.sampled_from(VALUES[shape.columns[place]]))
            return f"UPDATE {{t}} SET c{place} = {value} WHERE {where}"
        case "delete":
            return f"DELETE FROM {{t}} WHERE {where}"
        case "move":
            new = [draw(st.sampled_from(KEYS[type_])) for type_ in shape.keys]
            taken = " AND ".join(f"o.k{i} = {value}" for i, value in enumerate(new))
            moved = ", ".join(f"k{i} = {value}" for i, value in enumerate(new))
            free = f"NOT EXISTS (SELECT FROM {{t}} o WHERE {taken})"
            return f"UPDATE {{t}} SET {moved} WHERE {where} AND {free}"
    return "TRUNCATE {t}"


@st.composite
def keyless_changes(draw: st.DrawFn, shape: Shape) -> str:
    """One statement that finds its rows by a value; of equal rows the first one, or all."""
    values = [draw(st.sampled_from(VALUES[type_])) for type_ in shape.columns]
    place, asked = (draw(st.integers(0, len(shape.columns) - 1)) for _ in range(2))
    wanted = draw(st.sampled_from(VALUES[shape.columns[asked]]))
    where = f"c{asked} IS NOT DISTINCT FROM {wanted}::{shape.columns[asked]}"
    if draw(st.booleans()):
        where = f"ctid = (SELECT min(ctid) FROM {{t}} WHERE {where})"
    match draw(st.sampled_from(["insert"] * 4 + ["update"] * 3 + ["delete"] * 2 + ["truncate"])):
        case "insert":
            row = ", ".join(values)
            return f"INSERT INTO {{t}} VALUES ({row})" + draw(st.sampled_from(["", f", ({row})"]))
        case "update":
            return f"UPDATE {{t}} SET c{place} = {values[place]} WHERE {where}"
        case "delete":
            return f"DELETE FROM {{t}} WHERE {where}"
    return "TRUNCATE {t}"


@st.composite
def entries(draw: st.DrawFn, shape: Shape) -> list[str]:
    """Transactions, some with a savepoint that is rolled back to, and ends of batches."""
    found: list[str] = []
    for _ in range(draw(st.integers(2, 6))):
        own = draw(st.lists(changes(shape), min_size=1, max_size=5))
        if draw(st.booleans()):
            undone = draw(changes(shape))
            own = ["BEGIN", *own, "SAVEPOINT s", undone, "ROLLBACK TO s", "COMMIT"]
        found.append("; ".join(own))
        if draw(st.integers(0, 3)) == 0:
            found.append(BATCH)
    return found


@st.composite
def histories(draw: st.DrawFn, number: int, *, keyed: bool = True) -> EventCase:
    """A table and its life."""
    shape = draw(shapes if keyed else keyless_shapes)
    return EventCase.model_validate(
        {
            "name": f"random_{number}",
            "ddl": shape.ddl,
            "before": draw(entries(shape)),
            "after": draw(entries(shape)),
            "modes": ["upsert"],
        }
    )


def as_block(case: EventCase) -> str:
    """The case as one block of a case file."""
    fields = {"name": case.name, "because": "found by test_random_histories"}
    fields |= {"ddl": list(case.ddl), "before": list(case.before), "after": list(case.after)}
    return yaml.safe_dump([fields], sort_keys=False, allow_unicode=True, width=120)
