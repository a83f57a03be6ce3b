"""MCP servers as toolsets, through the official SDK.

`servers` and `toolset` know nothing of the SDK; everything else here imports it, and is itself imported, in a
worker thread, only when a session names a server.
"""
