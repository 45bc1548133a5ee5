"""The Python client: a store or an API in, answers out."""
