"""Frames to rows to segment and index, once: a pure function of the frames' bytes."""
