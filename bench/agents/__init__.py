"""The same agent on different libraries: `stream N`, `tools N`, `forever`."""
