"""PRISM actors in other libraries; each module needs only its library."""
