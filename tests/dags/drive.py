"""Run one Dag of a folder from begin to end in this process, as ``airflow dags test`` does.

``python -m tests.dags.drive <dag_id> [<conf as JSON> [<logical date>]]``; the last line is JSON:
the run's state and the state of each task instance.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime

from airflow.dag_processing.dagbag import DagBag


def main(dag_id: str, conf: str = "{}", date: str | None = None) -> None:
    bag = DagBag()
    assert not bag.import_errors, bag.import_errors
    logical_date = None if date is None else datetime.fromisoformat(date)
    run = bag.dags[dag_id].test(run_conf=json.loads(conf), logical_date=logical_date)
    states = {
        f"{ti.task_id}[{ti.map_index}]" if ti.map_index >= 0 else ti.task_id: str(ti.state)
        for ti in run.get_task_instances()
    }
    print(json.dumps({"state": str(run.state), "tasks": states}))


if __name__ == "__main__":
    main(*sys.argv[1:])
