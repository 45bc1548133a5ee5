"""Nouns only: tenant, run, stream, line, frame, query, index, plan, answer. Nothing here does I/O."""
