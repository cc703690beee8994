"""Studies as commands: ``prism probe``, ``prism explain`` and all others, from one table."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Collection
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from tyro.conf import Positional, arg

from prism_motor.analysis.study import STUDIES, Study, find_studies, run_command

if TYPE_CHECKING:
    from tyro.extras import SubcommandApp


_RUNS = "Run folders, or names of shipped policies."


def add_studies(app: SubcommandApp, arguments: Collection[str]) -> None:
    """Add a command per study; those that are not asked for are listed without being imported.

    Args:
        app: Where to.
        arguments: The words of the command line.
    """
    for name, entry in STUDIES.items():
        command = make_command(name) if name in arguments else _listed(entry.summary)
        app.command(name=name)(command)


def _listed(summary: str) -> Callable[[], None]:
    """Return a command for the list of commands alone."""

    def command() -> None:
        pass

    command.__doc__ = summary
    return command


def make_command(name: str) -> Callable[..., None]:
    """Return the function of a study's command: every setting of its config is a flag."""
    studies = find_studies(name)
    runs = tuple[Path] if studies[0].single else tuple[Path, ...]
    options = {
        "runs": inspect.Parameter(
            "runs",
            inspect.Parameter.KEYWORD_ONLY,
            annotation=Annotated[Positional[runs], arg(metavar="RUN", help=_RUNS)],
        ),
        **_flags(studies),
        "out": _parameter(
            "out", Path | None, f"Where to write; default: FIRST RUN/analysis/{name}.", None
        ),
        "checkpoint": _parameter(
            "checkpoint", int | None, "Which checkpoint; default: the newest.", None
        ),
    }

    def command(runs: Any, out: Any, checkpoint: Any, **given: Any) -> None:
        run_command(name, runs, out=out, checkpoint=checkpoint, options=given)

    command.__name__ = name
    command.__doc__ = studies[0].help
    command.__signature__ = inspect.Signature(list(options.values()))  # type: ignore[attr-defined]
    command.__annotations__ = {key: one.annotation for key, one in options.items()}
    return command


def _parameter(name: str, kind: Any, text: str, default: Any) -> inspect.Parameter:
    annotation = Annotated[kind, arg(help=text)]
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, keyword, default=default, annotation=annotation)


def _flags(studies: Collection[Study[Any, Any]]) -> dict[str, inspect.Parameter]:
    """Return all settings; one that not all studies share says whose it is, and may be left out."""
    found: dict[str, inspect.Parameter] = {}
    for study in studies:
        hints, texts = get_type_hints(study.config), field_texts(study.config)
        for one in fields(study.config):
            text = texts.get(one.name, "")
            shared = all(_has(other, one.name, one.default) for other in studies)
            if shared:
                found[one.name] = _parameter(one.name, hints[one.name], text, one.default)
            elif one.name not in found:
                text = f"{study.domain.capitalize()} runs: {text} Default: {one.default}."
                found[one.name] = _parameter(one.name, hints[one.name] | None, text, None)
    return found


def _has(study: Study[Any, Any], name: str, default: object) -> bool:
    return any(one.name == name and one.default == default for one in fields(study.config))


def field_texts(config: type) -> dict[str, str]:
    """Return the docstrings under the fields of a dataclass, of its base classes too."""
    found: dict[str, str] = {}
    for kind in reversed(config.__mro__):
        try:
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        except (OSError, TypeError):  # built in, or typed at a prompt
            continue
        assert isinstance(tree, ast.ClassDef)
        for line, below in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(line, ast.AnnAssign) and isinstance(below, ast.Expr):
                text = ast.literal_eval(below.value)
                found[ast.unparse(line.target)] = " ".join(str(text).split())
    return found
