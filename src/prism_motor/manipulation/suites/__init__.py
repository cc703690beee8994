"""The benchmarks that tasks come from."""
