"""What every good agent's transcript fulfils."""

from __future__ import annotations

from acp_agent.testing.transcript import Transcript

__all__ = ["check_transcript", "find_faults"]


def check_transcript(transcript: Transcript) -> None:
    """Raise `AssertionError` that names each rule the agent broke, with the frame that broke it."""
    faults = find_faults(transcript)
    if faults:
        raise AssertionError("The agent broke the protocol:\n" + "\n".join(faults))


def find_faults(transcript: Transcript) -> list[str]:
    return [f"a line is no JSON object: {line[:200]!r}" for line in transcript.noise]
