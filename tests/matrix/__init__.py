"""The crash and fault matrix: every actor stopped at every step, with faults between it and its servers.

`python -m tests.matrix`; see README.md.
"""
