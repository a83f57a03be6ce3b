"""The agent that `crash_loop` kills: it plays scripts, and keeps its sessions where `CRASH_STATE` says."""

from __future__ import annotations

import os

from acp_agent.store.sqlite import SqliteStore
from tests.turns import make_script_agent

agent, _ = make_script_agent(lambda: SqliteStore(os.environ["CRASH_STATE"]))
