"""The command line: what it takes (`arguments`), and each command in a module of its own."""
