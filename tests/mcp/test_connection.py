"""One server: calls, their ends, and what a broken server can and cannot do."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import UNSET

from acp_agent.content import ContentItem, EmbeddedResource, ImageContent, ResourceLink, TextContent
from acp_agent.errors import ToolError
from acp_agent.mcp.servers import McpServer
from acp_agent.tools.base import FormAnswer
from tests.mcp.support import (
    HERE,
    FakeContext,
    call,
    is_running,
    plain_server,
    process_ids,
    running,
    sdk_server,
    told,
    tool_named,
    toolset_of,
    until,
)

pytestmark = pytest.mark.anyio


async def test_the_tools_of_an_sdk_server_are_called_and_judged_by_their_hints() -> None:
    async with running(toolset_of(sdk_server())) as toolset:
        tools = {tool.name.rpartition("__")[2]: tool for tool in await toolset.tools()}
        assert (tools["add"].kind, tools["add"].permission, tools["add"].read_only) == ("read", "allow", True)
        assert (tools["look_up"].kind, tools["look_up"].permission) == ("fetch", "ask")
        assert (tools["move"].kind, tools["move"].permission, tools["move"].read_only) == ("other", "ask", False)
        assert tools["picture"].permission == "ask"
        assert tools["add"].description == "Add two numbers."
        assert "$ref" not in json.dumps(tools["move"].input_schema)

        output = await call(toolset, "add", {"a": 2, "b": 3})
        assert (told(output), output.failed, output.raw_output) == ("5", False, {"result": 5})
        assert (await call(toolset, "move", {"point": {"x": 1, "y": 2}})).raw_output == {"x": 2, "y": 3}
        picture = (await call(toolset, "picture")).told
        assert isinstance(picture, list)
        assert isinstance(picture[0], ImageContent)
        assert picture[0].mime_type == "image/png"
        sources = [item.content for item in (await call(toolset, "sources")).content if isinstance(item, ContentItem)]
        assert [type(block) for block in sources] == [TextContent, ResourceLink, EmbeddedResource]
        failure = await call(toolset, "fail")
        assert failure.failed
        assert "Error executing tool fail" in told(failure)
        assert toolset.instructions() == "# MCP server sdk\n\nUse add for sums."


async def test_arguments_are_judged_by_the_servers_schema_before_anybody_is_asked() -> None:
    async with running(toolset_of(sdk_server())) as toolset:
        tool: Any = await tool_named(toolset, "add")
        with pytest.raises(ToolError, match=r"The arguments do not fit: 'b' is a required property"):
            tool.describe({"a": 1}, None)
        tool = await tool_named(toolset, "move")
        with pytest.raises(ToolError, match=r"'no' is not of type 'integer' \(at \$\.point\.x\)"):
            tool.describe({"point": {"x": "no", "y": 1}}, None)


async def test_progress_list_changes_and_questions_of_a_server_are_answered() -> None:
    asked: list[tuple[str, Mapping[str, Any]]] = []

    async def ask_form(message: str, schema: Mapping[str, Any]) -> FormAnswer:
        asked.append((message, schema))
        return FormAnswer("accept", {"size": "XL"})

    async def sample(server: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": f"{server} says hello"}}

    async with running(toolset_of(sdk_server(sampling=True), ask_form=ask_form, sample=sample)) as toolset:
        context = FakeContext()
        assert told(await call(toolset, "copy", {"count": 3}, context)) == "copied"
        assert set(context.reports) <= {f"Copying ({number} of 3)" for number in (1, 2, 3)}
        assert context.reports

        assert told(await call(toolset, "order")) == "accept XL"
        assert asked[0][0] == "sdk: Which size?"
        assert list(asked[0][1]["properties"]) == ["size"]
        assert told(await call(toolset, "where")) == HERE.as_uri()
        assert told(await call(toolset, "think")) == "sdk says hello"

        assert told(await call(toolset, "learn")) == "learned"
        await until(lambda: "mcp__sdk__new_trick" in toolset.status()[0].tools)
        assert told(await call(toolset, "new_trick")) == "ta-da"


async def test_without_a_form_a_question_is_declined_and_without_a_model_sampling_is_refused() -> None:
    async with running(toolset_of(sdk_server())) as toolset:
        assert told(await call(toolset, "order")) == "decline"
        with pytest.raises(ToolError, match="Sampling not supported"):
            await call(toolset, "think")


async def test_a_question_goes_when_the_call_that_asked_it_is_cancelled() -> None:
    shown, retracted = anyio.Event(), anyio.Event()

    async def ask_form(message: str, schema: Mapping[str, Any]) -> FormAnswer:
        shown.set()
        try:
            await anyio.sleep_forever()
        finally:
            retracted.set()
        return FormAnswer("accept", {"size": "never"})

    async with running(toolset_of(sdk_server(), ask_form=ask_form)) as toolset:
        async with anyio.create_task_group() as group:
            group.start_soon(call, toolset, "order")
            await shown.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            await retracted.wait()
        assert told(await call(toolset, "add", {"a": 1, "b": 1})) == "2"


async def test_a_cancelled_call_is_cancelled_at_the_server_and_its_late_answer_is_dropped(tmp_path: Path) -> None:
    cancelled = tmp_path / "cancelled"
    async with running(toolset_of(plain_server("slow", env={"CANCEL_FILE": str(cancelled)}))) as toolset:
        for _ in range(2):
            with anyio.move_on_after(0.3) as scope:
                await call(toolset, "work")
            assert scope.cancelled_caught
            await until(lambda: cancelled.exists() and bool(cancelled.read_text()))
            cancelled.unlink()
        assert [status.state for status in toolset.status()] == ["connected"]


async def test_a_call_that_takes_too_long_fails_and_is_cancelled_at_the_server(tmp_path: Path) -> None:
    cancelled = tmp_path / "cancelled"
    server = plain_server("slow", call_timeout=0.3, env={"CANCEL_FILE": str(cancelled)})
    async with running(toolset_of(server)) as toolset:
        with pytest.raises(ToolError, match=r"did not answer within 0\.3 seconds; the call was cancelled"):
            await call(toolset, "work")
        await until(cancelled.exists)


async def test_a_crash_in_mid_call_is_a_failed_call_and_the_server_is_started_once_more(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    env = {"PID_FILE": str(pids), "DIED_FILE": str(tmp_path / "died")}
    async with running(toolset_of(plain_server("dies_once", env=env))) as toolset:
        with pytest.raises(ToolError, match="went away in the middle of the call"):
            await call(toolset, "work")
        assert told(await call(toolset, "work")) == "done"
        first, second = process_ids(pids)
        assert not is_running(first)
        assert is_running(second)
        assert toolset.take_new_failures() == []


async def test_a_server_that_dies_while_idle_is_started_once_more(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with running(toolset_of(plain_server("good", env={"PID_FILE": str(pids)}))) as toolset:
        (first,) = process_ids(pids)
        os.kill(first, signal.SIGKILL)
        await until(lambda: len(process_ids(pids)) == 2)
        assert told(await call(toolset, "work")) == "done"


async def test_banners_on_stdout_are_no_messages_and_harm_nothing() -> None:
    async with running(toolset_of(plain_server("banner"))) as toolset:
        assert told(await call(toolset, "work")) == "done"


async def test_a_flood_on_stderr_harms_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    async with running(toolset_of(plain_server("flood"))) as toolset:
        assert told(await call(toolset, "work")) == "done"
    output = capfd.readouterr()
    assert "falling" not in output.err
    assert output.out.count("falling") <= 200


async def test_a_result_of_ten_megabytes_is_cut_for_the_model_and_the_editor() -> None:
    async with running(toolset_of(plain_server("huge"))) as toolset:
        output = await call(toolset, "work")
        assert "bytes left out" in told(output)
        assert len(told(output)) < 40_000
        (item,) = output.content
        assert isinstance(item, ContentItem)
        assert isinstance(item.content, TextContent)
        assert len(item.content.text) < 60_000
        assert output.raw_output is UNSET


async def test_a_message_without_an_end_ends_the_connection_and_not_the_agent() -> None:
    async with running(toolset_of(plain_server("endless"))) as toolset:
        with pytest.raises(ToolError, match="went away in the middle of the call"):
            await call(toolset, "work")


async def test_a_server_that_never_lists_its_tools_again_keeps_them_and_does_not_hold_up_the_close() -> None:
    async with running(toolset_of(plain_server("stuck", start_timeout=30.0))) as toolset:
        assert told(await call(toolset, "work")) == "done"
        assert told(await call(toolset, "work")) == "done"
        with anyio.fail_after(6):
            await toolset.aclose()


async def test_a_server_without_tools_is_connected_and_has_none() -> None:
    async with running(toolset_of(plain_server("toolless"))) as toolset:
        assert [(status.state, status.tools) for status in toolset.status()] == [("connected", [])]


async def test_a_server_that_speaks_only_the_newer_protocol_is_spoken_to_in_it() -> None:
    async with running(toolset_of(plain_server("modern"))) as toolset:
        assert toolset.failures() == []
        assert told(await call(toolset, "work")) == "done"


async def test_odd_tool_names_are_made_safe_and_stay_apart() -> None:
    async with running(toolset_of(plain_server("names"))) as toolset:
        names = [tool.name for tool in await toolset.tools()]
        assert len(set(names)) == 6
        assert names[1] == "mcp__names__a_b"
        assert all(len(name) <= 64 and name.isascii() for name in names)
        assert told(await call(toolset, names[0])) == "done"


async def test_a_server_gets_a_small_environment_and_what_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for servers")
    async with running(toolset_of(plain_server("environment", env={"ADDED": "yes"}))) as toolset:
        environment = json.loads(told(await call(toolset, "work")))
        assert environment["ADDED"] == "yes"
        assert "PATH" in environment
        assert "OPENAI_API_KEY" not in environment


async def test_secrets_are_in_no_text_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    secret = "tok-5up3rs3cr3t"
    env = {"API_TOKEN": secret}
    servers = [plain_server(mode, env=env) for mode in ("exits", "refuses", "fails")]
    async with running(toolset_of(*servers)) as toolset:
        texts = [failure.reason for failure in toolset.failures()]
        assert "no configuration; API_TOKEN is [redacted]" in texts[0]
        with pytest.raises(ToolError) as refusal:
            await call(toolset, "refuses__work")
        texts.append(str(refusal.value))
        texts.append(told(await call(toolset, "fails__work")))
        assert "Bad token [redacted]" in texts[1]
        assert "token [redacted] expired" in texts[2]
        assert secret not in "".join(texts) + repr(servers) + repr(toolset.status())
    output = capsys.readouterr()
    assert secret not in output.out + output.err


async def test_a_working_directory_that_is_missing_is_a_named_failure(tmp_path: Path) -> None:
    from acp_agent.mcp.toolset import McpToolset

    gone = str(tmp_path / "gone")
    async with running(McpToolset([plain_server("good")], roots=[gone], cwd=gone)) as toolset:
        (failure,) = toolset.failures()
        assert failure.reason == f"No such file or directory: {gone}."


async def test_a_command_with_a_relative_path_is_refused_with_a_clear_text() -> None:
    async with running(toolset_of(McpServer(name="here", command="./server"))) as toolset:
        (failure,) = toolset.failures()
        assert "relative path" in failure.reason
