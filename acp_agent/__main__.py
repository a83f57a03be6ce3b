"""`acp-agent`, and `python -m acp_agent`: the same program."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. What serves takes hold of stdin and stdout before anything is imported that could print."""
    from acp_agent.cli.arguments import parse

    arguments = parse(sys.argv[1:])
    if arguments.command == "serve":
        from acp_agent.transports.stdio import claim_stdio

        claim_stdio()
    from acp_agent.cli.run import run

    run(arguments)


if __name__ == "__main__":
    main()
