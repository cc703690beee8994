"""Self-contained pages: one file, no requests, light and dark, readable on a phone."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2127; --soft: #5c6670; --line: #e1e5e9;
  --ground: #ffffff; --panel: #f6f8f9; --accent: #0b6aa2; --good: #dff1e6; --bad: #fae5de; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --soft: #9aa5b1; --line: #2d343c;
  --ground: #14181c; --panel: #1b2026; --accent: #6cb6e4; --good: #17372a; --bad: #41261f; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 1140px; padding: 1.4rem 1.1rem 4rem; color: var(--ink);
  background: var(--ground); font: 16px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.9rem; line-height: 1.2; letter-spacing: -0.015em; margin: 0.6rem 0 0.5rem; }
h2 { font-size: 1.3rem; line-height: 1.3; letter-spacing: -0.01em; margin: 2.6rem 0 0.6rem; }
h3 { font-size: 1rem; margin: 1.7rem 0 0.4rem; }
p, ul, ol { margin: 0.4rem 0 0.8rem; max-width: 46rem; }
ul, ol { padding-left: 1.3rem; } li { margin: 0.35rem 0; }
a { color: var(--accent); }
figure { margin: 0.6rem 0; min-width: 0; }
figure img { display: block; width: 100%; height: auto; background: #fff; border-radius: 6px; }
figcaption, .note { color: var(--soft); font-size: 0.86rem; line-height: 1.5; max-width: 46rem; }
figcaption { margin-top: 0.35rem; }
.scroll { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 0; font-size: 0.86rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
th, td { padding: 0.42rem 0.7rem; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; vertical-align: top; }
th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--ground); }
thead th { white-space: normal; vertical-align: bottom; font-weight: 600;
  border-bottom: 1px solid var(--soft); }
tbody tr:last-child > * { border-bottom: none; }
td small { display: block; color: var(--soft); font-size: 0.92em; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, monospace; font-size: 0.88em; }
pre { background: var(--panel); padding: 0.75rem 0.9rem; border-radius: 6px; overflow-x: auto; }
@media (max-width: 480px) { body { font-size: 15px; padding: 0.8rem 0.9rem 3rem; }
  h1 { font-size: 1.5rem; } th, td { padding: 0.38rem 0.5rem; } }
"""


def render_page(title: str, sections: Iterable[str], *, style: str = "", script: str = "") -> str:
    """Return a whole page.

    A content policy forbids all requests and all scripts but the one given here.

    Args:
        title: Title of the window, as plain text.
        sections: Parts of the body, as HTML; empty ones are left out.
        style: Further CSS.
        script: JavaScript that runs when the body is there.
    """
    allowed = "'none'"
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        allowed = f"'sha256-{digest}'"
    policy = (
        "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
        f"script-src {allowed}"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(section for section in sections if section)
        + (f"\n<script>{script}</script>" if script else "")
        + "\n</body>\n</html>\n"
    )


def figure(picture: bytes, caption: str, kind: str = "svg+xml") -> str:
    """Return a picture with its caption.

    Args:
        picture: The file.
        caption: Plain text; also what those hear who cannot see the picture.
        kind: Kind of image: svg+xml, png, gif.
    """
    shown = image(picture, caption, kind)
    return f"<figure>{shown}<figcaption>{escape(caption)}</figcaption></figure>"


def image(picture: bytes, alternative: str, kind: str = "svg+xml") -> str:
    """Return a picture alone; scripts inside an SVG do not run."""
    return f'<img alt="{escape(alternative)}" src="{embed(picture, f"image/{kind}")}">'


def embed(data: bytes, kind: str) -> str:
    """Return a file as an address that holds all of it."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
