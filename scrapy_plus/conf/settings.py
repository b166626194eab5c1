"""The settings of a project: what is declared, what it sets, and where each value comes from.

    from scrapy_plus.conf import settings
    settings.MAX_RETRY_TIMES

reads those of the project at hand (settings.py beside main.py, or in the current folder), and so does
`from scrapy_plus.conf.settings import MAX_RETRY_TIMES`.
Precedence: default < settings.py < a spider's custom_settings < SCRAPY_PLUS_* environment < command line.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scrapy_plus.conf.elsewhere import no_effect
from scrapy_plus.conf.layers import CANONICAL, OPTIONS, Added, Layer, Merged, merge
from scrapy_plus.conf.project import enter_project, find_project, read_settings_file
from scrapy_plus.conf.words import nearest
from scrapy_plus.errors import SettingsError

__all__ = ["Added", "Settings", "active", "load_settings", "use"]

PREFIX = "SCRAPY_PLUS_"
_log = logging.getLogger("scrapy_plus.conf")
_said: set[str] = set()
_active: Settings | None = None
_is_loading = False


class Settings:
    """All settings by name: `settings.NAME`, `settings["NAME"]` or `settings.get("NAME", default)`.

    A name is a declared setting, another name for one, or a constant of the project's own settings.py.
    Raises SettingsError with every mistake at once, a line each.
    """

    def __init__(self, layers: Iterable[Layer], *, project_dir: Path | None = None) -> None:
        self._layers = tuple(sorted(layers, key=lambda layer: layer.rank))
        self._merged: Merged = merge(self._layers)
        self.project_dir = project_dir
        if self._merged.problems:
            raise SettingsError(*self._merged.problems)
        for note in self._merged.notes:
            if note not in _said:
                _said.add(note)
                _log.warning("%s", note)

    def __getattr__(self, name: str) -> Any:
        if name.isupper() and not name.startswith("_"):
            try:
                return self[name]
            except KeyError as error:
                raise AttributeError(error.args[0]) from None
        raise AttributeError(f"settings have upper-case names, so there is no {name!r}")

    def __getitem__(self, name: str) -> Any:
        try:
            return self._merged.values[CANONICAL.get(name, name)]
        except KeyError:
            raise KeyError(unknown(name, self.names())) from None

    def __contains__(self, name: object) -> bool:
        return CANONICAL.get(str(name), name) in self._merged.values

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or `default` if there is no such setting."""
        return self._merged.values.get(CANONICAL.get(name, name), default)

    def source(self, name: str) -> str:
        """Where the value comes from: default, settings.py, spider NAME, environment or command line."""
        self[name]
        return self._merged.sources.get(CANONICAL.get(name, name), "default")

    def names(self) -> list[str]:
        """The declared settings in their order, then the project's own."""
        return list(self._merged.values)

    def as_dict(self) -> dict[str, Any]:
        """A copy: name to value."""
        return dict(self._merged.values)

    def for_spider(self, spider: Any) -> Settings:
        """The settings as one spider (its class, or itself) sees them, with its custom_settings."""
        return self.for_spiders([spider])[0]

    def for_spiders(self, spiders: Iterable[Any]) -> list[Settings]:
        """The same for several, so that the mistakes of all of them are reported at once."""
        found: list[Settings] = []
        problems: list[str] = []
        for spider in spiders:
            name = getattr(spider, "name", None) or getattr(spider, "__name__", "?")
            values = getattr(spider, "custom_settings", None) or {}
            if not isinstance(values, Mapping):
                problems.append(f"custom_settings of spider {name}: must be a dict of settings, not {values!r}")
                continue
            layer = Layer(f"spider {name}", values)
            others = (layer for layer in self._layers if not layer.source.startswith("spider "))
            try:
                found.append(Settings([*others, layer], project_dir=self.project_dir))
            except SettingsError as error:
                problems += [problem for problem in error.problems if problem not in problems]
        if problems:
            raise SettingsError(*problems)
        return found

    # What spiders and middlewares written for Scrapy ask; the types are checked already, where the setting is declared.

    def getbool(self, name: str, default: bool = False) -> bool:
        value = self.get(name, default)
        return value.lower() in ("1", "true", "yes", "on") if isinstance(value, str) else bool(value)

    def getint(self, name: str, default: int = 0) -> int:
        return int(self.get(name, default))

    def getfloat(self, name: str, default: float = 0.0) -> float:
        return float(self.get(name, default))

    def getlist(self, name: str, default: Iterable[Any] = ()) -> list[Any]:
        value = self.get(name, default)
        return value.split(",") if isinstance(value, str) else list(value or ())

    def getdict(self, name: str, default: Mapping[Any, Any] | None = None) -> dict[Any, Any]:
        return dict(self.get(name, default) or {})


def unknown(name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is no setting."""
    if advice := no_effect(name):
        return f"{name} has no effect here; {advice}"
    meant = nearest(name, known)
    return f"there is no setting {name}" + (f"; did you mean {meant}?" if meant else "")


def load_settings(
    project_dir: Path | str | None,
    *,
    overrides: Mapping[str, Any] | Sequence[Mapping[str, Any]] = (),
    environ: Mapping[str, str] = os.environ,
    given_by: str = "command line",
) -> Settings:
    """Reads settings.py of the folder (None: there is no project) and lays environment and overrides above it.

    Several overrides lie above each other, the last one uppermost; `given_by` says in messages where they come from.

    The folder becomes first on sys.path, and its settings those that this module's attributes answer.
    Raises SettingsError with every mistake at once, a line each.
    """
    folder = None if project_dir is None else Path(project_dir).resolve()
    stack = [overrides] if isinstance(overrides, Mapping) else overrides
    words = {key.removeprefix(PREFIX): word for key, word in environ.items() if key.startswith(PREFIX)}
    layers = [Layer("environment", words), *(Layer(given_by, values) for values in stack)]
    if folder is not None:
        layers.append(_project_layer(folder))
    settings = Settings(layers, project_dir=folder)
    if folder is not None:
        use(settings)
    return settings


def _project_layer(folder: Path) -> Layer:
    global _is_loading
    enter_project(folder)
    file = folder / "settings.py"
    _is_loading = True
    try:
        return Layer("settings.py", read_settings_file(file) if file.is_file() else {}, file)
    finally:
        _is_loading = False


def use(settings: Settings | None) -> None:
    """Makes these the settings that the module's attributes answer; None: look for the project again when asked."""
    global _active
    _active = settings


def active() -> Settings:
    """The settings in use, loaded from the project at hand if nothing was loaded yet."""
    if _is_loading:
        raise SettingsError(
            "settings.py reads scrapy_plus.conf.settings, which is made from it; "
            "take what it needs from scrapy_plus.conf.default_settings"
        )
    if _active is None:
        use(load_settings(find_project()))
    assert _active is not None
    return _active


def __getattr__(name: str) -> Any:
    if name.isupper() and not name.startswith("_"):
        return getattr(active(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *OPTIONS})
