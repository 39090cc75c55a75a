"""A table's columns and key as the log will send them, read from the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.connectors.postgres.connection import Connection
from tidegate.connectors.postgres.type_catalog import TypeCatalog
from tidegate.errors import ConfigError
from tidegate.names import TableId
from tidegate.schema.table import Column, TableSchema

_GENERATED_SINCE: Final = 180000  # publish_generated_columns
GENERATED: Final = "generated at the source, which does not send it"
NOT_LISTED: Final = "the publication's column list leaves it out"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A live column."""

    number: int
    name: str
    type: int
    typmod: int
    not_null: bool
    dimensions: int
    generated: str  # '' | s | v
    printed: str  # format_type
    since: int = 0  # transaction that last declared it


@dataclass(frozen=True, slots=True)
class Relation:
    """A live table: its columns in attribute order, and what identifies its rows."""

    oid: int
    table: TableId
    kind: str  # relkind
    identity: str  # relreplident: d i f n
    attributes: tuple[Attribute, ...]
    primary_key: tuple[str, ...]  # in key order, without INCLUDE columns; empty if unusable
    identity_key: tuple[str, ...]  # what the log sends for the old row, in index order

    @property
    def key(self) -> tuple[str, ...]:
        """The merge key: the identity the log sends; under FULL the primary key. Its order is the
        primary key's where both have the same columns: it is the same key then."""
        if self.identity == "f" or set(self.identity_key) == set(self.primary_key):
            return self.primary_key
        return self.identity_key


_RELATION_SQL: Final = """
SELECT c.oid, c.relkind::text, c.relreplident::text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""

_NUMBERS_SQL: Final = """
SELECT n.nspname, c.relname, c.oid
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN unnest(%s::text[], %s::text[]) AS w(schema, name)
  ON w.schema = n.nspname AND w.name = c.relname
"""

_ATTRIBUTES_SQL: Final = """
SELECT attnum, attname, atttypid, atttypmod, attnotnull, attndims::int, attgenerated::text,
       pg_catalog.format_type(atttypid, atttypmod), xmin::text::bigint
FROM pg_catalog.pg_attribute
WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""

_INDEXES_SQL: Final = """
SELECT i.indisprimary AND i.indimmediate AND i.indisvalid, i.indisreplident,
       (SELECT pg_catalog.array_agg(a.attname::text ORDER BY k.place)
        FROM pg_catalog.unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS k(number, place)
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number)
FROM pg_catalog.pg_index i
WHERE i.indrelid = %s AND (i.indisprimary OR i.indisreplident)
"""

_PUBLISHED_SQL: Final = """
SELECT t.attnames::text[]
FROM pg_catalog.pg_publication_tables t
WHERE t.pubname = %s AND t.schemaname = %s AND t.tablename = %s
"""

_LISTED_SQL: Final = """
SELECT count(*) FROM pg_catalog.pg_publication_rel WHERE prrelid = %s AND prattrs IS NOT NULL
"""
_LISTS_SINCE: Final = 150000  # column lists of publications


def relation(connection: Connection, table: TableId) -> Relation | None:
    """The table as it is now, None if there is none."""
    row = connection.execute(_RELATION_SQL, (table.schema, table.name)).fetchone()
    return None if row is None else relation_by_oid(connection, table, *row)


def numbers(connection: Connection, tables: Sequence[TableId]) -> dict[TableId, int]:
    """The numbers of those tables that exist now."""
    names = ([t.schema for t in tables], [t.name for t in tables])
    rows = connection.execute(_NUMBERS_SQL, names).fetchall()
    return {TableId(schema, name): oid for schema, name, oid in rows}


def relation_by_oid(
    connection: Connection, table: TableId, oid: int, kind: str, identity: str
) -> Relation:
    attributes = connection.execute(_ATTRIBUTES_SQL, (oid,)).fetchall()
    primary: tuple[str, ...] = ()
    replica: tuple[str, ...] = ()
    for is_primary, is_identity, columns in connection.execute(_INDEXES_SQL, (oid,)).fetchall():
        if is_primary:
            primary = tuple(columns)
        if is_identity:
            replica = tuple(columns)
    identity_key = {"d": primary, "i": replica}.get(identity, ())
    return Relation(
        oid, table, kind, identity, tuple(Attribute(*a) for a in attributes), primary, identity_key
    )


def discover(connection: Connection, table: TableId, publication: str | None) -> TableSchema:
    """The columns ``publication`` sends for ``table``; without it, those ours would send."""
    found = relation(connection, table)
    if found is None:
        raise ConfigError(
            "source.table_missing",
            f"table {table} does not exist",
            hint="check source.tables; `tidegate validate` lists what is wrong",
        )
    return schema_of(found, published(connection, found, publication), TypeCatalog(connection))


def published(connection: Connection, found: Relation, publication: str | None) -> frozenset[str]:
    """Names of the columns that are sent: never generated ones unless a publication says so."""
    plain = frozenset(a.name for a in found.attributes if not a.generated)
    if publication is None or connection.info.server_version < 150000:
        return plain
    where = (publication, found.table.schema, found.table.name)
    row = connection.execute(_PUBLISHED_SQL, where).fetchone()
    if row is None or row[0] is None:
        return plain
    names = frozenset(row[0])
    return names if connection.info.server_version >= _GENERATED_SINCE else names & plain


def left_out(connection: Connection, found: Relation, publication: str | None) -> dict[str, str]:
    """Columns that are not sent, and why."""
    sent = published(connection, found, publication)
    return {
        a.name: GENERATED if a.generated else NOT_LISTED
        for a in found.attributes
        if a.name not in sent
    }


def has_column_list(connection: Connection, oid: int) -> bool:
    """Whether any publication sends only some columns of the table."""
    if connection.info.server_version < _LISTS_SINCE:
        return False
    row = connection.execute(_LISTED_SQL, (oid,)).fetchone()
    return row is not None and row[0] > 0


def schema_of(found: Relation, sent: frozenset[str], types: TypeCatalog) -> TableSchema:
    """The table's schema in our terms."""
    attributes = [a for a in found.attributes if a.name in sent]
    types.load(a.type for a in attributes)
    places = {name: place for place, name in enumerate(found.key)}
    complete = places.keys() <= {a.name for a in attributes}
    return TableSchema(
        found.table,
        tuple(_column(a, types, places.get(a.name) if complete else None) for a in attributes),
        found.oid,
    )


def _column(attribute: Attribute, types: TypeCatalog, key: int | None) -> Column:
    mapped = types.map(attribute.type, attribute.typmod, attribute.dimensions)
    return Column(
        name=attribute.name,
        source_type=attribute.printed,
        type=mapped.type,
        rule=mapped.rule,
        policy=mapped.policy,
        nullable=not attribute.not_null,
        key=key,
        number=attribute.number,
    )
