"""``make up`` and ``make down``: the demo's stack, left running."""

from __future__ import annotations

import os
import subprocess

from demo import airflow_config, places, stack
from demo.runs import Runs
from demo.story import Story
from tidegate.config.loader import load_pipeline, load_platform
from tidegate.errors import FatalError
from tidegate.lake.catalog import load, open_catalog

WRITER_PER_SECOND = 2.0
WRITER_SCHEDULE = "*/2 * * * *"
TIDEGATE = str(places.ROOT / ".venv" / "bin" / "tidegate")
DAGS = ("changes", "sweep", "maintenance", "verify")


def up(*, writer: bool, source: str | None) -> int:
    """Start on what an earlier demo left, or from an empty database."""
    stack.refuse_second()
    stack.refuse_other(source)
    story = Story(3)
    own = stack.Stack(story.say, source)
    os.environ.update(own.env)
    with stack.stopped_afterwards(own, keep=True):
        with story.step("start the shop's database, and Airflow"):
            own.start(changes_schedule=WRITER_SCHEDULE if writer else None)
            own.api.wait_for_dags({f"{places.PIPELINE_ID}__{kind}" for kind in DAGS})
        with story.step("deploy the pipeline"):
            deploy(own, story)
        with story.step("first sweep"):
            if swept():
                story.say("the lake tables are there already")
            else:
                runs = Runs(own.api, story, places.TASK_LOGS)
                runs.watch([runs.trigger(f"{places.PIPELINE_ID}__sweep")])
        if writer:
            own.start_writer(WRITER_PER_SECOND)
            story.say(f"a writer changes the shop; {places.PIPELINE_ID}__changes runs by schedule")
    print(where_to_click(own))
    return 0


def down() -> int:
    running = stack.running()
    if not running:
        print("nothing is running")
        return 0
    print(f"stopping {', '.join(sorted(running))} …", flush=True)
    stack.Stack(print).stop()
    print("stopped; the data stays in .tidegate/demo (make up goes on with it)")
    return 0


def deploy(own: stack.Stack, story: Story) -> None:
    """By the command line, as a user would."""
    for verb in ("validate", "deploy"):
        command = [TIDEGATE, verb, str(places.PIPELINE_FILE)]
        done = subprocess.run(command, env=own.env, capture_output=True, text=True, check=False)
        for line in done.stdout.strip().splitlines():
            story.say(line)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).strip()
            raise FatalError("demo.deploy", said, hint=f"tidegate {verb} says what to do")


def swept() -> bool:
    pipeline = load_pipeline(places.PIPELINE_FILE)
    catalog = open_catalog(load_platform(places.PLATFORM_FILE), pipeline)
    return all(load(catalog, target.identifier) is not None for target in pipeline.targets)


def where_to_click(own: stack.Stack) -> str:
    grid = f"{own.url}/dags/{places.PIPELINE_ID}"
    return f"""
Airflow    {own.url}   user {airflow_config.USER}   password {own.keys.password}
  {grid}__changes      capture, apply, and the gate sensor beside them
  {grid}__sweep        Trigger: a form with tables and dry run
  {grid}__verify       source against lake
Pipeline   {places.PIPELINE_FILE.relative_to(places.ROOT)}   edit it, the Dags follow within seconds
Shop       {own.shop.client}
make down  stops all of it
"""
