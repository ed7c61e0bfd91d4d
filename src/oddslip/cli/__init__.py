"""The command line: parse, call, print. Thin; may import every package."""
