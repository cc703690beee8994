"""One mechanism for training and evaluating, whatever the domain."""
