"""The ledger of looks at the source's catalog."""

from __future__ import annotations

from pyiceberg.catalog import Catalog

from tidegate.config.pipeline import PipelineConfig
from tidegate.envelope.position import boundary
from tidegate.lake.facts_ledger import FactsLedger, in_force
from tidegate.names import TableId
from tidegate.schema.table_facts import Leaf, TableFacts

T, U = TableId("public", "t"), TableId("public", "u")
ONE = TableFacts(7, columns={"1": "id"}, leaves={"7": Leaf("public.t", "1")})
TWO = TableFacts(7, columns={"1": "id", "2": "w"}, leaves={"7": Leaf("public.t", "1")})


def test_only_differences_are_noted_and_everyone_sees_them(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    ledger, rival = FactsLedger(catalog, pipeline), FactsLedger(catalog, pipeline)
    assert ledger.all(str(T)) == ()
    begin, end = boundary("e", 10), boundary("e", 20)
    ledger.note({T: ONE, U: ONE}, begin, end)
    rival.note({T: ONE, U: TWO}, end, boundary("e", 30))
    ledger.note({T: ONE, U: TWO}, boundary("e", 30), boundary("e", 40))
    assert [e.facts for e in ledger.all(str(T))] == [ONE]
    assert [(e.since.lsn, e.at.lsn, e.facts) for e in rival.all(str(U))] == [
        (10, 20, ONE),
        (20, 30, TWO),
    ]
    cut = boundary("e", 25)  # a sweep is told apart from a later look, though it notes later
    rival.note({U: TWO}, cut, cut)
    assert [e.at.lsn for e in ledger.all(str(U))] == [20, 25, 30]
    newest = in_force(ledger.all(str(U)), boundary("e", 27))
    assert newest is not None and newest.at == cut
    assert in_force(ledger.all(str(U)), boundary("other", 27)) is None
    place = boundary("e", 28)  # the log tells of a rewrite; looks at the catalog keep it
    for _ in range(2):
        ledger.rewritten(str(U), place)
    ledger.note({U: ONE}, boundary("e", 40), boundary("e", 50))
    told = [(e.at.lsn, e.facts.rewrite) for e in rival.all(str(U))]
    assert told == [(20, None), (25, None), (28, place.place), (30, None), (50, None)]
    ledger.astray(str(T), place)  # and of rows under another name
    ledger.note({T: TWO}, boundary("e", 40), boundary("e", 50))
    assert [e.facts.astray for e in rival.all(str(T))] == [None, place.place, place.place]
    ledger.rewritten("public.unknown", place)
    assert ledger.all("public.unknown") == ()
    ledger.note({U: TWO}, boundary("f", 1), boundary("f", 1))  # a new epoch begins anew
    assert [e.at.epoch for e in ledger.all(str(U))] == ["e"] * 5 + ["f"]


def test_a_statement_leaves_nothing_to_compare_the_next_look_with(
    catalog: Catalog, pipeline: PipelineConfig
) -> None:
    ledger = FactsLedger(catalog, pipeline)
    seen = TableFacts(1, catalog="server digest")
    ledger.altered(str(T), boundary("e", 5))  # never looked at: nothing to forget
    ledger.note({T: seen}, boundary("e", 0), boundary("e", 10))
    for _ in range(2):  # told again after a crash
        ledger.altered(str(T), boundary("e", 15), left=frozenset({"a", "b"}))
    ledger.note({T: seen}, boundary("e", 10), boundary("e", 20))
    told = [(e.at.lsn, e.facts.catalog) for e in ledger.all(str(T))]
    assert told == [(10, "server digest"), (15, None), (20, "server digest")]
    ledger.altered(str(T), boundary("e", 25), came=frozenset({"a", "c"}))
    newest = ledger.all(str(T))[-1].facts
    assert (newest.left, newest.back) == (("a", "b"), ("a",))
