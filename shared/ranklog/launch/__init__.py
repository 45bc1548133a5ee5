"""Starts ranks with their output in a spool, and tells how each ended."""
