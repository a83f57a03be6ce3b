"""`python -m bench [ROUNDS] [WORKLOAD ...]`: each round runs all agents in random order; ratios are taken in it."""

from __future__ import annotations

import random
import sys
from statistics import median

from bench.client import Client
from bench.workloads import WORKLOADS, Figures

OURS, PEER = "acp_agent", "official SDK"
AGENTS = {
    OURS: [sys.executable, "-m", "bench.agents.ours"],
    PEER: [sys.executable, "-m", "bench.agents.official"],
}


def measure(agent: str, workload: str) -> Figures:
    client = Client(AGENTS[agent])
    try:
        return WORKLOADS[workload](client)
    finally:
        client.close()


def run(workload: str, rounds: int) -> None:
    """Print a row for each figure: the medians of both, and the median of the ratios."""
    found: dict[str, list[Figures]] = {agent: [] for agent in AGENTS}
    for _ in range(rounds):
        for agent in random.sample(sorted(AGENTS), len(AGENTS)):
            found[agent].append(measure(agent, workload))
    for figure in found[OURS][0]:
        ours = [figures[figure] for figures in found[OURS]]
        peer = [figures[figure] for figures in found[PEER]]
        ratio = median(mine / other for mine, other in zip(ours, peer, strict=True))
        print(f"{workload:30} {figure:18} {median(ours):12.3f} {median(peer):12.3f} {ratio:8.3f}", flush=True)


def main() -> None:
    arguments = sys.argv[1:]
    rounds = int(arguments.pop(0)) if arguments and arguments[0].isdigit() else 5
    print(f"{'workload':30} {'figure':18} {OURS:>12} {PEER:>12} {'ratio':>8}")
    for workload in arguments or WORKLOADS:
        run(workload, rounds)


if __name__ == "__main__":
    main()
