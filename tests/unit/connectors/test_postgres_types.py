"""Types without a server: typmods, select expressions, chunks as JSON, messages without secrets."""

from __future__ import annotations

import json

import psycopg
import pytest
from pydantic import ValidationError

from tidegate.config import source_types
from tidegate.config.pipeline import PipelineConfig
from tidegate.config.platform import PlatformConfig
from tidegate.config.secrets import Secrets
from tidegate.connectors import registry
from tidegate.connectors.cut import Chunk
from tidegate.connectors.postgres.chunks import Part, by_ctid, literal
from tidegate.connectors.postgres.connection import jdbc
from tidegate.connectors.postgres.failures import translate
from tidegate.connectors.postgres.settings import PostgresSettings
from tidegate.connectors.postgres.types import array_of, native, scalar, select_expression
from tidegate.connectors.protocol import Capability, Problem, Severity, ValidationReport
from tidegate.errors import ConfigError, RetriableError
from tidegate.schema.table import Column
from tidegate.schema.types import STRING, TextRule


def typmod(precision: int, scale: int) -> int:
    return ((precision << 16) | (scale & 0x7FF)) + 4


@pytest.mark.parametrize(
    ("modifier", "expected"),
    [
        (typmod(12, 2), "decimal(12,2)"),
        (typmod(38, 38), "decimal(38,38)"),
        (typmod(39, 0), "string"),
        (typmod(5, -3), "string"),
        (typmod(3, 5), "string"),
        (-1, "string"),
    ],
)
def test_numeric_is_a_decimal_only_where_one_holds_it(modifier: int, expected: str) -> None:
    assert str(scalar("numeric", modifier).type) == expected


def test_types_of_the_user_are_text_even_under_a_known_name() -> None:
    assert str(scalar("int4", -1, built_in=False).type) == "string"
    assert str(array_of(scalar("int4", -1)).type) == "list<int>"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("text", '"a""b"::text AS "a""b"'),
        ("character varying(9)", '"a""b"::text AS "a""b"'),
        (
            "character(3)",
            'CASE WHEN "a""b" IS DISTINCT FROM NULL THEN concat("a""b") END AS "a""b"',
        ),
        ("text.odd", 'CASE WHEN "a""b" IS DISTINCT FROM NULL THEN concat("a""b") END AS "a""b"'),
    ],
)
def test_text_is_selected_as_the_log_prints_it(printed: str, expected: str) -> None:
    column = Column('a"b', printed, STRING, TextRule.PLAIN)
    assert native(column)
    assert select_expression(column) == expected


def test_ctid_chunks_leave_no_block_out_and_survive_json() -> None:
    chunks = by_ctid([Part(7, "s.t", 10.0, 25, readable=True)], False, 100)
    assert [chunk.predicate_sql for chunk in chunks] == [
        "ctid >= '(0,0)'::tid AND ctid < '(10,0)'::tid",
        "ctid >= '(10,0)'::tid AND ctid < '(20,0)'::tid",
        "ctid >= '(20,0)'::tid",
    ]
    ranged = Chunk("key-1", "true", ("a", "1"), None, 5)
    for chunk in (*chunks, ranged):
        assert Chunk.from_dict(json.loads(json.dumps(chunk.to_dict()))) == chunk


def test_literals_are_quoted_whatever_they_hold() -> None:
    assert literal("it's") == "'it''s'"
    assert literal("back\\slash'") == " E'back\\\\slash'''"


def settings(**source: object) -> PostgresSettings:
    pipeline = PipelineConfig.model_validate(
        {"pipeline_id": "shop", "source": {"database": "my db", "password": "s3cret!", **source}}
    )
    return PostgresSettings.of(pipeline, PlatformConfig(), None)


def test_a_password_never_reaches_a_message() -> None:
    error = psycopg.OperationalError("could not connect with s3cret!")
    told = translate(error, settings(), "connecting")
    assert isinstance(told, RetriableError)
    assert "s3cret!" not in str(told)
    assert "s3cret!" not in repr(settings())
    assert "s3cret!" not in repr(jdbc(settings(), "0-1"))


def test_login_and_tls_are_for_a_person_to_fix() -> None:
    login = translate(psycopg.OperationalError("password authentication failed"), settings(), "x")
    tls = translate(psycopg.OperationalError("root certificate file not found"), settings(), "x")
    assert isinstance(login, ConfigError)
    assert (login.code, tls.code) == ("source.login", "source.tls")


def test_jdbc_honours_tls_and_pins_the_session() -> None:
    read = jdbc(settings(host="::1", sslmode="verify-full", sslrootcert="/ca.pem"), "00-1")
    assert read.url == "jdbc:postgresql://[::1]:5432/my%20db"
    assert read.properties["sslmode"] == "verify-full"
    assert read.properties["sslrootcert"] == "/ca.pem"
    assert "SET TimeZone = 'UTC'" in read.session_init
    assert read.session_init.endswith("SET TRANSACTION SNAPSHOT '00-1'")


def test_secrets_replace_the_files_values() -> None:
    pipeline = PipelineConfig.model_validate(
        {"pipeline_id": "shop", "source": {"password": "unused", "database": "d"}}
    )
    secrets = Secrets.model_validate({"host": "db", "password": "other"})
    found = PostgresSettings.of(pipeline, PlatformConfig(), secrets)
    assert (found.host, found.password.get_secret_value()) == ("db", "other")


def test_registry_names_what_there_is() -> None:
    for name in ("mysql", "postgres"):
        assert name in source_types.names()
        source = {"database": "d", "password": "unused", "source_type": name}
        pipeline = PipelineConfig.model_validate({"pipeline_id": "shop", "source": source})
        can = registry.open_source(pipeline, PlatformConfig()).capabilities
        assert (Capability.CUT_SHARE in can) is (name == "postgres")
        assert Capability.CUT_HOLD in can
        assert pipeline.source.port == {"mysql": 3306, "postgres": 5432}[name]
    with pytest.raises(ConfigError, match="oracle") as caught:
        registry._load("oracle")
    assert "mysql, postgres" in caught.value.hint


def test_an_unknown_source_type_is_refused_with_the_nearest_name() -> None:
    source = {"database": "d", "source_type": "postgresql"}
    with pytest.raises(ValidationError, match=r"did you mean postgres\?"):
        PipelineConfig.model_validate({"pipeline_id": "shop", "source": source})


def test_options_that_a_connector_does_not_have_are_refused() -> None:
    source = {"database": "d", "password": "unused", "options": {"slott": 1}}
    pipeline = PipelineConfig.model_validate({"pipeline_id": "shop", "source": source})
    with pytest.raises(ConfigError, match="slott") as caught:
        registry.open_source(pipeline, PlatformConfig())
    assert caught.value.code == "source.option"


def test_report_fails_only_on_errors() -> None:
    warning = Problem("x.y", Severity.WARNING, "mind this")
    error = Problem("x.z", Severity.ERROR, "wrong", "public.t", "ALTER …")
    assert ValidationReport((warning,)).status == "warning"
    assert ValidationReport((warning, error)).status == "failed"
    assert str(error) == "public.t: wrong [x.z] → ALTER …"
