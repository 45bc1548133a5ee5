"""What ranklog costs and where it breaks at a size nobody has run here: a discrete-event model, fed with
rates that the same run measures. `python -m tests.bench.scale` is its command."""
