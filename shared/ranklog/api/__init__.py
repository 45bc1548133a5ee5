"""The HTTP API: one set of routes behind Lambda and behind ranklog serve."""
