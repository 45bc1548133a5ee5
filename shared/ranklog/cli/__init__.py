"""The command line: parse, call one method, print."""
