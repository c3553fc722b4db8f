"""The page at /docs: the OpenAPI document for people, without a script and without a network."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from everhash.wire.media import JSON
from everhash.wire.routes import DESCRIBED, Route


def docs_page(document: dict[str, Any]) -> str:
    """Return the page as HTML."""
    rows = "".join(_row(route) for route in DESCRIBED)
    parts = "".join(_section(route, document) for route in DESCRIBED)
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
<a href="openapi.json">The same for programs</a> · <a href=".">The page of the collection</a>.
Where keys are needed, send one as <code>Authorization: Bearer KEY</code>.</p>
<table>
<thead><tr><th>Route</th><th>Key</th><th>What it does</th></tr></thead>
<tbody>{rows}</tbody>
</table>
{parts}
</main>
</body>
</html>
"""


def _row(route: Route) -> str:
    name = f'<a href="#{_anchor(route)}"><code>{route.method} {escape(route.path)}</code></a>'
    key = route.role or "none"
    return f"<tr><td>{name}</td><td>{key}</td><td>{escape(route.summary)}</td></tr>"


def _section(route: Route, document: dict[str, Any]) -> str:
    operation = document["paths"].get(route.path, {}).get(route.method.lower(), {})
    title = f"{route.method} {escape(route.path)}"
    parts = [f'<section id="{_anchor(route)}"><h2><code>{title}</code></h2>']
    parts.append(f"<p>{escape(route.summary)}</p>")
    options = operation.get("parameters", [])
    if options:
        parts.append(_list("In the query string", options))
    if route.request is not None:
        fields = document["components"]["schemas"][route.request]["properties"]
        described = [{"name": name, **field} for name, field in fields.items()]
        parts.append(_list(f"Body ({', '.join(route.takes)})", described))
    if route.example is not None:
        if route.example.request is not None:
            parts.append(_code("Example", route.example.request))
        parts.append(_code(f"Answer, status {route.example.status}", route.example.answer))
    elif route.returns != JSON:
        parts.append(f"<p>Returns <code>{escape(route.returns)}</code>.</p>")
    return "\n".join([*parts, "</section>"])


def _list(title: str, fields: list[dict[str, Any]]) -> str:
    items = "".join(
        f"<li><code>{escape(field['name'])}</code> {escape(field.get('description', ''))}</li>"
        for field in fields
    )
    return f"<h3>{escape(title)}</h3><ul>{items}</ul>"


def _code(title: str, value: Any) -> str:
    return f"<h3>{escape(title)}</h3><pre>{escape(json.dumps(value, indent=1))}</pre>"


def _anchor(route: Route) -> str:
    return f"{route.method.lower()}{route.path.replace('/', '-').strip('{}')}".replace("{", "")
