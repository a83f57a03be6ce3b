"""What the transcript of every good agent fulfils, whatever the agent does.

Shapes of params and results are not its business: decode them. These rules are about who may say what, and when.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct, field

from acp_agent.testing.link import is_id
from acp_agent.testing.transcript import Frame, Transcript, Update, update_of

__all__ = ["check_transcript", "find_faults"]

MAX_LINE = 8 * 1024 * 1024  # bytes that every client can read
STOP_REASONS = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
LADDER = {"pending": 0, "in_progress": 1, "completed": 2, "failed": 2}
IN_A_TURN = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan")
OPENING = ("session/load", "session/resume")
MAKING = ("session/new", "session/fork")
CLOSING = ("session/close", "session/delete")
NEEDED: Final = {
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    "terminal/create": ("terminal",),
    "terminal/output": ("terminal",),
    "terminal/wait_for_exit": ("terminal",),
    "terminal/kill": ("terminal",),
    "terminal/release": ("terminal",),
    "elicitation/create": ("elicitation",),
    "session/request_permission": (),
}


def check_transcript(transcript: Transcript) -> None:
    """Raise `AssertionError` that names each rule the agent broke, with the frame that broke it."""
    faults = find_faults(transcript)
    if faults:
        raise AssertionError("The agent broke the protocol:\n" + "\n".join(faults))


def find_faults(transcript: Transcript) -> list[str]:
    """Each rule that the agent broke, in words."""
    reader = _Reader()
    for frame in transcript:
        reader.read(frame)
    noise = [f"a line is no JSON object: {line[:200]!r}" for line in transcript.noise]
    return noise + reader.faults


class _Session(Struct):
    """What is known of one session. `calls` are the statuses of its tool calls."""

    is_open: bool = False
    prompts: int = 0
    loads: int = 0
    is_replaying: bool = False
    calls: dict[str, str] = field(default_factory=dict)


class _Reader:
    """Reads frames in order, and notes what is wrong."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._capabilities: dict[str, Any] = {}
        self._asked: dict[int | str, list[Frame]] = {}
        self._agent_ids: set[int | str] = set()
        self._sessions: dict[str, _Session] = {}

    def read(self, frame: Frame) -> None:
        if frame.direction == "to_agent":
            if frame.is_request and is_id(frame.id):
                self._note_request(frame)
            return
        if frame.size > MAX_LINE:
            self._fault(frame, f"is longer than {MAX_LINE} bytes")
        if frame.message.get("jsonrpc") != "2.0":
            self._fault(frame, "has no jsonrpc 2.0")
        if frame.is_response:
            self._read_response(frame)
        elif frame.is_request:
            self._read_request(frame)
        elif frame.method == "session/update":
            self._read_update(frame, update_of(frame))
        elif frame.method == "$/cancel_request" and frame.params.get("requestId") not in self._agent_ids:
            self._fault(frame, "cancels a request that the agent never made")

    def _fault(self, frame: Frame, what: str) -> None:
        self.faults.append(f"a frame {what}: {frame}")

    def _session(self, session_id: Any) -> _Session:
        return self._sessions.setdefault(str(session_id), _Session())

    # the client's requests and their answers ------------------------------------------------------------------------

    def _note_request(self, frame: Frame) -> None:
        self._asked.setdefault(frame.id, []).append(frame)
        session = self._session(frame.params.get("sessionId"))
        if frame.method == "initialize":
            self._capabilities = frame.params.get("clientCapabilities") or {}
        elif frame.method == "session/prompt":
            session.prompts += 1
        elif frame.method in OPENING:
            session.loads += 1

    def _read_response(self, frame: Frame) -> None:
        message = frame.message
        error = message.get("error")
        if ("result" in message) == ("error" in message):
            self._fault(frame, "has not exactly one of result and error")
        if "error" in message and not (isinstance(error, dict) and isinstance(error.get("code"), int)):
            self._fault(frame, "has an error without a code")
        if frame.id is None and "error" in message:
            return  # to a line that had no id
        asked = self._asked.get(frame.id) if is_id(frame.id) else None
        if not asked:
            self._fault(frame, "answers what was not asked, or was answered already")
            return
        request = asked.pop(0)
        self._end_request(frame, request, self._session(request.params.get("sessionId")), failed="error" in message)

    def _end_request(self, frame: Frame, request: Frame, session: _Session, *, failed: bool) -> None:
        result = frame.message.get("result") or {}
        if request.method == "session/prompt":
            session.prompts -= 1
            self._end_prompt(frame, session, None if failed else result.get("stopReason"), failed=failed)
        elif request.method in OPENING:
            session.loads -= 1
            session.is_replaying = False
            session.is_open = session.is_open or not failed
        elif failed:
            return
        elif request.method in MAKING:
            self._session(result.get("sessionId")).is_open = True
        elif request.method in CLOSING:
            session.is_open = False

    def _end_prompt(self, frame: Frame, session: _Session, stop_reason: Any, *, failed: bool) -> None:
        if not failed and stop_reason not in STOP_REASONS:
            self._fault(frame, "ends a turn with no known reason")
        is_refused = failed and frame.message["error"].get("code") == -32600  # it never ran
        left_open = [call_id for call_id, status in session.calls.items() if LADDER.get(status) != 2]
        if left_open and not session.prompts and not is_refused:
            self._fault(frame, f"ends a turn in which {', '.join(left_open)} stays open")

    # what the agent asks and tells ----------------------------------------------------------------------------------

    def _read_request(self, frame: Frame) -> None:
        if not is_id(frame.id) or frame.id in self._agent_ids:
            self._fault(frame, "has an id that is used already, or none")
        else:
            self._agent_ids.add(frame.id)
        if frame.method not in NEEDED:
            self._fault(frame, "asks what no client answers")
            return
        offered: Any = self._capabilities
        for name in NEEDED[frame.method]:
            offered = offered.get(name) if isinstance(offered, dict) else None
        if offered is None or offered is False:
            self._fault(frame, "asks what this client cannot do")

    def _read_update(self, frame: Frame, update: Update) -> None:
        session = self._session(update.session_id)
        if not (session.is_open or session.loads):
            self._fault(frame, "is about a session that is not open")
        if update.kind == "user_message_chunk":
            if not session.loads:
                self._fault(frame, "tells the user's own words to a client that knows them")
            elif not session.is_replaying:
                session.is_replaying = True
                session.calls.clear()
        elif update.kind in IN_A_TURN and not (session.prompts or session.loads):
            self._fault(frame, "comes outside of a turn")
        if update.kind in ("tool_call", "tool_call_update"):
            self._read_tool_call(frame, session, update)

    def _read_tool_call(self, frame: Frame, session: _Session, update: Update) -> None:
        call_id = str(update.fields.get("toolCallId"))
        before = session.calls.get(call_id)
        status = str(update.fields.get("status") or before or "pending")
        if update.kind == "tool_call" and before is not None:
            self._fault(frame, "announces a call for the second time")
        elif update.kind == "tool_call_update" and before is None:
            self._fault(frame, "is about a call that was not announced")
        elif LADDER.get(before or "pending") == 2:
            self._fault(frame, f"is about a call that is {before}")
        elif LADDER.get(status, 0) < LADDER.get(before or "pending", 0):
            self._fault(frame, f"goes back from {before} to {status}")
        session.calls[call_id] = status
