"""Changes that send no rows, found by comparing two looks at the catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tidegate.config.schema_changes import SchemaChanges
from tidegate.envelope.position import boundary
from tidegate.lake.facts_ledger import FactsEntry
from tidegate.lake.unsent import Initial, initial, rewritten, settled_name, told, unsent
from tidegate.schema.table import Column
from tidegate.schema.table_facts import Leaf, TableFacts
from tidegate.schema.types import STRING, TextRule

HOLD = SchemaChanges()
LEAF = Leaf("public.t", "100")
PLAIN = TableFacts(7, columns={"1": "id"}, types={"1": "integer"}, leaves={"7": LEAF})
W = Column("w", "text", STRING, TextRule.PLAIN, number=2)
PARTED = replace(
    PLAIN,
    labels={"1": "mood.good", "2": "mood.bad"},
    partitioned=True,
    leaves={"8": Leaf("public.p8", "8"), "9": Leaf("public.p9", "9")},
)


def parts(**leaf: Any) -> TableFacts:
    """PARTED with another second partition."""
    nine = replace(PARTED.leaves["9"], **leaf)
    return replace(PARTED, leaves={**PARTED.leaves, "9": nine})


def at(place: int, facts: TableFacts, since: int | None = None) -> FactsEntry:
    return FactsEntry(boundary("e", place if since is None else since), boundary("e", place), facts)


def wider(**leaf: Any) -> TableFacts:
    """PLAIN with a second column."""
    return replace(
        PLAIN,
        columns={"1": "id", "2": "w"},
        types={"1": "integer", "2": "text"},
        defaults=("2",),
        leaves={"7": replace(LEAF, **leaf)},
    )


@pytest.mark.parametrize(
    ("looks", "found"),
    [
        ([PLAIN, wider()], None),
        ([PLAIN, wider(missing={"2": "x"})], Initial("x")),
        ([PLAIN, wider(missing={"2": "x"}), wider(file="200")], Initial("x")),  # vacuumed later
        ([PLAIN, wider(file="200", missing={"2": "x"})], Initial("x")),
        ([PLAIN, wider(file="200")], Initial(None)),  # a volatile default, or VACUUM FULL
        ([PLAIN, wider(missing={"2": None})], Initial(None)),
        ([wider(missing={"2": "x"})], Initial("x")),
        ([wider(file="200")], None),  # nothing is known of the time before
        ([replace(PLAIN, relation=6), wider(file="200")], None),  # another table
        ([PLAIN, replace(wider(file="200"), defaults=())], None),  # rewritten for another reason
        ([], None),
    ],
)
def test_what_older_rows_have_in_a_new_column(
    looks: list[TableFacts], found: Initial | None
) -> None:
    entries = [at(place, facts) for place, facts in enumerate(looks)]
    assert initial(entries, 7, W) == found
    assert initial(entries, 7, replace(W, number=None)) == found  # by name
    assert initial(entries, None, W) is None


def test_partitions_that_disagree_about_a_default_are_not_believed() -> None:
    columns = {"1": "id", "2": "w"}
    leaves = {n: replace(leaf, missing={"2": n}) for n, leaf in PARTED.leaves.items()}
    entries = [at(1, PARTED), at(2, replace(PARTED, columns=columns, leaves=leaves))]
    assert initial(entries, 7, W) == Initial(None)


def test_a_restated_type_is_a_rewrite_only_where_files_changed() -> None:
    old = replace(W, source_type="text")
    new = replace(W, source_type="character varying(5)")
    after = replace(wider(), types={"1": "integer", "2": new.source_type})
    moved = replace(after, leaves={"7": replace(LEAF, file="200")})
    assert not rewritten([at(1, wider()), at(2, after)], 7, old, new)
    assert rewritten([at(1, wider()), at(2, moved)], 7, old, new)
    assert not rewritten([at(1, wider()), at(2, after), at(3, moved)], 7, old, new)


@pytest.mark.parametrize(
    ("was", "became", "may_differ"),
    [
        ("smallint", "integer", False),
        ("character varying(10)", "character varying(50)", False),
        ("character varying(10)", "text", False),
        ("character varying(10)", "character varying", False),
        ("character varying(50)", "character varying(10)", True),
        ("character varying", "character varying(10)", True),
        ("character(4)", "character varying(9)", True),
        ("text", "character varying", True),
    ],
)
def test_rows_written_anew_for_a_wider_declaration_stay_what_they_were(
    was: str, became: str, may_differ: bool
) -> None:
    old, new = replace(W, source_type=was), replace(W, source_type=became)
    before = replace(wider(), types={"1": "integer", "2": was})
    after = replace(before, types={"1": "integer", "2": became})
    moved = replace(after, leaves={"7": replace(LEAF, file="200")})
    assert rewritten([at(1, before), at(2, moved)], 7, old, new) is may_differ


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (PARTED, []),
        (replace(PARTED, relation=None), ["no table of this name any more"]),
        (replace(PARTED, astray="0A"), ["another name"]),
        (replace(PARTED, relation=9, astray="0A"), ["another name", "made anew"]),
        (replace(PARTED, relation=9), ["made anew"]),
        (replace(PARTED, rewrite="0A"), ["USING"]),
        (
            replace(PARTED, labels={"1": "mood.good", "2": "mood.sad", "3": "mood.new"}),
            ["mood.sad"],
        ),
        (replace(PARTED, leaves={"8": PARTED.leaves["8"]}), ["public.p9 is gone"]),
        (replace(PARTED, leaves={**PARTED.leaves, "10": Leaf("public.p10", "10")}), []),
        (
            replace(PARTED, leaves={**PARTED.leaves, "10": Leaf("public.p10", "10", False)}),
            ["public.p10 was attached"],
        ),
        (parts(file="90"), []),  # VACUUM FULL
        (parts(file="90", remade="90"), ["public.p9 was emptied"]),
        (parts(file="90", traced="9"), []),  # the log does not reach there yet
        (parts(joined="71"), []),  # the look before it is an older release's
    ],
)
def test_every_trace_is_named_unless_the_policy_ignores_it(
    now: TableFacts, words: list[str]
) -> None:
    found = list(told(PARTED, now, HOLD))
    assert len(found) == len(words)
    assert all(word in line for word, line in zip(words, found, strict=True))
    quiet = SchemaChanges(
        partitions="ignore", enum_rename="ignore", recreate="ignore", rewrite="ignore"
    )
    assert not list(told(PARTED, now, quiet))


def test_a_partition_that_came_back_and_many_that_were_emptied_are_one_line_each() -> None:
    before, after = parts(joined="71"), parts(joined="72")
    assert [len(list(told(before, now, HOLD))) for now in (before, after)] == [0, 1]
    names = [str(number) for number in range(9)]
    kept = {n: Leaf(f"public.p{n}", n) for n in names}
    gone = {n: replace(leaf, remade="x") for n, leaf in kept.items()}
    many = [replace(PARTED, leaves=leaves) for leaves in (kept, gone)]
    (line,) = told(*many, HOLD)
    assert "public.p2 (and 6 more)" in line


def test_a_rewrite_that_only_the_file_tells_of_is_settled_by_what_came_with_it() -> None:
    """By an approval of the schema that began between the same two looks."""
    anew = replace(PLAIN, leaves={"7": replace(LEAF, file="200", remade="200")})
    looks = [at(10, PLAIN), at(30, anew, since=20), at(50, replace(anew, sent=True))]
    span = boundary("e", 10), boundary("e", 60)
    (line,) = unsent(looks, *span, HOLD)
    assert "ddl_messages" in line
    for place, left in ((20, 1), (25, 0), (30, 0), (40, 1)):
        settled = frozenset({boundary("e", place).place})
        assert len(unsent(looks, *span, HOLD, settled)) == left
    assert not unsent(looks, *span, SchemaChanges(rewrite="ignore"))


def test_a_table_that_is_not_published_is_told_until_a_sweep_after_it_is_again() -> None:
    away = replace(PLAIN, sent=False)
    entries = [at(10, PLAIN), at(30, away, since=20), at(50, PLAIN, since=40), at(60, PLAIN)]

    def between(after: int, until: int) -> int:
        return len(unsent(entries, boundary("e", after), boundary("e", until), HOLD))

    assert between(10, 20) == 0
    assert between(10, 30) == between(35, 36) == between(10, 70) == 1
    assert between(60, 70) == 0  # read at 60


def test_a_range_tells_what_lies_in_it() -> None:
    renamed = replace(PARTED, labels={"1": "mood.good", "2": "mood.sad"})
    entries = [at(10, PARTED), at(30, renamed, since=20)]

    def between(after: int, until: int) -> int:
        return len(unsent(entries, boundary("e", after), boundary("e", until), HOLD))

    assert between(10, 20) == 0
    assert between(10, 21) == 1  # somewhere in (20, 30]: nobody knows where
    assert between(10, 40) == 1
    assert between(25, 30) == 1
    assert between(30, 40) == 0  # a sweep at or after it has read the rows
    assert not unsent(entries, boundary("other", 10), boundary("other", 40), HOLD)
    assert not unsent(entries[1:], boundary("e", 10), boundary("e", 40), HOLD)  # the first look
    anew = [at(10, PARTED), at(30, replace(PARTED, relation=9))]
    span = boundary("e", 10), boundary("e", 40)
    assert unsent(anew, *span, HOLD) and not unsent(anew, *span, HOLD, frozenset({9}))
    using = [at(10, PARTED), at(30, replace(PARTED, rewrite="1E"))]
    assert unsent(using, *span, HOLD) and not unsent(using, *span, HOLD, frozenset({"1E"}))


def test_what_a_cut_sees_counts_for_the_log_that_is_drained_to_it() -> None:
    renamed = replace(PARTED, labels={"1": "mood.good", "2": "mood.sad"})
    looks = [at(10, PARTED), at(30, renamed)]
    assert unsent(looks, boundary("e", 10), boundary("e", 30), HOLD)
    assert not unsent(looks, boundary("e", 10), boundary("e", 20), HOLD)


def test_facts_are_stored_and_read_again() -> None:
    facts = wider(missing={"2": "x"})
    assert TableFacts.from_dict(facts.to_dict()) == facts
    assert "missing" not in repr(facts)  # a default is a constant of someone's (I9)


def test_what_no_statement_explains_is_told_and_all_else_is_not() -> None:
    old, new, later = (replace(PLAIN, catalog=f"here {n}") for n in "123")
    altered = replace(PLAIN, catalog=None)

    def found(*looks: TableFacts) -> list[str]:
        entries = [at(10 * (n + 1), facts) for n, facts in enumerate(looks)]
        return unsent(entries, boundary("e", 10), boundary("e", 99), HOLD)

    assert "no statement" in " ".join(found(old, new))
    assert found(old, old) == []
    assert found(old, altered, new) == []
    assert "no statement" in " ".join(found(old, altered, new, later))
    assert found(old, replace(PLAIN, catalog="there 2")) == []  # another server, or release
    assert found(PLAIN, new) == []  # looked at for the first time
    ignoring = SchemaChanges(rewrite="ignore")
    assert list(told(old, new, ignoring)) == []


def test_a_column_under_the_name_of_one_that_was_dropped_is_told() -> None:
    old = PLAIN.altered(frozenset({"a"}), frozenset())
    new = old.altered(frozenset(), frozenset({"a", "b"}))
    assert list(told(PLAIN, old, HOLD)) == []
    assert "a was dropped" in " ".join(told(old, new, HOLD))
    assert list(told(old, new, HOLD, frozenset({settled_name("a")}))) == []
    assert list(told(new, new, HOLD)) == []
    assert TableFacts.from_dict(new.to_dict()) == new
