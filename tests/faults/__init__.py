"""Faults of distributed training: jobs that never ran, the logs they would leave, what was wrong.

`simulate.simulate(seed)` makes a job and its truth, `score.score(verdict)` asks a verdict about many
of them. README.md tells each fault's story. Nothing here reads the analyses that it tries.
"""
