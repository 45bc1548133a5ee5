"""The HTTP API: the same handler in Lambda, in `ranklog serve` and in tests; the tenant is the key's."""
