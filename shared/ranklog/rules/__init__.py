"""Parse-and-extract rules and presets: text to typed metadata, never at a line's cost."""
