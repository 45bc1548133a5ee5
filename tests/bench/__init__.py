"""Benchmarks: commands, not tests. `python -m tests.bench --help`."""
