"""A scenario is played as the events of a model, with a place of its own for each session."""

from __future__ import annotations

from contextlib import aclosing
from itertools import count
from pathlib import Path

import anyio
import pytest

from acp_agent.content import TextContent
from acp_agent.errors import ModelError
from acp_agent.history import AssistantMessage, HistoryMessage, ToolResult, ToolUse, UserMessage
from acp_agent.models.base import Finish, ModelEvent, ModelRequest, TextDelta, ThoughtDelta, UsageDelta
from acp_agent.models.scenario import Scenario
from acp_agent.models.scripted import ScriptedModel

EXAMPLE = Path(__file__).parents[2] / "examples" / "scenario.toml"


class Conversation:
    """One session with a model: says a prompt, gives tool results, keeps the history as a turn would."""

    def __init__(self, model: ScriptedModel, session_id: str = "s1") -> None:
        self.model = model
        self.session_id = session_id
        self.history: list[HistoryMessage] = []
        self._numbers = count()

    async def prompt(self, text: str) -> list[ModelEvent]:
        self.history.append(UserMessage(f"m{next(self._numbers)}", [TextContent(text)]))
        return await self.read()

    async def give(self, *results: str) -> list[ModelEvent]:
        """Results of tools, "completed" or "failed", and the reply to them."""
        self.history += [ToolResult("call", "x", [], failed=result == "failed") for result in results]
        return await self.read()

    async def read(self) -> list[ModelEvent]:
        request = ModelRequest(session_id=self.session_id, messages=list(self.history))
        async with aclosing(self.model.stream(request)) as stream:
            events = [event async for event in stream]
        uses = [event for event in events if isinstance(event, ToolUse)]
        self.history.append(AssistantMessage(f"m{next(self._numbers)}", said(events), tool_uses=uses))
        return events


def said(events: list[ModelEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def uses(events: list[ModelEvent]) -> list[tuple[str, object]]:
    return [(event.name, event.arguments) for event in events if isinstance(event, ToolUse)]


def conversation(text: str) -> Conversation:
    return Conversation(ScriptedModel(Scenario.parse(text), pace=0))


ORDER = """
[[turns]]
replies = [{ steps = [{ type = "text", text = "first" }] }]
[[turns]]
when = "(?i)deploy"
replies = [{ steps = [{ type = "text", text = "deployed" }] }]
[[turns]]
replies = [{ steps = [{ type = "text", text = "second" }] }]
[[turns]]
when = "deploy|ship"
replies = [{ steps = [{ type = "text", text = "shipped" }] }]
"""

TOOLS = """
[[turns]]
  [[turns.replies]]
  steps = [{ type = "tool_use", name = "read", arguments = { path = "a" }, id = "t1" }]
  [[turns.replies]]
  after = "failed"
  steps = [{ type = "text", text = "no" }]
  [[turns.replies]]
  after = "completed"
  steps = [{ type = "tool_use", name = "write" }]
  [[turns.replies]]
  after = "failed"
  steps = [{ type = "text", text = "not written" }]
  [[turns.replies]]
  steps = [{ type = "text", text = "yes" }]
[[turns]]
replies = [{ steps = [{ type = "text", text = "next turn" }] }]
"""


@pytest.mark.anyio
async def test_each_step_is_its_event_and_the_reply_finishes_once() -> None:
    talk = conversation("""
        [[turns]]
        [[turns.replies]]
        steps = [
            { type = "thought", text = "hm" },
            { type = "sleep", seconds = 3600 },
            { type = "text", text = "la ", repeat = 3, every = 3600 },
            { type = "usage", input_tokens = 7, output_tokens = 2, context_window = 100, cost = 0.5 },
            { type = "tool_use", name = "read", arguments = { path = "a" }, id = "t1" },
            { type = "finish", reason = "max_tokens" },
        ]
    """)
    assert await talk.prompt("hi") == [
        ThoughtDelta("hm"),
        *[TextDelta("la ")] * 3,
        UsageDelta(7, 2, 100, 0.5),
        ToolUse("read", {"path": "a"}, "t1"),
        Finish("max_tokens"),
    ]


@pytest.mark.anyio
async def test_turns_without_when_are_used_once_in_order_and_a_matching_when_goes_first() -> None:
    talk = conversation(ORDER)
    prompts = ["hello", "Deploy", "ship it", "deploy", "hello", "deploy"]
    assert [said(await talk.prompt(text)) for text in prompts] == [
        "first",
        "deployed",
        "shipped",
        "deployed",
        "second",
        "deployed",
    ]


@pytest.mark.anyio
async def test_with_no_turn_left_it_says_so_and_ends_the_turn() -> None:
    talk = conversation(ORDER)
    await talk.prompt("one")
    await talk.prompt("two")
    for _ in range(2):
        events = await talk.prompt("three")
        assert said(events).startswith("The scenario has ended")
        assert events[-1] == Finish("end_turn")


@pytest.mark.anyio
async def test_with_no_reply_left_in_the_turn_it_says_so_and_ends_the_turn() -> None:
    talk = conversation('[[turns]]\nreplies = [{ steps = [{ type = "tool_use", name = "x" }] }]')
    await talk.prompt("go")
    events = await talk.give("completed")
    assert said(events).startswith("The scenario has ended")
    assert events[-1] == Finish("end_turn")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("first", "second", "texts"),
    [
        ("completed", "completed", ["", "", "yes"]),
        ("completed", "failed", ["", "", "not written"]),
        ("failed", None, ["", "no"]),
    ],
)
async def test_a_reply_is_chosen_by_how_the_last_tool_call_went(
    first: str, second: str | None, texts: list[str]
) -> None:
    talk = conversation(TOOLS)
    heard = [said(await talk.prompt("go")), said(await talk.give("completed", first))]
    if second:
        heard.append(said(await talk.give(second)))
    assert heard == texts


@pytest.mark.anyio
async def test_a_prompt_after_a_turn_that_was_cancelled_in_the_middle_starts_the_next_turn() -> None:
    talk = conversation(TOOLS)
    assert uses(await talk.prompt("go")) == [("read", {"path": "a"})]
    talk.history.append(ToolResult("call", "read", [], failed=True))
    assert said(await talk.prompt("go on")) == "next turn"


@pytest.mark.anyio
async def test_a_turn_cancelled_in_the_middle_of_a_reply_does_not_go_on_with_it() -> None:
    talk = conversation(ORDER.replace('text = "first"', 'text = "first", repeat = 1000000000'))
    talk.history.append(UserMessage("p1", [TextContent("go")]))
    async with aclosing(talk.model.stream(ModelRequest(session_id="s1", messages=talk.history))) as stream:
        assert [await anext(stream), await anext(stream)] == [TextDelta("first")] * 2
    assert said(await talk.prompt("go on")) == "second"


@pytest.mark.anyio
async def test_a_failed_reply_tried_again_with_the_same_history_gets_the_next_reply() -> None:
    talk = conversation("""
        [[turns]]
        [[turns.replies]]
        steps = [{ type = "error", message = "busy", kind = "overloaded", status = 529, retryable = true }]
        [[turns.replies]]
        steps = [{ type = "text", text = "am back" }]
    """)
    with pytest.raises(ModelError, match="busy") as caught:
        await talk.prompt("hi")
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == ("overloaded", 529, True)
    assert said(await talk.read()) == "am back"


@pytest.mark.anyio
async def test_each_session_has_its_own_place_and_a_forgotten_one_starts_again() -> None:
    model = ScriptedModel(Scenario.parse(ORDER), pace=0)
    one, two = Conversation(model, "one"), Conversation(model, "two")
    assert said(await one.prompt("hi")) == "first"
    assert said(await two.prompt("hi")) == "first"
    assert said(await one.prompt("hi")) == "second"
    model.forget("one")
    model.forget("never seen")
    assert said(await one.prompt("hi")) == "first"
    assert said(await two.prompt("hi")) == "second"


@pytest.mark.anyio
async def test_the_tools_get_arguments_of_their_own() -> None:
    model = ScriptedModel(Scenario.parse(TOOLS), pace=0)
    for session_id in ("one", "two"):
        events = await Conversation(model, session_id).prompt("go")
        (use,) = [event for event in events if isinstance(event, ToolUse)]
        assert use.arguments == {"path": "a"}
        use.arguments["path"] = "changed by a tool"


@pytest.mark.anyio
@pytest.mark.parametrize("seconds", ["3600", "inf"])
async def test_a_pause_ends_at_once_when_it_is_cancelled(seconds: str) -> None:
    scenario = Scenario.parse(f"""
        [[turns]]
        [[turns.replies]]
        steps = [{{ type = "text", text = "wait" }}, {{ type = "sleep", seconds = {seconds} }}]
    """)
    heard = anyio.Event()

    async def listen() -> None:
        request = ModelRequest(session_id="s1", messages=[UserMessage("m1", [TextContent("go")])])
        async with aclosing(ScriptedModel(scenario).stream(request)) as stream:
            async for _ in stream:
                heard.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            await heard.wait()
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_pieces_come_at_the_pace_that_was_asked() -> None:
    scenario = Scenario.parse(
        '[[turns]]\nreplies = [{ steps = [{ type = "text", text = "x", repeat = 3, every = 1 }] }]'
    )
    begun = anyio.current_time()
    with anyio.fail_after(5):
        await Conversation(ScriptedModel(scenario, pace=0.02)).prompt("go")
    assert anyio.current_time() - begun >= 0.04


# --- the scenarios that come with it ---


@pytest.fixture
def builtin() -> Conversation:
    return Conversation(ScriptedModel(Scenario.builtin(), pace=0))


@pytest.mark.anyio
async def test_the_demo_plans_reads_edits_runs_and_finishes(builtin: Conversation) -> None:
    replies = [await builtin.prompt(*builtin.model.scenario.prompts)]
    while uses(replies[-1]):
        replies.append(await builtin.give(*["completed"] * len(uses(replies[-1]))))
    names = [name for events in replies for name, _ in uses(events)]
    assert [name for name in names if name != "update_plan"] == ["read_file", "edit_file", "run_command"]
    assert names[-1] == "update_plan"
    assert said(replies[-1]).startswith("Done.")


@pytest.mark.anyio
async def test_the_demo_plan_moves_on_a_step_at_a_time(builtin: Conversation) -> None:
    events = await builtin.prompt("Fix the greeting")
    plans = []
    while uses(events):
        plans += [arguments["entries"] for name, arguments in uses(events) if name == "update_plan"]
        events = await builtin.give("completed")
    assert [[entry["status"] for entry in plan] for plan in plans] == [
        ["in_progress", "pending", "pending"],
        ["completed", "in_progress", "pending"],
        ["completed", "completed", "in_progress"],
        ["completed", "completed", "completed"],
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("completed", "text"), [(0, "Nothing was changed"), (1, "edit was not made"), (2, "test was not run")]
)
async def test_the_demo_ends_well_when_something_is_refused(builtin: Conversation, completed: int, text: str) -> None:
    await builtin.prompt("Fix the greeting, please.")
    for _ in range(completed):
        await builtin.give("completed", "completed")
    events = await builtin.give("completed", "failed")
    assert text in said(events)
    assert not uses(events)


def test_the_demo_edit_mends_the_bug() -> None:
    (edit,) = [
        step.arguments
        for turn in Scenario.builtin().turns
        for reply in turn.replies
        for step in reply.steps
        if getattr(step, "name", "") == "edit_file"
    ]
    source = 'def greeting(name: str) -> str:\n    return "Hello, name!"\n'
    names: dict[str, object] = {}
    exec(source.replace(edit["old_text"], edit["new_text"]), names)
    greeting = names["greeting"]
    assert callable(greeting)
    assert greeting("Ada") == "Hello, Ada!"


@pytest.mark.anyio
async def test_any_other_prompt_is_told_how_to_configure_a_model_any_number_of_times(builtin: Conversation) -> None:
    for text in ("hello", "hello é中文 😀", "", "hello"):
        events = await builtin.prompt(text)
        assert {type(event) for event in events} == {TextDelta, Finish}
        assert events[-1] == Finish("end_turn")
        for hint in ("No model is configured", "--model", "ACP_AGENT_MODEL", "pip install"):
            assert hint in said(events)
        assert len(said(events)) < 800


@pytest.mark.anyio
async def test_a_very_long_text_comes_slowly_enough_to_be_cancelled(builtin: Conversation) -> None:
    turns = builtin.model.scenario.turns
    long = next(turn for turn in turns if turn.when and turn.when.search("Write a very long text"))
    steps = [step for step in long.replies[0].steps if getattr(step, "every", 0)]
    assert sum(step.every * step.repeat for step in steps) >= 20
    assert len(said(await builtin.prompt("Write a very long story of at least 2000 words.")).split()) >= 2000


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("prompt", "tool"),
    [
        ("Read the file README.md and say what it is.", ("read_file", {"path": "README.md"})),
        ("Run `ls -la` in a shell and show the output.", ("run_command", {"command": "ls -la"})),
        ("Before you continue, ask me which of two options I prefer.", None),
    ],
)
async def test_small_prompts_use_one_tool_at_most(
    builtin: Conversation, prompt: str, tool: tuple[str, object] | None
) -> None:
    for outcome in ("completed", "failed"):
        events = await builtin.prompt(prompt)
        assert uses(events) == ([tool] if tool else [])
        if tool:
            events = await builtin.give(outcome)
        assert said(events)
        assert not uses(events)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("outcomes", "text"), [("cc c c", "Done"), ("cf", "nothing was deployed"), ("cc cf", "You said no")]
)
async def test_the_example_plays_each_of_its_ends(outcomes: str, text: str) -> None:
    example = Scenario.load(EXAMPLE)
    talk = Conversation(ScriptedModel(example, pace=0))
    events = await talk.prompt(example.prompts[0])
    for results in outcomes.split():
        events = await talk.give(*["completed" if result == "c" else "failed" for result in results])
    assert text in said(events)
    assert not uses(events)
