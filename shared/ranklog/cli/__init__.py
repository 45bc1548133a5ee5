"""The command line: a command parses its words, calls one method and prints what came back."""
