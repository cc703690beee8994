"""What the pages of the documentation hold: blocks of code, and commands."""

import importlib.util
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
"""Every page, new ones included."""
MARK = re.compile(r"^\*Not run by our tests: (.+)\.\*$")
"""The one way to say, above a block and visible to readers, why it is not run."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    text: str
    before: str
    """The paragraph above it."""

    @property
    def name(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def reason(self):
        """Why it is not run, or None."""
        found = MARK.match(self.before.splitlines()[-1]) if self.before else None
        return found[1] if found else None

    @property
    def commands(self):
        """Its commands as lists of words; comments, redirections and variables are left out."""
        found = []
        for line in self.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            words = words[: words.index(">")] if ">" in words else words
            parts = [[]]
            for word in words:
                if word != "&&" and not (not parts[-1] and re.fullmatch(r"[A-Z_]+=.*", word)):
                    parts[-1].append(word.removesuffix(";"))
                if word == "&&" or word.endswith(";"):
                    parts.append([])
            found += [part for part in parts if part]
        return found


def read_blocks(page):
    """Return the blocks of a page."""
    found, lines, start = [], page.read_text(encoding="utf-8").splitlines(), None
    for number, line in enumerate(lines):
        fence = re.match(r"( *)```(\w*)$", line)
        if fence is None:
            assert not line.lstrip().startswith("```"), f"{page}:{number + 1}: {line}"
        elif start is None:
            start = (number, len(fence[1]), fence[2])
        else:
            first, indent, language = start
            text = "\n".join(one[indent:] for one in lines[first + 1 : number])
            found.append(Block(page, first + 1, language, text + "\n", _above(lines, first)))
            start = None
    assert start is None, f"{page}: a block does not end"
    return found


def _above(lines, number):
    paragraph = []
    for line in reversed(lines[:number]):
        if line.strip():
            paragraph.insert(0, line)
        elif paragraph:
            break
    return "\n".join(paragraph)


BLOCKS = [block for page in PAGES for block in read_blocks(page)]


def inline_commands(page):
    """Return the commands of prism inside sentences and tables; many are not complete."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = text.split("## Former names")[0]
    spans = re.findall(r"`(prism [a-z][^`]*)`", text)
    return [shlex.split(span.replace("\\|", "|"), comments=True) for span in dict.fromkeys(spans)]


def site_hooks():
    """Return the module that mkdocs calls while it builds the site."""
    spec = importlib.util.spec_from_file_location("build_site", DOCS / "build_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
