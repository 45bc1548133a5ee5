"""Scatter tasks and evaluate one with DuckDB."""
