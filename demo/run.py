"""``make demo``: the whole story, told while it happens."""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Final

from demo import places, shops, stack
from demo.report import Report, print_report
from demo.runs import Run, Runs
from demo.story import Story
from demo.up import DAGS, TIDEGATE, deploy
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.control import gates
from tidegate.errors import FatalError, RetriableError

STEPS: Final = 9
SWEPT_AGAIN: Final = "orders"
WRITER_PER_SECOND: Final = 30.0
GATE_SECONDS: Final = 600.0
GATE_LOOK_SECONDS: Final = 1.5


def run(*, keep: bool, source: str) -> int:
    """Exit code 0 only if source and lake are proven equal."""
    stack.refuse_second()
    stack.wipe()
    story = Story(STEPS)
    own = stack.Stack(story.say, source)
    os.environ.update(own.env)
    with stack.stopped_afterwards(own, keep=keep):
        report = Demo(own, story).play()
        report.kept = keep
        print_report(report)
        if not keep:
            story.console.print("\nstopping the stack …")
    return 0 if report.equal else 1


class Demo:
    """Nine steps."""

    def __init__(self, own: stack.Stack, story: Story) -> None:
        self._stack = own
        self._story = story
        self._swept_again = f"{own.shop.schema}.{SWEPT_AGAIN}"

    def play(self) -> Report:
        story = self._story
        with story.step("start the shop's database, and Airflow"):
            rows = self._stack.start()
            self._stack.api.wait_for_dags({dag(kind) for kind in DAGS})
            self._runs = Runs(self._stack.api, story, places.TASK_LOGS)
        with story.step(f"deploy the pipeline: {self._stack.shop.made}"):
            deploy(self._stack, story)
        with story.step(f"sweep all {len(shops.TABLES)} tables for the first time"):
            self._runs.watch([self._runs.trigger(dag("sweep"))])
        with story.step("a writer changes the source; capture and apply its changes"):
            self._stack.start_writer(WRITER_PER_SECOND)
            story.say(f"writer at {WRITER_PER_SECOND:.0f} transactions a second")
            self._wait_for_changes()
            self._runs.watch([self._runs.trigger(dag("changes"))])
        with story.step(f"sweep {self._swept_again} again while the writer goes on"):
            self._sweep_behind_the_gate()
        with story.step("stop the writer, drain the log"):
            written = self._stack.stop_writer()
            story.say("writer: " + ", ".join(f"{n:,} {kind}" for kind, n in written.items()))
            self._runs.watch([self._runs.trigger(dag("changes"))])
        with story.step("maintenance: compact, expire"):
            self._runs.watch([self._runs.trigger(dag("maintenance"))])
        with story.step("verify: source against lake, row by row, at one position"):
            verified = self._runs.trigger(dag("verify"))
            self._verify(verified)
        with story.step("report"):
            return Report.collect(self._stack, story, self._runs.done, rows, written, verified)

    def _wait_for_changes(self) -> None:
        """Until the writer has written its first transactions."""
        stats = places.HOME / "writer.json"
        deadline = time.monotonic() + 30
        while not stats.exists():
            if time.monotonic() > deadline:
                raise RetriableError(
                    "demo.writer", "the writer wrote nothing", hint=f"see {places.LOGS}/writer.log"
                )
            time.sleep(0.2)  # polling another process

    def _sweep_behind_the_gate(self) -> None:
        """The gate holds one table while the others flow.

        Where the source lets us, the sweep's cut is kept waiting, so that everybody can see the
        gate closed: apply takes the other tables, this one waits. Then the sweep reads, audits and
        publishes, and what was captured behind the cut flows.
        """
        watch = GateWatch(self._story, self._swept_again)
        with self._stack.shop.holding_back(self._story.say):
            swept = self._runs.trigger(dag("sweep"), {"tables": [self._swept_again]})
            watch.until_closed()
            changes = self._runs.trigger(dag("changes"))
            self._runs.watch_task([swept, changes], "apply_open", watch.look)
        self._capture()
        self._runs.watch([swept, changes], watch.look)

    def _capture(self) -> None:
        """Capture never waits for a gate."""
        command = [TIDEGATE, "capture", str(places.PIPELINE_FILE), "--json"]
        done = subprocess.run(
            command, env=self._stack.env, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise FatalError("demo.capture", done.stderr.strip(), hint="tidegate capture --debug")
        rows = json.loads(done.stdout)["result"]["rows"]
        self._story.say(f"tidegate capture: {rows:,} more changes, gate or not")

    def _verify(self, verified: Run) -> None:
        try:
            self._runs.watch([verified])
        except FatalError:
            if not verified.results:  # a red report is the verdict's to tell
                raise


class GateWatch:
    """Says when the gate of the table swept again changes."""

    def __init__(self, story: Story, table: str) -> None:
        self._story = story
        self._table = table
        self._state = ""
        self._next = 0.0
        self._pipeline = load_pipeline(places.PIPELINE_FILE)
        self._platform = load_platform(places.PLATFORM_FILE)

    def look(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + GATE_LOOK_SECONDS
        (gate,) = gates.show(self._pipeline, self._platform, [self._table]).gates
        if gate.state != self._state:
            self._state = gate.state
            self._story.say(f"gate of {self._table}: {gate.state}", "bold cyan")

    def until_closed(self) -> None:
        deadline = time.monotonic() + GATE_SECONDS
        while self._state != "sweeping":
            self.look()
            if time.monotonic() > deadline:
                raise RetriableError(
                    "demo.gate", "the sweep did not close its gate", hint="see the run in Airflow"
                )
            time.sleep(0.3)  # polling the gate journal


def dag(kind: str) -> str:
    return f"{places.PIPELINE_ID}__{kind}"
