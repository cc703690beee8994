"""``prism explain``: which products of inputs a policy learned, and what they do."""
