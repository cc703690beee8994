"""What happens when a hand touches something: traces and the numbers made of them."""

from prism_motor.manipulation.contact.diagnostics import Contact, diagnose
from prism_motor.manipulation.contact.formulas import (
    AFTER,
    BEFORE,
    THRESHOLD,
    align,
    contact_power,
    contact_work,
    first_contact,
    impulse,
)
from prism_motor.manipulation.contact.traces import ContactTrace, TraceRecorder

__all__ = [
    "AFTER",
    "BEFORE",
    "THRESHOLD",
    "Contact",
    "ContactTrace",
    "TraceRecorder",
    "align",
    "contact_power",
    "contact_work",
    "diagnose",
    "first_contact",
    "impulse",
]
