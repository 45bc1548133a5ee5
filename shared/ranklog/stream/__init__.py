"""Frames, and the Kinesis stream that carries them; locally the same records in a directory."""
