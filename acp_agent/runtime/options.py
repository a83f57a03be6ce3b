"""The settings of a session: one truth for modes, models and levels of thought, whatever the wire calls them."""

from __future__ import annotations

from acp_agent.errors import DecodeError
from acp_agent.events import Choice, ConfigOption
from acp_agent.models.base import Model
from acp_agent.runtime.definition import AgentDefinition
from acp_agent.runtime.permissions import MODES
from acp_agent.store.base import SessionHeader

__all__ = ["SessionOptions"]


class SessionOptions:
    """Values are checked before they change anything. A stored value that is gone falls back to the default."""

    def __init__(self, definition: AgentDefinition, header: SessionHeader) -> None:
        self._definition = definition
        self._values: dict[str, str | bool] = {}
        self.replaced: list[str] = []
        stored = dict(header.options) | {"mode": header.mode}
        for option_id in ("mode", "model", "thought_level"):  # in this order: levels are the chosen model's
            self._restore(option_id, stored.get(option_id))

    @property
    def mode(self) -> str:
        return str(self._values.get("mode", self._definition.mode))

    @property
    def model(self) -> Model | None:
        models = self._definition.models
        name = str(self._values.get("model", next(iter(models), "")))
        return models.get(name)

    @property
    def thought_level(self) -> str | None:
        """A level of the model that is chosen now, whatever was chosen for another."""
        option = self._thought_level()
        return str(option.value) if option is not None else None

    def as_list(self) -> list[ConfigOption]:
        """All options with their values, the mode first."""
        return [option for option in (self._mode(), self._model(), self._thought_level()) if option is not None]

    def modes(self) -> list[Choice]:
        return list(MODES) if self._definition.has_gates else []

    def values(self) -> dict[str, str | bool]:
        """What is kept: everything but the mode, which has its own place."""
        return {key: value for key, value in self._values.items() if key != "mode"}

    def set(self, option_id: str, value: str | bool) -> None:
        """Raises `DecodeError` for an unknown option or value; then nothing has changed."""
        option = self._option(option_id)
        if option is None:
            raise DecodeError(f"There is no option {option_id!r}.", "$.configId")
        allowed = [choice.value for choice in option.choices]
        if not isinstance(value, str) or value not in allowed:
            raise DecodeError(f"{option_id} cannot be {value!r}; it is one of {', '.join(allowed)}.", "$.value")
        self._values[option_id] = value

    def _restore(self, option_id: str, stored: str | bool | None) -> None:
        option = self._option(option_id)
        if option is not None:
            self._values[option_id] = option.value
        if stored is None or (option is not None and stored == option.value):
            return
        try:
            self.set(option_id, stored)
        except DecodeError:
            self._replace(option_id, stored, option)

    def _replace(self, option_id: str, stored: str | bool, option: ConfigOption | None) -> None:
        """Say that the stored value is gone, unless there was nothing to choose then as now."""
        if option is not None:
            self.replaced.append(f"{option.name} is {option.value} again: {stored} is gone.")
        elif option_id == "model" and stored not in self._definition.models and self.model is not None:
            self.replaced.append(f"Model is {self.model.name} again: {stored} is gone.")

    def _select(self, option_id: str, name: str, choices: list[Choice], default: str, category: str) -> ConfigOption:
        value = self._values.get(option_id, default)
        known = {choice.value for choice in choices}
        return ConfigOption(option_id, name, value if value in known else default, choices, category)

    def _option(self, option_id: str) -> ConfigOption | None:
        makers = {"mode": self._mode, "model": self._model, "thought_level": self._thought_level}
        return makers[option_id]() if option_id in makers else None

    def _mode(self) -> ConfigOption | None:
        modes = self.modes()
        return self._select("mode", "Mode", modes, self._definition.mode, "mode") if modes else None

    def _model(self) -> ConfigOption | None:
        models = self._definition.models
        if len(models) < 2:
            return None
        choices = [Choice(key, model.name) for key, model in models.items()]
        return self._select("model", "Model", choices, next(iter(models)), "model")

    def _thought_level(self) -> ConfigOption | None:
        model = self.model
        if model is None or not model.thought_levels:
            return None
        choices = [Choice(level, level.replace("_", " ").capitalize()) for level in model.thought_levels]
        return self._select("thought_level", "Thinking", choices, model.thought_levels[0], "thought_level")
