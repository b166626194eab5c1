"""The order of the house: a module imports from lower layers, or from its own without a cycle; annotations are free."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILES = [path for path in sorted((ROOT / "scrapy_plus").rglob("*.py")) if "templates" not in path.parts]
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
LAYERS = """errors patching version
item items http
rules conf
frontier transport embedded redis_client redis_finding
middlewares
core
pipelines spiders wiring web_policies stores redis_store item_places redis_hash
cli start bench torture migrating supervisor terminal summary figures log dashboard""".splitlines()
LAYER = {name: level for level, names in enumerate([*LAYERS, "__main__"]) for name in names.split()} | {"": 8}
IMPURE = {"gevent", "redis", "requests", "socket", "time", "random"}


def imports(node: ast.AST, *, lazy: bool) -> Iterator[str]:
    """Names of the modules that are imported below `node`, type checking aside; `lazy`: in functions too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            for name in (f"{child.module}.{alias.name}" for alias in child.names):
                yield name if name in MODULES else str(child.module)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        elif lazy or not isinstance(child, ast.FunctionDef):
            yield from imports(child, lazy=lazy)


def layer(module: str) -> int:
    return LAYER[module.split(".")[1] if "." in module else ""]


def edges(*, lazy: bool) -> dict[str, set[str]]:
    return {module: set(imports(ast.parse(path.read_text("utf-8")), lazy=lazy)) for module, path in MODULES.items()}


def test_every_import_goes_down_or_stays_on_its_layer():
    ours = [(module, name) for module, names in edges(lazy=True).items() for name in names if name in MODULES]
    upward = [f"{module} -> {name}" for module, name in ours if layer(name) > layer(module)]
    assert ours and upward == []


def test_core_knows_the_contracts_and_no_backend():
    core = [names for module, names in edges(lazy=True).items() if module.startswith("scrapy_plus.core.")]
    lower = {name for name in set().union(*core) if name.startswith(("scrapy_plus.frontier", "scrapy_plus.transport"))}
    assert lower <= {"scrapy_plus.frontier.base", "scrapy_plus.frontier.feed", "scrapy_plus.transport.base"}


def test_no_module_imports_itself_through_others():
    TopologicalSorter({module: names & set(MODULES) for module, names in edges(lazy=False).items()}).prepare()


def test_rules_and_codec_have_no_effects():
    pure = {m: n for m, n in edges(lazy=True).items() if m.startswith(("scrapy_plus.rules", "scrapy_plus.http.codec"))}
    assert pure and [(m, n) for m, names in pure.items() for n in names if n.split(".")[0] in IMPURE] == []
