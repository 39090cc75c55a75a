"""Capture of a MariaDB against ``mariadb-binlog --raw`` and ``mysql-replication`` on one range.

Rows count as captured once they are durable in the change log; the peers only read (the first
writes raw files, the second makes Python rows). Bulk: 1,000 rows a transaction; single: one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.stage import median, timed
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.jobs.capture import run_capture
from tidegate.jobs.deploy import deploy
from tidegate.testing.mariadb_server import PASSWORD, USER, MariadbServer, running

ROUNDS = 3
SINGLE_SHARE = 10
DATABASE = "bench"
TABLE = """
CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, customer int NOT NULL,
  amount decimal(12,2), note varchar(200), placed datetime(6), flag tinyint, ratio double,
  status varchar(20))
"""
INSERT = """
INSERT INTO orders (customer, amount, note, placed, flag, ratio, status)
SELECT seq % 977, seq * 1.25, repeat('n', 100), now(6), seq % 2, seq / 7, 'new' FROM seq_1_to_{rows}
"""


@dataclass(frozen=True, slots=True)
class Place:
    file: str
    offset: int


def main(rows: int) -> None:
    found: dict[str, list[float]] = {}
    config = {"max-binlog-size": "1073741824"}
    with running(config=config) as server, tempfile.TemporaryDirectory() as folder:
        server.execute(f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", TABLE)
        pipeline, platform = _configured(server, folder)
        deploy(pipeline, platform)
        for number in range(ROUNDS + 1):
            for kind, size, each in (("bulk", rows, 1000), ("single", rows // SINGLE_SHARE, 1)):
                start = _place(server)
                _fill(server, size, each)
                raw, _ = timed(lambda s=start: _raw(server, s, folder))
                ours, result = timed(lambda: run_capture(pipeline, platform))
                peer, seen = timed(lambda s=start, n=size: _peer(server, s, n))
                assert result.rows == seen == size, (result.rows, seen, size)
                print(
                    f"{kind} {size:,}: raw {raw:.2f} s, capture {ours:.2f} s"
                    f" ({size / ours:,.0f} rows/s), mysql-replication {peer:.2f} s,"
                    f" ÷ raw {raw / ours:.2f}, ÷ peer {peer / ours:.1f}",
                    flush=True,
                )
                if number:  # the first round warms up
                    found.setdefault(f"{kind} rate", []).append(size / ours)
                    found.setdefault(f"{kind} raw", []).append(raw / ours)
                    found.setdefault(f"{kind} peer", []).append(peer / ours)
    _save(rows, {name: median(values) for name, values in found.items()})


def _configured(server: MariadbServer, folder: str) -> tuple[PipelineConfig, PlatformConfig]:
    source = {
        "source_type": "mysql",
        "host": "127.0.0.1",
        "port": server.port,
        "database": DATABASE,
        "username": USER,
        "password": PASSWORD,
        "tables": [f"{DATABASE}.orders"],
    }
    pipeline = PipelineConfig.model_validate({"pipeline_id": DATABASE, "source": source})
    return pipeline, PlatformConfig.model_validate({"lake": {"home": f"{folder}/home"}})


def _place(server: MariadbServer) -> Place:
    file, offset, *_ = server.execute("SHOW MASTER STATUS")[0]
    return Place(str(file), int(offset))


def _fill(server: MariadbServer, rows: int, each: int) -> None:
    with server.connect(DATABASE) as connection, connection.cursor() as cursor:
        if each > 1:
            for _ in range(rows // each):
                cursor.execute(INSERT.format(rows=each))
            return
        cursor.execute(
            "CREATE OR REPLACE PROCEDURE fill(n int) BEGIN DECLARE i int DEFAULT 0;"
            f" WHILE i < n DO {INSERT.format(rows=1)}; SET i = i + 1; END WHILE; END"
        )
        cursor.execute("CALL fill(%s)", (rows,))


def _raw(server: MariadbServer, start: Place, folder: str) -> None:
    command = ["mariadb-binlog", "--no-defaults", "--read-from-remote-server", "--raw"]
    command += ["--host=127.0.0.1", f"--port={server.port}", f"--user={USER}"]
    command += [f"--password={PASSWORD}", f"--start-position={start.offset}"]
    command += [f"--result-file={folder}/raw-", start.file]
    subprocess.run(command, check=True, capture_output=True)
    for file in Path(folder).glob("raw-*"):
        file.unlink()


def _peer(server: MariadbServer, start: Place, wanted: int) -> int:
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import WriteRowsEvent

    login: dict[str, Any] = {"host": "127.0.0.1", "port": server.port}
    stream = BinLogStreamReader(
        connection_settings=login | {"user": USER, "passwd": PASSWORD},
        server_id=4711,
        only_events=[WriteRowsEvent],
        only_tables=["orders"],
        log_file=start.file,
        log_pos=start.offset,
        resume_stream=True,
        blocking=True,  # without it, it begins again at the start for ever
        slave_heartbeat=1,
    )
    rows = 0
    try:
        for event in stream:
            rows += len(event.rows)
            if rows >= wanted:
                break
    finally:
        stream.close()
    return rows


def _save(rows: int, figures: dict[str, float]) -> None:
    note = f"median of {ROUNDS} rounds; {rows:,} rows, 1,000 a transaction"
    single = f"{rows // SINGLE_SHARE:,} rows, one a transaction"
    report.save(
        "mysql",
        f"python -m benchmarks.bench_mysql {rows}",
        [
            {
                "name": "MariaDB bulk",
                "value": figures["bulk rate"],
                "unit": "rows/s",
                "target": "> 50,000",
                "note": note,
            },
            {"name": "bulk ÷ mariadb-binlog --raw", "value": figures["bulk raw"]},
            {
                "name": "bulk ÷ mysql-replication",
                "value": figures["bulk peer"],
                "target": "≥ 4",
            },
            {
                "name": "single-row transactions ÷ mysql-replication",
                "value": figures["single peer"],
                "target": "≥ 8",
                "note": single,
            },
        ],
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500_000)
