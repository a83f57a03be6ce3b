"""Random turns, `kill -9` at a random moment, load, compare: again and again.

    python -m tests.e2e.crash_loop [ROUNDS] [SECONDS] [SEED]

What must be there after a kill: all that was answered; each message and call that was finished more than a moment
before; of a message that was still being written, what was said half a second before. What is there must be what was
shown, in its order, and the conversation must go on with a model that refuses a history with loose ends.
"""

from __future__ import annotations

import os
import queue
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Struct, field

from acp_agent.testing import Update
from tests.e2e.editor import Pipe
from tests.turns import Rows, answer_kind, merged, random_prompt

ROOT = str(Path(__file__).parents[2])
MOMENT = 0.05  # seconds: what was finished longer ago than that is kept
STREAMED = 0.5  # seconds: and of what was not finished, what was said before that
ROUNDS_A_SESSION = 8
LOST = "\x00lost"


class Shown(Struct):
    """A row that the client has seen: how it looks, when it was finished, and what of it was old enough at the kill."""

    key: tuple[str, str]
    value: Any
    finished_at: float | None = None
    history: list[tuple[float, Any]] = field(default_factory=list)


class Killed:
    """One life of the process: what was shown in it, with times."""

    def __init__(self, state: Path, random: Random) -> None:
        env = os.environ | {"CRASH_STATE": str(state), "PYTHONPATH": ROOT}
        self.pipe = Pipe("tests.e2e.crash_agent:agent", cwd=state, env=env)
        self.random = random
        self.frames: list[tuple[float, dict[str, Any]]] = []
        self.answers: dict[int, tuple[float, dict[str, Any]]] = {}
        self._arrived: queue.Queue[int | None] = queue.Queue()
        self._next_id = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.pipe.process.stdout is not None
        for line in self.pipe.process.stdout:
            when = time.monotonic()
            if not line.endswith(b"\n"):
                break  # the kill cut it
            message = msgspec.json.decode(line)
            self.frames.append((when, message))
            if "method" not in message:
                self.answers[message["id"]] = (when, message)
                self._arrived.put(message["id"])
            elif "id" in message:
                self._answer(message)
        self._arrived.put(None)

    def _answer(self, question: dict[str, Any]) -> None:
        params = question["params"]
        kind = answer_kind(params["toolCall"]["rawInput"])
        if kind == "error":
            reply: dict[str, Any] = {"error": {"code": -32603, "message": "no"}}
        elif kind == "cancelled":
            reply = {"result": {"outcome": {"outcome": "cancelled"}}}
        else:
            chosen = next(option["optionId"] for option in params["options"] if option["kind"] == kind)
            reply = {"result": {"outcome": {"outcome": "selected", "optionId": chosen}}}
        self._write({"id": question["id"]} | reply)

    def _write(self, message: dict[str, Any]) -> None:
        try:
            self.pipe.write(message)
        except BrokenPipeError:
            return  # it has been killed

    def ask(self, method: str, params: dict[str, Any]) -> int:
        self._next_id += 1
        self._write({"id": self._next_id, "method": method, "params": params})
        return self._next_id

    def wait(self, request_id: int) -> dict[str, Any]:
        while request_id not in self.answers:
            if self._arrived.get(timeout=20) is None:
                raise AssertionError(f"the agent ended by itself: {self.pipe.process.stderr.read()!r}")  # type: ignore[union-attr]
        return self.answers[request_id][1]

    def result(self, request_id: int) -> Any:
        message = self.wait(request_id)
        assert "error" not in message, message
        return message["result"]

    def kill(self) -> float:
        """When it was killed; then all that it said has been read."""
        when = time.monotonic()
        self.pipe.process.kill()
        self._reader.join(10)
        with self.pipe:
            return when


class Crashes:
    """Lives of one session after the other, each compared with the one before."""

    def __init__(self, state: Path, random: Random) -> None:
        self.state = state
        self.random = random
        self.session_id = ""
        self.number = 0
        self.base: list[tuple[str, str, Any]] = []  # rows that are certain
        self.shown: list[Shown] = []
        self.once: dict[str, tuple[float, Any]] = {}
        self.killed_at = 0.0
        self.answered: set[int] = set()
        self.known = (0, 0)
        self.mode_asked = 0
        self.was_running = False
        self.tally = {
            "rounds": 0,
            "rows": 0,
            "killed in a turn": 0,
            "cut calls": 0,
            "lost after their moment": 0,
            "kept before it was told": 0,
        }

    def round(self) -> None:
        life = Killed(self.state, self.random)
        place = {"cwd": str(self.state), "mcpServers": []}
        life.result(life.ask("initialize", {"protocolVersion": 1}))
        if self.tally["rounds"] % ROUNDS_A_SESSION == 0:
            self.session_id = life.result(life.ask("session/new", place))["sessionId"]
            self.base, self.shown, self.answered, self.once = [], [], set(), {}
            mark = len(life.frames)
        else:
            life.result(life.ask("session/load", {"sessionId": self.session_id} | place))
            mark = len(life.frames)
            self.compare(life.frames[:mark])
        self.check_known(life)
        prompts = self.act(life)
        self.killed_at = life.kill()
        self.note(life, life.frames[mark:], prompts)
        self.tally["rounds"] += 1
        self.was_running = any(number not in life.answers for number in prompts)
        self.tally["killed in a turn"] += self.was_running

    # what is done ---------------------------------------------------------------------------------------------------

    def check_known(self, life: Killed) -> None:
        """The model still knows what was answered, and has no reason to complain."""
        self.number += 1
        asked = self.say(life, [{"type": "text", "text": f"known {self.number}"}])
        self.known = (asked, self.number)
        life.result(asked)
        said = "".join(
            message["params"]["update"]["content"]["text"]
            for _, message in life.frames
            if message.get("params", {}).get("update", {}).get("sessionUpdate") == "agent_message_chunk"
            and message["params"]["update"]["content"].get("text", "").startswith("[")
        )
        known = msgspec.json.decode(said[said.rindex("[") :])
        assert all(isinstance(number, int) for number in known), f"a strict model would refuse: {known}"
        assert self.answered <= set(known), f"forgotten: {self.answered - set(known)}"

    def say(self, life: Killed, blocks: list[dict[str, Any]]) -> int:
        return life.ask("session/prompt", {"sessionId": self.session_id, "prompt": blocks})

    def act(self, life: Killed) -> dict[int, list[dict[str, Any]]]:
        """Random prompts, and the end at a random moment."""
        asked = {self.known[0]: [{"type": "text", "text": f"known {self.known[1]}"}]}
        for _ in range(self.random.randint(1, 3)):
            self.number += 1
            blocks = random_prompt(self.random, self.number, pause=0.3, used=70)
            asked[self.say(life, blocks)] = blocks
        time.sleep(self.random.uniform(0, 0.7))
        if self.random.random() < 0.3:
            mode = self.random.choice(("plan", "auto"))
            self.mode_asked = life.ask("session/set_mode", {"sessionId": self.session_id, "modeId": mode})
            time.sleep(self.random.uniform(0, 0.1))
        return asked

    # what was shown -------------------------------------------------------------------------------------------------

    def note(self, life: Killed, frames: list[tuple[float, dict[str, Any]]], prompts: dict[int, Any]) -> None:
        """Keep what was shown in this life, each row with the time at which it was finished."""
        self.shown, rows, waiting = [], Rows(), list(prompts)
        begun: set[int] = set()
        for when, message in frames:
            if message.get("method") == "session/update":
                update = update_of(message)
                if update.kind.endswith("_chunk") or "tool_call" in update.kind or update.kind == "plan":
                    self._begin(rows, waiting[0], prompts, begun, when)
                rows.apply(update)
                self._see(rows, update, when)
            elif message.get("id") in prompts and "method" not in message:
                self._answered(rows, message, prompts, begun, when)
                waiting.remove(message["id"])
        if self.mode_asked and self.mode_asked not in life.answers:
            self.once.pop("mode", None)  # it may have been set or not
        self.mode_asked = 0

    def _begin(self, rows: Rows, request_id: int, prompts: dict[int, Any], begun: set[int], when: float) -> None:
        if request_id not in begun:
            begun.add(request_id)
            rows.add_prompt(prompts[request_id])
            kind, key, value = rows.rows[-1]
            self.shown.append(Shown((kind, key), value, when))

    def _answered(
        self, rows: Rows, message: dict[str, Any], prompts: dict[int, Any], begun: set[int], when: float
    ) -> None:
        reason = message.get("result", {}).get("stopReason")
        if reason != "cancelled" or message["id"] in begun:
            self._begin(rows, message["id"], prompts, begun, when)
        for shown in self.shown:
            shown.finished_at = shown.finished_at or -1.0
            if shown.finished_at > 0:
                shown.finished_at = -1.0  # answered: kept, however short ago
        if message["id"] in begun and reason != "refusal" and "known" not in str(prompts[message["id"]][0]):
            self.answered.add(msgspec.json.decode(prompts[message["id"]][0]["text"])["number"])

    def _see(self, rows: Rows, update: Update, when: float) -> None:
        """An update changed its row; a message is finished when anything else is said."""
        looks = {(kind, key): value for kind, key, value in rows.rows}
        by_key = {shown.key: shown for shown in self.shown}
        for key, value in looks.items():
            if key not in by_key:
                self.shown.append(Shown(key, value))
        for shown in self.shown:
            value = looks[shown.key]
            if not shown.history or shown.history[-1][1] != value:
                shown.history.append((when, value))
                shown.value = value
            over = value["status"] in ("completed", "failed") if shown.key[0] == "call" else shown.key != row_of(update)
            if over and shown.finished_at is None:
                shown.finished_at = when
        for name, value in rows.state.items():
            if name not in self.once or self.once[name][1] != value:
                self.once[name] = (when, value)

    # what is there --------------------------------------------------------------------------------------------------

    def compare(self, frames: list[tuple[float, dict[str, Any]]]) -> None:
        updates = [update_of(message) for _, message in frames if message.get("method") == "session/update"]
        replay = Rows(updates).numbered()
        found = replay.rows
        assert found[: len(self.base)] == self.base, "what was there before is not what it was"
        rest = {(kind, key): value for kind, key, value in found[len(self.base) :]}
        for shown in self.shown:
            self._compare_row(shown, rest.get(shown.key, LOST))
        expected = [shown.key for shown in self.shown if shown.key in rest]
        assert [key for key in rest if key in expected] == expected, "the order changed"
        for name in ("plan", "mode", "title"):
            when, value = self.once.get(name, (self.killed_at, None))
            if when < self.killed_at - MOMENT:
                value = "ask" if value == "auto" else value
                found_value = replay.state.get(name)
                is_newer = found_value != value and self.was_running  # kept, and killed before it could be told
                self.tally["kept before it was told"] += is_newer
                assert is_newer or found_value == value, f"{name} is {found_value}, it was {value}"
        assert all(value["status"] in ("completed", "failed") for (kind, _), value in rest.items() if kind == "call")
        self.base, self.once = found, {}
        self.tally["rows"] += len(rest)
        self.tally["cut calls"] += sum("Interrupted: the agent" in str(value) for value in rest.values())

    def _compare_row(self, shown: Shown, value: Any) -> None:
        old = self.killed_at - MOMENT
        if shown.finished_at is not None and shown.finished_at < old:
            ago = "answered" if shown.finished_at < 0 else f"finished {self.killed_at - shown.finished_at:.3f} s before"
            assert value == shown.value, f"{shown.key} was {ago}, and is not what was shown:\n{shown.value}\n{value}"
        elif value == LOST or shown.key[0] == "user":
            self.tally["lost after their moment"] += value == LOST
            said = [look for when, look in shown.history if when < self.killed_at - STREAMED]
            assert value != LOST or not said, f"{shown.key} was begun long before, and is lost"
        elif shown.key[0] != "call":
            said = [look for when, look in shown.history if when < self.killed_at - STREAMED]
            one, other = sorted((text_of(shown.value), text_of(value)), key=len)
            assert other.startswith(one), f"{shown.key} says something else"
            assert not said or len(text_of(value)) >= len(text_of(said[-1])), f"{shown.key} lost what was said long ago"


def row_of(update: Update) -> tuple[str, str] | None:
    """The row that an update is a part of, for a message."""
    return (update.kind, update.fields["messageId"]) if update.kind.endswith("_chunk") else None


def text_of(blocks: list[dict[str, Any]]) -> str:
    return "".join(str(block.get("text", block)) for block in merged(blocks))


def update_of(message: dict[str, Any]) -> Update:
    fields = message["params"]["update"]
    return Update(0, 0.0, message["params"]["sessionId"], fields["sessionUpdate"], fields)


def run_rounds(state: Path, rounds: int, seconds: float, seed: int) -> dict[str, int]:
    """As many rounds as there is time for, `rounds` at most; raises `AssertionError` at the first that lost something.

    The tally says what there was to lose.
    """
    end = time.monotonic() + seconds
    crashes = Crashes(state, Random(seed))
    for number in range(rounds):
        if time.monotonic() > end:
            break
        try:
            crashes.round()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, round {number}: {error}") from error
    return crashes.tally


def main() -> None:
    rounds, seconds, seed = (int(text) for text in [*sys.argv[1:], "500", "3600", str(time.time_ns() % 10**6)][:3])
    with tempfile.TemporaryDirectory() as state:
        print(f"seed {seed}:", run_rounds(Path(state), rounds, seconds, seed))


if __name__ == "__main__":
    main()
