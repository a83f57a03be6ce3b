"""The editor behind the test client."""

from __future__ import annotations
