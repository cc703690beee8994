"""Self-contained pages: one file, no network requests, light and dark, readable on a phone.

Every page extends ``_templates/base.html``; text is escaped unless a template marks it safe.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from prism_motor._extras import missing_extra

if TYPE_CHECKING:
    from jinja2 import Environment


def render_page(template: str, *, script: str = "", **context: Any) -> str:
    """Return a complete page.

    A content security policy forbids all requests and all scripts except the one given here.

    Args:
        template: Name of a file in ``_templates``.
        script: Name of a JavaScript file in ``_templates`` that runs once the body is loaded.
        **context: Values for the template.
    """
    pages = environment()
    code = pages.get_template(script).render() if script else ""
    allowed = "'none'"
    if code:
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        allowed = f"'sha256-{digest}'"
    policy = (
        "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
        f"script-src {allowed}"
    )
    return pages.get_template(template).render(policy=policy, script=code, **context)


@cache
def environment() -> Environment:
    """Return the template environment with its filters."""
    try:
        import jinja2
    except ImportError as error:
        raise missing_extra("Pages", "analysis", error) from error
    pages = jinja2.Environment(
        loader=jinja2.PackageLoader("prism_motor", "_templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters["embed"] = embed
    pages.filters["text_columns"] = text_columns
    return pages


def embed(data: bytes, kind: str) -> str:
    """Return a file's content as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def text_columns(table: Any) -> list[bool]:
    """Return for each column of a table whether it holds text; numbers are right-aligned."""
    columns = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.columns)
    return [not all(_is_number(cell) for cell in column) for column in columns]


def _is_number(cell: Any) -> bool:
    pattern = r"[<+−-]?\s?\d[-\d.,/ ±%−[\]]*"
    return cell.kind == "missing" or re.fullmatch(pattern, cell.text) is not None
