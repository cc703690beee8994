"""Arms that handle things: LIBERO and Meta-World behind one interface, experts, evaluation."""
