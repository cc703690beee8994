"""``prism probe``: what can be read linearly from the features of trained policies."""
