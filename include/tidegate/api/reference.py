"""``docs/reference/api.md`` and the OpenAPI document, from the routes themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from starlette.requests import HTTPConnection

from tidegate.api.access import Access, Role
from tidegate.api.app import create_app
from tidegate.api.pipelines import Pipelines
from tidegate.api.problems import Refused
from tidegate.api.processes import ProcessRunner
from tidegate.config.platform import PlatformConfig

_NOWHERE: Final = Path("/nonexistent")


class _Nobody:
    """Refuses everyone: the document is made without a server."""

    async def authorize(
        self, connection: HTTPConnection, role: Role, pipeline: str | None
    ) -> Access:
        raise Refused(401, "api.no_token", "nobody is served", hint="this is for documents only")


def openapi_document() -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    pipelines = Pipelines(_NOWHERE, PlatformConfig())
    document: dict[str, Any] = create_app(
        pipelines, _Nobody(), ProcessRunner(pipelines, _NOWHERE)
    ).openapi()
    return document


def reference() -> str:
    """The page."""
    document = openapi_document()
    return "\n".join([_HEAD, *_operations(document), _LIVE])


def _operations(document: dict[str, Any]) -> Iterator[str]:
    yield "| | role | does |\n|---|---|---|"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            says = " ".join(operation.get("description", "").split())
            yield f"| `{method.upper()} {path}` | {operation['x-tidegate-role']} | {says} |"
    yield ""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield from _operation(document, f"{method.upper()} {path}", operation)


def _operation(document: dict[str, Any], heading: str, operation: dict[str, Any]) -> Iterator[str]:
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    good = next((code for code in operation["responses"] if code.startswith("2")), None)
    answer = (operation["responses"].get(good) or {}).get("content", {}).get("application/json")
    queries = [p for p in operation.get("parameters", ()) if p["in"] in ("query", "header")]
    yield f"## `{heading}`\n"
    for given in queries:
        yield f"- `{given['name']}` ({given['in']}): {given.get('description', '')}".rstrip(": ")
    if queries:
        yield ""
    if body is not None:
        yield f"Request\n\n```text\n{_shape(document, body['schema'])}\n```\n"
        name = body["schema"].get("$ref", "").rpartition("/")[2]
        for sample in document["components"]["schemas"].get(name, {}).get("examples", ()):
            yield f"```json\n{json.dumps(sample, indent=2)}\n```\n"
    if answer is not None:
        yield f"Response {good}\n\n```text\n{_shape(document, answer['schema'])}\n```\n"


def _shape(document: dict[str, Any], schema: dict[str, Any], depth: int = 0) -> str:
    """A schema as people read it: names, types, what may be null."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _shape(document, document["components"]["schemas"][name], depth)
    if "anyOf" in schema:
        kinds = [one for one in schema["anyOf"] if one.get("type") != "null"]
        shown = " | ".join(_shape(document, one, depth) for one in kinds)
        return shown + (" | null" if len(kinds) < len(schema["anyOf"]) else "")
    if "enum" in schema:
        return " | ".join(f'"{one}"' for one in schema["enum"])
    if schema.get("type") == "array":
        return f"[{_shape(document, schema.get('items', {}), depth)}]"
    if "properties" in schema:
        pad = "  " * (depth + 1)
        lines = [
            f"{pad}{name}: {_shape(document, one, depth + 1)}"
            for name, one in schema["properties"].items()
        ]
        return "{\n" + "\n".join(lines) + "\n" + "  " * depth + "}"
    if schema.get("type") == "object":
        inner = schema.get("additionalProperties")
        return f"{{…: {_shape(document, inner, depth)}}}" if isinstance(inner, dict) else "{…}"
    return str(schema.get("format") or schema.get("type") or "any")


_HEAD: Final = """# HTTP API

<!-- generated from the routes: make docs -->

Served by `tidegate serve` (loopback, port 8686, a token), and by Airflow's API server below
`/tidegate` with Airflow's own login. `tidegate openapi` prints the OpenAPI 3.1 document; a server
has it at `/api/v1/cdc/openapi.json`.

- **Roles.** Each route needs one: `read` (states, counts, positions; no row's value), `edit` (start
  work, hold and open gates, see rows), `admin` (go back in time, discard, create, delete).
- **Errors** are `application/problem+json`: `code` and `hint` are those of the
  [errors page](errors.md).
- **Lists** have `items`, `total` and `next`; give `next` as `cursor` for the following page.
- **ETag** is on every JSON answer to a GET; `If-None-Match` is answered with 304.
- **Idempotency-Key** on a POST that starts work: the same key starts it once and answers with the
  same run; with another body it is refused (409). Ask `…/runs/{run_id}` how it goes.
- Snapshot ids are text: they do not fit JavaScript's numbers.
"""
_LIVE: Final = """## `WS /api/v1/cdc/status`

Role `read`. First every pipeline, then those that changed, at most every two seconds:

```text
{type: "snapshot", pipelines: {<name>: {status: <as GET …/status>} | {problem: <problem>}}}
{type: "change", pipelines: {<name>: … | null}}
```

With `?view=overview`, what the page lives on: `{overview: <as in GET /overview>}` instead of the
status. A change has the figures without `lines`, and beside them the lines that changed:

```text
{type: "change", pipelines: {<name>: {overview: {…}, lines: {<table>: <line> | null}}}}
```

A browser cannot send an Authorization header with a WebSocket. It names the token as a subprotocol:
`new WebSocket(url, ["tidegate", "tidegate.token." + token])`. Under Airflow the session's cookie
counts, for pages of the same origin.
"""
