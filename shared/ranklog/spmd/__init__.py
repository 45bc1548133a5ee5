"""Analyses of many ranks that should say the same: call sites, comparison. Pure."""
