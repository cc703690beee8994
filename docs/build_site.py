"""Hooks of mkdocs: pages whose text lives elsewhere, and a look at what was built.

``results/README.md`` and ``CHANGELOG.md`` become pages of the site. Other pages link to them as
files of the repository, and the links are turned into those of the site. A built page that would
load anything from another machine fails the build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = {"results/README.md": "results.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository that are pages of the site."""
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_LEAD = re.compile(r"^\*\*([^*\n]+?)\.?\*\*(?= )", re.MULTILINE)
_LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*?\b(?:src|data|srcset)\s*=\s*"
    r"[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|<link\b(?=[^>]*\brel\s*=\s*[\"']?(?:stylesheet|preload|preconnect|dns-prefetch|icon|modulepreload))"
    r"[^>]*?\bhref\s*=\s*[\"']?((?:https?:)?//[^\"'\s>]+)"
    r"|url\(\s*[\"']?((?:https?:)?//[^\"')\s]+)"
    r"|@import\s+[\"']((?:https?:)?//[^\"']+)",
    re.IGNORECASE,
)


def place_of(file: str) -> str | None:
    """Return where the site has a file of the repository, or None if it has it not."""
    if file in PAGES:
        return PAGES[file]
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    if file.startswith("results/") and file.endswith((".png", ".svg")):
        return file
    return None


def relink(text: str, home: str, page: str) -> str:
    """Turn links between files of the repository into links between pages of the site.

    Args:
        text: Markdown.
        home: The file that holds it, from the root of the repository.
        page: The page that it becomes, from the root of the site.
    """

    def changed(found: re.Match[str]) -> str:
        start, link, anchor, end = found.groups(default="")
        if "://" in link or link.startswith("mailto:"):
            return found[0]
        target = place_of(posixpath.normpath(posixpath.join(posixpath.dirname(home), link)))
        if target is None:
            return found[0]
        return f"{start}{posixpath.relpath(target, posixpath.dirname(page) or '.')}{anchor}{end}"

    return _LINK.sub(changed, text)


def figures(text: str) -> list[str]:
    """Return the pictures that a page of the repository's records shows."""
    return [link for _, link, _, _ in _LINK.findall(text) if link.endswith((".png", ".svg"))]


def external_requests(text: str) -> list[str]:
    """Return what a page or a style sheet would load from another machine."""
    return [next(filter(None, found)) for found in _LOADED.findall(text)]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages whose text lives elsewhere, and the pictures of the records."""
    from mkdocs.structure.files import File

    shown = {
        posixpath.normpath(posixpath.join(posixpath.dirname(home), link))
        for home in (*PAGES, *(f"docs/{file.src_uri}" for file in files.documentation_pages()))
        for link in figures((ROOT / home).read_text(encoding="utf-8"))
    }
    for home, page in PAGES.items():
        text = (ROOT / home).read_text(encoding="utf-8")
        if page == "results.md":  # leads become headings, for the table of contents
            text = _LEAD.sub(r"### \1\n\n", text).replace("\n\n ", "\n\n")
        files.append(File.generated(config, page, content=relink(text, home, page)))
    for figure in sorted(one for one in shown if one.startswith("results/")):
        files.append(File.generated(config, figure, abs_src_path=str(ROOT / figure)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn links to files of the repository into links to pages."""
    uri = page.file.src_uri
    return markdown if uri in PAGES.values() else relink(markdown, f"docs/{uri}", uri)


def plain_roles(html: str) -> str:
    """Remove the roles of Sphinx from names in docstrings."""
    return re.sub(r":(?:class|func|meth|mod|data|attr|obj|exc):<code>~?", "<code>", html)


def on_page_content(html: str, **_: Any) -> str:
    """Show docstrings without markup of other programs."""
    return plain_roles(html)


def on_post_build(config: Any) -> None:
    """Refuse a site that would load something from another machine."""
    from mkdocs.exceptions import PluginError

    site = Path(config["site_dir"])
    for file in sorted(site.rglob("*")):
        if file.suffix in (".html", ".css", ".svg"):
            found = external_requests(file.read_text(encoding="utf-8"))
            if found:
                raise PluginError(f"{file.relative_to(site)} would load {found[0]}")
