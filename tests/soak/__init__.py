"""Minutes of a whole system under random faults: see `python -m tests.soak --help`."""
