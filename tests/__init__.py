"""Tests of ranklog; `python -m tests` runs all of them, linters and types included."""
