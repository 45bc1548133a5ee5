"""Fold outcomes into one: order, deduplicate, cut, count. Tasks merge in any order."""
