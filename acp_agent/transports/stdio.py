"""The wire to the client that started this process, over what were its stdin and stdout."""

from __future__ import annotations

from acp_agent.transports.claim import claim_stdio
from acp_agent.transports.descriptors import DescriptorWire

__all__ = ["StdioWire", "claim_stdio", "stdio_stream"]

_PATIENCE = 0.1  # seconds for the last stray lines; without any, it takes no time


class StdioWire(DescriptorWire):
    """The wire to the client that started this process. There can be one."""

    def __init__(self) -> None:
        claim = claim_stdio()
        super().__init__(claim.input, claim.output)
        self._stray = claim.stray

    async def aclose(self) -> None:
        """The process may end after this, so what it printed last is logged first."""
        await super().aclose()
        self._stray.flush(_PATIENCE)


def stdio_stream() -> StdioWire:
    """A wire over the stdin and stdout of this process, which it claims if nobody has yet."""
    return StdioWire()
