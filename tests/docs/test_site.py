"""The site: pages from elsewhere, and nothing from other machines."""

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.docs.pages import DOCS, ROOT, site_hooks

site = site_hooks()


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://unpkg.com/x.js"></script>',
        "<script defer src=//cdn.example.com/x.js></script>",
        '<link rel="stylesheet" href="https://fonts.example.com/css?family=Roboto">',
        '<link href="https://fonts.example.com" rel="preconnect" crossorigin>',
        '<img alt="badge" src="https://img.example.com/badge.svg">',
        "@font-face { src: url(https://fonts.example.com/a.woff2) }",
        "@import 'https://example.com/a.css';",
    ],
)
def test_requests_to_other_machines_are_found(text):
    (found,) = site.external_requests(text)
    assert "//" in found


def test_links_are_no_requests():
    text = (
        '<a href="https://pypi.org/project/mjlab/">mjlab</a> <script src="assets/a.js"></script>'
        '<link rel="canonical" href="https://example.com/"> <img src="pictures/track.webp">'
        '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    )
    assert site.external_requests(text) == []


def test_links_between_files_become_links_between_pages():
    text = "[a](../../results/README.md) [b](../tracking.md#deploy) [c](https://example.com/x)"
    changed = site.relink(text, "docs/howto/motion.md", "howto/motion.md")
    assert changed == "[a](../results.md) [b](../tracking.md#deploy) [c](https://example.com/x)"
    figure = site.relink("![x](table1-short/curves.png)", "results/README.md", "results.md")
    assert figure == "![x](results/table1-short/curves.png)"
    changed = site.relink("[x](docs/export.md#y)", "CHANGELOG.md", "changelog.md")
    assert changed == "[x](export.md#y)"


def test_docstrings_lose_markup_of_other_programs():
    text = "Start with :class:<code>~a.Layer</code>, a <code>class</code>."
    assert site.plain_roles(text) == "Start with <code>a.Layer</code>, a <code>class</code>."


def test_pictures_are_small():
    sizes = {file.name: file.stat().st_size for file in (DOCS / "pictures").iterdir()}
    assert max(sizes.values()) <= 150_000, sizes
    assert sum(sizes.values()) <= 1_500_000


@pytest.mark.slow
def test_the_site_builds(tmp_path):
    for package in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed (extra 'docs'); make docs builds the site")
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    built = (tmp_path / "site" / "results.html").read_text()
    assert "What they show" in built
