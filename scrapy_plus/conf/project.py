"""Where a project is, and what its settings.py says."""

from __future__ import annotations

import ast
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from scrapy_plus.errors import SettingsError

_entered: Path | None = None
_MODULE = "settings"


def find_project(start: Path | None = None, *, parents: bool = False) -> Path | None:
    """The folder with settings.py: that of main.py, else `start` (the current folder), else, if asked, one above it."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    start = (start or Path.cwd()).resolve()
    folders = [Path(main).resolve().parent] if main else []
    folders += [start, *(start.parents if parents else ())]
    return next((folder for folder in folders if (folder / "settings.py").is_file()), None)


def enter_project(folder: Path) -> None:
    """Puts the folder first on sys.path; what was imported from the project before it is forgotten.

    Two projects in one process would else share the first one's `spiders` and `pipelines`.
    """
    global _entered
    if _entered is not None and _entered != folder:
        sys.path[:] = [entry for entry in sys.path if entry != str(_entered)]
        for name in _modules_of(_entered):
            del sys.modules[name]
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
    _entered = folder


def _modules_of(folder: Path) -> list[str]:
    tops = {name for name, module in list(sys.modules.items()) if "." not in name and _is_in(module, folder)}
    tops -= {"__main__", "scrapy_plus"}
    return [name for name in sys.modules if name.partition(".")[0] in tops]


def _is_in(module: ModuleType, folder: Path) -> bool:
    """Whether a top-level module or package stands directly in the folder; a virtual environment below it does not."""
    places = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
    return any(place and Path(place).parent == folder for place in places)


def read_settings_file(path: Path) -> dict[str, Any]:
    """The upper-case names that settings.py sets; it is run as the module `settings`, under whatever name it was known.

    Raises SettingsError with file and line if it does not run.
    """
    module = ModuleType(_MODULE)
    module.__file__ = str(path)
    before = sys.modules.get(_MODULE)
    sys.modules[_MODULE] = module
    try:
        # Compiled here, not by the import system, whose cache takes a file changed within a second for the old one.
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except Exception as error:
        sys.modules.pop(_MODULE)
        if before is not None:
            sys.modules[_MODULE] = before
        raise _explained(path, error) from error
    return {name: value for name, value in vars(module).items() if name.isupper() and not name.startswith("_")}


def _explained(path: Path, error: Exception) -> SettingsError:
    if isinstance(error, SettingsError):
        return error
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return SettingsError(f"{path}, line {error.lineno}: {error.msg}: {(error.text or '').strip()}; mend that line")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f", line {lines[-1]}" if lines else ""
    return SettingsError(f"{path}{where}: {type(error).__name__}: {error}; settings.py must run without errors")


def line_of(path: Path, name: str) -> int | None:
    """The line of the last assignment to `name` at the top level of a file that is known to compile."""
    found = None
    for node in ast.parse(path.read_bytes()).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            found = node.lineno
    return found
