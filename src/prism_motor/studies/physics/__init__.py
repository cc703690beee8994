"""Physics from first-order signals: what can a network of a given size learn about an arm?"""
