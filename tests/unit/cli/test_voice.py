"""What the CLI says: figures, failures, progress, and stopping when it is told to."""

from __future__ import annotations

import io
import os
import signal
from typing import Any, cast

import pytest
from rich.console import Console

from tidegate.cli import fail_on, figures, render
from tidegate.cli.failures import document, write
from tidegate.cli.output import Output
from tidegate.cli.progress import ProgressView
from tidegate.cli.stopping import StopSignals
from tidegate.cli.work_report import WIDTH
from tidegate.envelope.position import Position, boundary
from tidegate.errors import ConfigError, FatalError, HeldError
from tidegate.jobs.apply_result import Status, TableResult
from tidegate.jobs.result import plain
from tidegate.jobs.run import RunOutcome
from tidegate.jobs.sweep import TableSweep


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def text(of: Console) -> str:
    return cast(io.StringIO, of.file).getvalue()


def hear(output: Output, listening: Console) -> None:
    output.err.file.close()
    output.err = listening


@pytest.fixture
def output() -> Any:
    spoken = Output("test")
    yield spoken
    spoken.close()


@pytest.mark.parametrize(
    ("count", "shown"),
    [(None, "–"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")],
)
def test_bytes_are_readable(count: int | None, shown: str) -> None:
    assert figures.human_bytes(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "–"), (0.2, "0 s"), (89, "89 s"), (600, "10 min"), (7200, "2 h"), (259_200, "3 d")],
)
def test_seconds_are_readable(seconds: float | None, shown: str) -> None:
    assert figures.human_seconds(seconds) == shown


def test_an_error_says_what_why_and_what_to_do() -> None:
    shown = console()
    try:
        raise FatalError("slot.lost", "the slot is gone", hint="sweep again") from OSError(5, "io")
    except FatalError as error:
        write(shown, error)
        assert document(error)["cause"] == "OSError: io"
    what, why, do = text(shown).splitlines()
    assert "the slot is gone" in what and "[slot.lost]" in what
    assert "OSError: io" in why
    assert "sweep again" in do


def test_an_unexpected_error_does_not_quote_values() -> None:
    shown = console()
    write(shown, ValueError("row ('secret value', 1)"))
    assert "secret value" not in text(shown)
    assert "ValueError" in text(shown)


def test_brackets_in_messages_are_not_markup() -> None:
    shown = console()
    write(shown, HeldError("a.b", "table [red]odd[/red]", hint="look at list[int]"))
    assert "[red]odd[/red]" in text(shown)


def test_tables_show_columns_that_say_something() -> None:
    shown = console()
    error = HeldError("gate.closed", "held", hint="open it")
    result = {
        "seconds": 4.21,
        "tables": [
            {"table": "public.a", "status": "applied", "inserted": 12, "deleted": 0},
            {"table": "public.b", "status": "failed", "inserted": 0, "error": error.to_dict()},
        ],
    }
    render.tables(shown, result)
    lines = text(shown).splitlines()
    assert lines[0] == "1 table applied, 12 inserted, 4.2 s; 1 failed"
    assert "inserted" in lines[1] and "deleted" not in lines[1]
    assert lines[-2:] == ["failed  public.b: held [gate.closed]", "  do  open it"]
    assert render.any_failed(result)


POSITION = str(boundary("pg_7345678901234567890_1", 0x16B3748))


def run_outcome(tables: int) -> RunOutcome:
    names = [f"public.a_table_with_a_rather_long_name_{number:02}" for number in range(tables)]
    at = Position.parse(POSITION)
    why = "not ready: a; b [postgres.no_key] → mend that"
    same = {"from_position": at, "to_position": at}
    broken = FatalError("audit.failed", "rows differ", hint="look at the branch")
    return RunOutcome(
        rounds=1,
        captured=21,
        seconds=59.4,
        through=POSITION,
        parked=2,
        tables=[
            TableResult(names[0], Status.HELD, reason=why),
            TableResult(names[1], Status.MISSING, reason="no lake table yet"),
            *(TableResult(n, Status.UNCHANGED, **same) for n in names[2:]),
        ],
        sweeps=[
            TableSweep(names[1], "failed", branch="sweep_1", error=broken),
            *(TableSweep(n, "swept", rows=281, position=at, snapshot_id=7) for n in names[2:]),
        ],
    )


def test_a_run_is_one_sentence_then_a_table_then_the_reasons() -> None:
    shown = console()
    render.run(False)(shown, run_outcome(14))
    lines = text(shown).splitlines()
    assert lines[0] == (
        "12 tables swept, 3,372 rows, 21 changes captured, 59 s; 1 failed, 1 held,"
        " 2 new dead letters"
    )
    assert max(len(line) for line in lines) <= WIDTH
    assert POSITION not in text(shown)
    assert [line.split()[0] for line in lines[-4:]] == ["held", "do", "failed", "do"]


def test_a_run_that_was_stopped_at_once_says_so() -> None:
    shown = console()
    render.run(False)(shown, RunOutcome(stopped=True, seconds=1.0))
    first, second = text(shown).splitlines()
    assert first == "nothing was done, 1.0 s" and second.startswith("stopped after the step")


def test_positions_come_last_and_only_when_asked_for() -> None:
    shown = console()
    render.run(True)(shown, run_outcome(3))
    lines = text(shown).splitlines()
    places = [number for number, line in enumerate(lines) if POSITION in line]
    assert places and min(places) > next(n for n, line in enumerate(lines) if "do  look" in line)


def test_a_failed_first_sweep_is_a_failed_run() -> None:
    assert run_outcome(3).failed  # I12
    assert not RunOutcome().failed


@pytest.mark.parametrize(
    ("option", "trouble"),
    [
        ([], ()),
        (["held"], ("held: public.a_table_with_a_rather_long_name_00",)),
        (
            ["letters,missing"],
            ("letters: 2 new", "missing: public.a_table_with_a_rather_long_name_01"),
        ),
        (["skipped", "waiting"], ()),
    ],
)
def test_troubles_that_end_a_command_with_1_are_named(
    option: list[str], trouble: tuple[str, ...]
) -> None:
    assert fail_on.found(plain(run_outcome(3)), fail_on.named(option)) == trouble


def test_all_troubles_are_one_word_and_an_unknown_one_is_refused() -> None:
    assert len(fail_on.found(plain(run_outcome(3)), fail_on.named(["all"]))) == 3
    with pytest.raises(ConfigError) as refused:
        fail_on.named(["held", "leters"])
    assert "did you mean letters?" in refused.value.hint


def test_status_and_verify_know_their_troubles() -> None:
    tables = [
        {"table": "a", "gate": {"state": "held"}, "position": "e/1", "dead_letters": 0},
        {"table": "b", "gate": {"state": "open"}, "position": None, "dead_letters": 2},
        {"table": "c", "gate": {"state": "sweeping"}, "position": "e/1", "dead_letters": 0},
    ]
    every = fail_on.named(["all"])
    assert fail_on.found({"tables": tables}, every) == (
        "held: a",
        "letters: b",
        "missing: b",
        "waiting: c",
    )
    verdicts = [
        {"table": "a", "status": "skipped"},
        {"table": "b", "status": "equal", "waiting": 3},
    ]
    assert fail_on.found({"tables": verdicts}, every) == ("letters: b", "skipped: a")


def test_progress_without_a_terminal_is_lines(output: Output) -> None:
    hear(output, console())
    with ProgressView(output) as progress:
        for done in range(11):
            progress("public.orders", done, 10, "chunks", rows=done * 1000)
    lines = text(output.err).splitlines()
    assert lines[0].startswith("public.orders: 0 / 10 chunks")
    assert lines[-1].startswith("public.orders: 10 / 10 chunks")
    assert len(lines) == 2, "lines in between are spaced by time"


def test_progress_on_a_terminal_is_bars(output: Output) -> None:
    hear(output, Console(file=io.StringIO(), width=120, force_terminal=True))
    with ProgressView(output) as progress:
        progress("capture", 10, None, "rows")
        progress("sweep", 1, 2, "chunks")
        progress("sweep", 2, 2, "chunks")
    assert "sweep: 2 / 2 chunks" in text(output.err)


def test_the_first_signal_asks_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals() as stopping:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping.event.wait(5)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def test_json_goes_to_stdout_alone(capfd: pytest.CaptureFixture[str]) -> None:
    spoken = Output("status", as_json=True)
    spoken.note("starting")
    spoken.finish({"a": 1}, render.facts)
    spoken.close()
    written = capfd.readouterr()
    assert written.out == '{"ok": true, "command": "status", "result": {"a": 1}}\n'
    assert written.err == "starting\n"


def test_facts_are_indented_below_their_names() -> None:
    shown = console()
    render.facts(shown, {"slot": "s", "actions": ["a", "b"], "more": {"x": None}, "rows": 12345})
    assert text(shown).splitlines() == [
        "slot     s",
        "actions  a, b",
        "more",
        "  x  –",
        "rows     12\u202f345",
    ]
