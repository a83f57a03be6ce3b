"""The version of this package, in one place: `pyproject.toml` reads it from here."""

from __future__ import annotations

__all__ = ["VERSION"]

VERSION = "0.1.0"
