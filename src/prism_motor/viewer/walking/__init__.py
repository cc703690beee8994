"""Walking policies, live."""
