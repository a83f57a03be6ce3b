"""The installed program under load: much output, many calls, many files."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.editor import Pipe
from tests.e2e.test_process import resident

MIB = 1024 * 1024
KIB = 1024


def scenario(*turns: tuple[str, list[str]]) -> str:
    """A prompt, and the steps of its replies, for each turn."""
    lines = ['name = "loads"']
    for prompt, replies in turns:
        lines += ["[[turns]]", f'when = "{prompt}"']
        for steps in replies:
            lines += ["[[turns.replies]]", f"steps = [{steps}]"]
        lines += ["[[turns.replies]]", 'steps = [{ type = "text", text = "done" }]']
    return "\n".join(lines)


def use(name: str, **arguments: Any) -> str:
    given = ", ".join(f"{key} = {msgspec.json.encode(value).decode()}" for key, value in arguments.items())
    return f'{{ type = "tool_use", name = "{name}", arguments = {{ {given} }} }}'


def start(tmp_path: Path, text: str, *arguments: str) -> Pipe:
    (tmp_path / "scenario.toml").write_text(text)
    return Pipe("--scenario", str(tmp_path / "scenario.toml"), "--mode", "auto", *arguments, cwd=tmp_path)


def read_answer(pipe: Pipe, wanted: int, beside: int) -> dict[str, Any] | None:
    """Read until request `wanted` is answered; the answer to the request `beside`, if it came before."""
    found = None
    while (message := pipe.read()).get("id") != wanted or "method" in message:
        if message.get("id") == beside and "method" not in message:
            found = message
    return found


LINES = "i=0; while [ $i -lt 35000 ]; do echo line $i; i=$((i+1)); done"
OUTPUTS = {
    "35,000 lines": (LINES, "line 0\n", "line 34999\n"),
    "one long line": ("yes 0123456789 | head -c 600000 | tr -d '\\n'; echo end", "0123456789", "end\n"),
    "quotes": ("yes '\"' | head -c 600000", '"\n', '"\n'),
    "bytes that are no text": ("head -c 600000 /dev/urandom; echo end", "", "end\n"),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_much_output_costs_little_on_the_wire(kind: str, tmp_path: Path) -> None:
    command, beginning, end = OUTPUTS[kind]
    with start(tmp_path, scenario(("much", [use("run_command", command=command)]))) as pipe:
        pipe.open_session()
        pipe.received.clear()
        pipe.write(pipe.prompt("much"))
        pipe.answer(3)
        sizes = [len(msgspec.json.encode(message)) + 1 for message in pipe.received]
    final = [message["params"]["update"] for message in pipe.received if "completed" in str(message)][-1]
    text = final["content"][0]["content"]["text"]
    print(f"{kind}: {sum(sizes):,} bytes in {len(sizes)} lines, the longest {max(sizes):,}")
    assert text.startswith("```\n" + beginning)
    assert text.endswith(end + "```")
    assert "bytes left out" in text
    assert sum(sizes) < 500_000
    assert max(sizes) < 64 * KIB


def test_a_thousand_calls_in_a_session_leave_the_memory_as_it_was(tmp_path: Path) -> None:
    """After 200 calls everything is loaded; what 800 more leave behind is what the model was told."""
    (tmp_path / "notes.txt").write_text("a line of notes\n" * 20)
    reads = [
        use("read_file", path="notes.txt"),
        use("search_text", pattern="notes"),
        use("find_files", pattern="*.txt"),
    ]
    others = [use("edit_file", path="notes.txt", old_text="of notes", new_text="of notes", replace_all=True)]
    step = ", ".join([*reads * 2, use("list_directory"), *others, use("read_file", path="missing.txt")])
    replies = [f"{step}, {use('run_command', command='echo out')}"] + [f"{step}, {reads[0]}"] * 19
    with start(tmp_path, scenario(("calls", replies))) as pipe:
        pipe.open_session()
        sizes: list[int] = []
        for number in range(3, 8):
            pipe.write(pipe.prompt("calls", number))
            assert pipe.answer(number)["result"] == {"stopReason": "end_turn"}
            sizes.append(resident(pipe.process.pid))
            calls = sum("'tool_call'" in str(message) for message in pipe.received)
            pipe.received.clear()
            assert calls == 200
    print("resident:", [f"{size / MIB:.1f} MiB" for size in sizes])
    assert sizes[-1] - sizes[0] < 8 * MIB


def make_files(folder: Path, count: int) -> None:
    """Names of one small file, 250 in a folder, a tenth of them ignored."""
    (folder / ".gitignore").write_text("*.skip\n")
    (folder / "words.txt").write_text("some words in a line\nand other words in another line\n" * 4)
    for number in range(count // 250):
        (folder / f"folder-{number}").mkdir()
        inner = os.open(folder / f"folder-{number}", os.O_DIRECTORY)
        for index in range(250):
            os.link(folder / "words.txt", f"{index}.{'txt' if index % 10 else 'skip'}", dst_dir_fd=inner)
        os.close(inner)


def test_fifty_thousand_files_are_searched_while_cancels_of_another_session_are_answered(tmp_path: Path) -> None:
    make_files(tmp_path, 50_000)
    searching = use("search_text", pattern="w[o0]rds that are n[o0]where")
    with start(tmp_path, scenario(("search", [searching]), ("wait", ['{ type = "sleep", seconds = 300 }']))) as pipe:
        searcher = pipe.open_session()
        pipe.write({"id": 50, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}})
        waiter = pipe.answer(50)["result"]["sessionId"]
        pipe.write(pipe.prompt("search"))
        pipe.read_until(lambda message: "in_progress" in str(message))
        began = time.monotonic()
        pipe.session_id = waiter
        waits: list[float] = []
        searched: dict[str, Any] | None = None
        while searched is None:
            number = 100 + len(waits)
            pipe.write(pipe.prompt("wait", number))
            pipe.write({"id": 50 + number, "method": "session/list", "params": {}})
            searched = searched or read_answer(pipe, 50 + number, 3)
            asked = time.monotonic()
            pipe.write({"method": "session/cancel", "params": {"sessionId": waiter}})
            searched = searched or read_answer(pipe, number, 3)
            waits.append(time.monotonic() - asked)
            time.sleep(0.05)  # a person cancels now and then
        seconds = time.monotonic() - began
        (final,) = [message for message in pipe.received if "'completed'" in str(message)]
    print(f"search: {seconds:.1f} s; {len(waits)} cancels, the slowest {max(waits) * 1000:.0f} ms")
    assert final["params"]["sessionId"] == searcher
    assert final["params"]["update"]["content"][0]["content"]["text"] == "Nothing matches."
    assert len(waits) > 5
    assert max(waits) < 1
