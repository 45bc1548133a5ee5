"""Numbered lines through the whole path, and back by a search: what is not found, found twice or altered shows."""
