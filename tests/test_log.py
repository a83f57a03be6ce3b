"""Logs: what a program sets up, and what the library may say. Each in a process of its own, as the set-up is global."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from acp_agent.log import Repeats, get_logger


def run(code: str) -> str:
    """Run a program that must say nothing on stdout; what it says on stderr."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == ""
    return done.stderr


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_nothing_is_imported_before_the_first_event() -> None:
    run("""
import sys, pathlib, acp_agent.log as log
log.configure(file=pathlib.Path("/nowhere"), level="info")
log.get_logger("x").bind(a=1).debug("detail")
assert not {"structlog", "logging.handlers"} & sys.modules.keys()
""")


def test_events_go_to_the_file_as_json_lines_with_what_was_bound(tmp_path: Path) -> None:
    file = tmp_path / "state" / "agent.log"
    errors = run(f"""
import pathlib, acp_agent.log as log
log.configure(file=pathlib.Path({str(file)!r}))
logger = log.get_logger("acp_agent.part").bind(session="s")
logger.debug("detail")
logger.info("started", path=pathlib.Path("/x"), text="\\udcff")
logger.warning("odd")
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("failed")
logger.error("wrong")
""")
    assert errors == ""
    events = lines(file)
    assert [(event["event"], event["level"]) for event in events] == [
        ("started", "info"),
        ("odd", "warning"),
        ("failed", "error"),
        ("wrong", "error"),
    ]
    assert {event["logger"] for event in events} == {"acp_agent.part"}
    assert {event["session"] for event in events} == {"s"}
    assert events[0]["text"] == "\udcff"
    assert events[0]["path"] == "PosixPath('/x')"
    assert "ZeroDivisionError" in events[2]["exception"]
    assert all(event["timestamp"].endswith("Z") for event in events)


def test_details_are_kept_when_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "agent.log"
    run(f"""
import pathlib, acp_agent.log as log
log.configure(file=pathlib.Path({str(file)!r}), level="debug")
logger = log.get_logger("x")
logger.debug("first")
logger.debug("second")
""")
    assert [event["event"] for event in lines(file)] == ["first", "second"]


def test_what_other_libraries_say_goes_the_same_way(tmp_path: Path) -> None:
    file = tmp_path / "agent.log"
    errors = run(f"""
import logging, pathlib, warnings, acp_agent.log as log
log.configure(file=pathlib.Path({str(file)!r}))
logging.getLogger("httpx").info("HTTP %s", "GET", extra={{"status": 200}})
logging.getLogger("httpx").debug("detail")
warnings.warn("old thing")
log.get_logger("ours").info("hello")
""")
    assert errors == ""
    events = lines(file)
    assert [event["logger"] for event in events] == ["httpx", "py.warnings", "ours"]
    assert (events[0]["event"], events[0]["status"], events[0]["level"]) == ("HTTP GET", 200, "info")
    assert "old thing" in events[1]["event"]


@pytest.mark.parametrize(("option", "shown"), [("", ["fatal"]), (', stderr_level="warning"', ["odd", "fatal"])])
def test_stderr_is_silent_unless_asked_or_fatal(option: str, shown: list[str]) -> None:
    errors = run(f"""
import logging, acp_agent.log as log
log.configure({option.lstrip(", ")})
log.get_logger("x").info("fine")
log.get_logger("x").warning("odd")
logging.getLogger("y").critical("fatal")
""")
    assert [word for word in ("fine", "odd", "fatal") if word in errors] == shown
    assert "\x1b" not in errors


def test_a_file_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    errors = run(f"""
import pathlib, acp_agent.log as log
log.configure(file=pathlib.Path({str(tmp_path / "file" / "agent.log")!r}))
log.get_logger("x").error("lost")
""")
    assert errors == ""


def test_the_file_is_rotated(tmp_path: Path) -> None:
    file = tmp_path / "agent.log"
    run(f"""
import pathlib, acp_agent.log as log
log.configure(file=pathlib.Path({str(file)!r}), max_bytes=2000, backups=2)
for number in range(100):
    log.get_logger("x").info("event", number=number)
""")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.log", "agent.log.1", "agent.log.2"]
    assert all(path.stat().st_size <= 2000 for path in tmp_path.iterdir())


def test_the_last_set_up_is_the_one_that_counts(tmp_path: Path) -> None:
    run(f"""
import pathlib, acp_agent.log as log
folder = pathlib.Path({str(tmp_path)!r})
log.configure(file=folder / "first")
log.get_logger("x").info("one")
log.configure(file=folder / "second")
log.get_logger("x").info("two")
""")
    assert [[event["event"] for event in lines(tmp_path / name)] for name in ("first", "second")] == [["one"], ["two"]]


def test_a_closed_stderr_is_no_reason_to_fail() -> None:
    run("""
import os, acp_agent.log as log
log.configure(stderr_level="info")
os.close(2)
log.get_logger("x").error("lost")
""")


def test_equal_warnings_are_said_ever_more_seldom() -> None:
    repeats = Repeats(get_logger("x"))
    with structlog.testing.capture_logs() as events:
        for _ in range(150):
            repeats.warning("bad line", text="t")
        repeats.warning("other")
    assert [(event["event"], event["times"]) for event in events] == [
        ("bad line", 1),
        ("bad line", 10),
        ("bad line", 100),
        ("other", 1),
    ]
