"""Existing log files to frames: envelopes, time, level, call site, groups. Byte for byte."""
