"""The page at /docs: the OpenAPI document for people, without a script and without a network."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from everhash.serve.error_examples import PROBLEMS
from everhash.serve.errors import MEANINGS
from everhash.serve.fields import ID, LABEL, PAYLOAD, ROW_LABEL, THUMBNAIL
from everhash.wire.media import ARROW, JSON, NPY
from everhash.wire.routes import DESCRIBED, Route

NAMES = [one["title"] for one in (ID, LABEL, ROW_LABEL, PAYLOAD, THUMBNAIL)]
FIRST = ("rows", "like", "r", "k", "by")
"""Fields that a table starts with."""
TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
}
BODIES = (
    (JSON, "An object with the fields that a route names. For people, and for a few rows."),
    (
        NPY,
        "One array of shape (n, d), as <code>np.save</code> writes it, for <code>rows</code>. "
        "Options go into the query string: <code>/search?k=3&amp;payloads=true</code>.",
    ),
    (
        ARROW,
        "A table with the column <code>vector</code> and, where the route has them, "
        "<code>id</code>, <code>label</code>, <code>payload</code> (JSON text) and "
        "<code>thumbnail</code> (binary). Not compressed.",
    ),
)
"""Media types of bodies, and what they hold, as HTML."""
ANSWERS = f"""<p>An id is a whole number, or a text of 1 to 64 characters. A label is a text or a
number; several labels of a row are a list, none is null; bytes are
<code>{{"bytes": "00ff"}}</code>, tuples <code>{{"tuple": ["a", 1]}}</code>. What is no number in an
answer is null.</p>
<p>Answers are JSON. With <code>Accept: {ARROW}</code>, <code>/search</code> and
<code>/radius</code> answer a table instead, a row for each match: <code>query</code>,
<code>id</code>, <code>score</code>, <code>likeness</code>, <code>label</code> and
<code>guess</code> (JSON text), <code>novelty</code> and, with <code>payloads</code>,
<code>payload</code> (JSON text). A table has no explanations.</p>"""
ACCESS = """<p>Where keys are needed, send one as <code>Authorization: Bearer KEY</code> or
<code>X-Api-Key: KEY</code>. A key may read, or also write, or also administer. A page of another
site may ask if the service was started with <code>--cors ORIGIN</code> for its origin; the key goes
into the same header, and an image needs <code>&lt;img crossorigin&gt;</code>.</p>"""


def docs_page(document: dict[str, Any], address: str) -> str:
    """Return the page as HTML; examples ask the service at an address."""
    rows = "".join(_row(route) for route in DESCRIBED)
    parts = "".join(_section(route, document, address) for route in DESCRIBED)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>everhash: routes</title>
<link rel="stylesheet" href="static/docs.css">
</head>
<body>
<main>
<h1>Routes of this service</h1>
<p>everhash {escape(document["info"]["version"])}.
<a href="openapi.json">The same for programs</a> · <a href=".">The page of the collection</a>.</p>
<table>
<thead><tr><th>Route</th><th>Key</th><th>What it does</th></tr></thead>
<tbody>{rows}</tbody>
</table>
<section id="keys"><h2>Keys and other sites</h2>{ACCESS}</section>
<section id="bodies"><h2>Bodies and answers</h2>{_bodies()}{ANSWERS}</section>
<section id="errors"><h2>Errors</h2>{_errors()}</section>
{parts}
</main>
</body>
</html>
"""


def _row(route: Route) -> str:
    name = f'<a href="#{_anchor(route)}"><code>{route.method} {escape(route.path)}</code></a>'
    key = route.role or "none"
    return f"<tr><td>{name}</td><td>{key}</td><td>{escape(route.summary)}</td></tr>"


def _bodies() -> str:
    rows = "".join(f"<tr><td><code>{kind}</code></td><td>{what}</td></tr>" for kind, what in BODIES)
    head = "<tr><th>Content-Type</th><th>What the body is</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _errors() -> str:
    rows = "".join(
        f"<tr><td>{status}</td><td>{escape(text)}</td></tr>" for status, text in MEANINGS.items()
    )
    head = "<tr><th>Status</th><th>When</th></tr>"
    table = f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
    return _code("Every error has this form", json.dumps(PROBLEMS[422], indent=1)) + table


def _section(route: Route, document: dict[str, Any], address: str) -> str:
    operation = document["paths"].get(route.path, {}).get(route.method.lower(), {})
    title = f"{route.method} {escape(route.path)}"
    parts = [f'<section id="{_anchor(route)}"><h2><code>{title}</code></h2>']
    parts.append(f"<p>{escape(route.summary)}</p>")
    if options := [one for one in operation.get("parameters", []) if one["in"] == "query"]:
        parts.append(_table("In the query string", [{**one, **one["schema"]} for one in options]))
    if route.request is not None:
        form = document["components"]["schemas"][route.request]
        fields = [
            {"name": name, "required": name in form.get("required", ()), **field}
            for name, field in form["properties"].items()
        ]
        fields.sort(key=lambda field: FIRST.index(name) if (name := field["name"]) in FIRST else 9)
        parts.append(_table(f"Body ({', '.join(route.takes)})", fields))
    if route.example is not None:
        parts.append(_code("Example", _curl(route, address)))
        answer = json.dumps(route.example.answer, indent=1)
        parts.append(_code(f"Answer, status {route.example.status}", answer))
    elif route.returns != JSON:
        parts.append(f"<p>Returns <code>{escape(route.returns)}</code>.</p>")
    return "\n".join([*parts, "</section>"])


def _curl(route: Route, address: str) -> str:
    """Return a command that asks for the example."""
    target = f"{address}{route.path.replace('{job}', '1')}"
    asked = None if route.example is None else route.example.request
    if asked is None:
        return f"curl {'-X POST ' if route.method == 'POST' else ''}{target}"
    return f"curl {target} -H 'Content-Type: {JSON}' -d '{json.dumps(asked)}'"


def _table(title: str, fields: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(field['name'])}</code></td><td>{escape(_type(field))}</td>"
        f"<td>{escape(_default(field))}</td><td>{escape(field.get('description', ''))}</td></tr>"
        for field in fields
    )
    head = "<tr><th>Name</th><th>Type</th><th>Default</th><th>What</th></tr>"
    return f"<h3>{escape(title)}</h3><table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _default(field: dict[str, Any]) -> str:
    if field.get("required"):
        return "required"
    default = field.get("default")
    return "" if default is None else json.dumps(default)


def _type(schema: dict[str, Any]) -> str:
    """Return a type in words.

    >>> _type({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]})
    'list of whole numbers'
    """
    if schema.get("title") in NAMES:
        return str(schema["title"])
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        kinds = [_type(one) for one in schema["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        one, of, rest = _type(schema.get("items", {})).partition(" of ")
        return f"list of {one if ',' in one else one + 's'}{of}{rest}"
    return TYPES.get(str(schema.get("type")), "any JSON")


def _code(title: str, text: str) -> str:
    return f"<h3>{escape(title)}</h3><pre>{escape(text)}</pre>"


def _anchor(route: Route) -> str:
    return f"{route.method.lower()}{route.path.replace('/', '-').strip('{}')}".replace("{", "")
