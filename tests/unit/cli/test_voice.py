"""What the CLI says: figures, failures, progress, and stopping when it is told to."""

from __future__ import annotations

import io
import os
import signal
from typing import Any, cast

import pytest
from rich.console import Console

from tidegate.cli import figures, render
from tidegate.cli.failures import document, write
from tidegate.cli.output import Output
from tidegate.cli.progress import ProgressView
from tidegate.cli.stopping import StopSignals
from tidegate.errors import FatalError, HeldError


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
        "tables": [
            {"table": "public.a", "status": "applied", "inserted": 12, "deleted": 0},
            {"table": "public.b", "status": "failed", "inserted": 0, "error": error.to_dict()},
        ]
    }
    render.tables(shown, result)
    lines = text(shown).splitlines()
    assert "inserted" in lines[0] and "deleted" not in lines[0]
    assert "[gate.closed] → open it" in lines[2]
    assert render.any_failed(result)


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
