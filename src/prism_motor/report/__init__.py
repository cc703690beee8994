"""Tables, figures and pages from run folders."""

from typing import TYPE_CHECKING

from prism_motor._lazy import lazy

if TYPE_CHECKING:
    from prism_motor.report.markdown import terminal_table
    from prism_motor.report.write import Report, write_report

__all__ = ["Report", "terminal_table", "write_report"]

__getattr__ = lazy(
    __name__, {"Report": "write", "terminal_table": "markdown", "write_report": "write"}
)
