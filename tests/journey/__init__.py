"""Whole paths: producer or file to answer."""
