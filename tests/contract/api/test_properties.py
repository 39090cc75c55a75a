"""Every operation of the OpenAPI document, tried with made-up requests: it keeps its word.

Answers have a documented status, content type and shape; nothing is an error of the server's own;
what the document forbids is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from tests.support.api import TOKENS, Served, served
from tidegate.api.access import Role
from tidegate.api.reference import openapi_document

EXAMPLES = 3
"""A request costs some milliseconds, and there are forty operations."""
NOT_ASKED = [
    ignored_auth,  # it takes the given header off in its own way; test_access asks every route
    positive_data_acceptance,  # a request of the right shape may still ask for the impossible
    schemathesis.checks.not_a_server_error,  # 503 is documented: below
]
schema = schemathesis.openapi.from_dict(openapi_document())


def no_error_of_its_own(context: Any, response: Any, case: Any) -> None:
    """503 is a source or a catalog that does not answer; everything else is a mistake here."""
    assert response.status_code < 500 or response.status_code == 503, response.text


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from served(tmp_path_factory.mktemp("properties"))


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_document_is_true(case: schemathesis.Case, own: Served) -> None:
    places = case.path_parameters or {}
    if "name" in places and case.meta and case.meta.generation.mode.is_positive:
        places["name"] = "shop"
        if "table" in places:
            places["table"] = "public.orders"
    case.call_and_validate(
        base_url=own.url,
        headers={"Authorization": f"Bearer {TOKENS[Role.ADMIN]}"},
        additional_checks=[no_error_of_its_own],
        excluded_checks=NOT_ASKED,
    )
