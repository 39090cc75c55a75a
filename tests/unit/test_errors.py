"""Errors carry a code, a cause and a next step across processes."""

from __future__ import annotations

import pickle

import pytest

from tidegate import errors
from tidegate.errors import Decision, ExitCode, decide, exit_code, from_dict

KINDS = [
    (errors.ConfigError, Decision.STOP, ExitCode.VALIDATION),
    (errors.SetupError, Decision.STOP, ExitCode.ENVIRONMENT),
    (errors.RetriableError, Decision.RETRY, ExitCode.RUNTIME),
    (errors.HeldError, Decision.WAIT, ExitCode.RUNTIME),
    (errors.DataError, Decision.STOP, ExitCode.RUNTIME),
    (errors.FatalError, Decision.STOP, ExitCode.RUNTIME),
    (errors.UnexpectedError, Decision.STOP, ExitCode.RUNTIME),
]


@pytest.mark.parametrize(("kind", "decision", "code"), KINDS)
def test_each_kind_says_how_to_recover(
    kind: type[errors.TidegateError], decision: Decision, code: ExitCode
) -> None:
    error = kind("area.reason", "what happened", hint="do this")
    assert decide(error) is decision
    assert exit_code(error) is code
    assert "area.reason" in str(error) and "do this" in str(error)


@pytest.mark.parametrize("kind", [kind for kind, _, _ in KINDS])
def test_an_error_survives_pickling_and_json(kind: type[errors.TidegateError]) -> None:
    error = kind("area.reason", "what happened", hint="do this")
    for copy in (pickle.loads(pickle.dumps(error)), from_dict(error.to_dict())):
        assert type(copy) is kind
        assert copy.to_dict() == error.to_dict()


def test_connection_loss_is_retried_and_surprises_stop() -> None:
    assert decide(ConnectionResetError()) is Decision.RETRY
    assert decide(ValueError()) is Decision.STOP
    assert exit_code(ValueError()) is ExitCode.RUNTIME
