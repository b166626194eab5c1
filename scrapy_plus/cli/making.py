"""startproject, genspider: the commands that write files."""

from __future__ import annotations

import ast
import json
import keyword
import re
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

import click

from scrapy_plus.cli.base import NO_PROJECT, Command
from scrapy_plus.conf.project import find_project
from scrapy_plus.errors import UsageError
from scrapy_plus.http.url import clean_url

TEMPLATES = Path(__file__).parent.parent / "templates"
SUFFIX = ".tmpl"


def spider_templates() -> list[str]:
    """The names that `genspider -t` knows."""
    return sorted(path.name.removesuffix(f".py{SUFFIX}") for path in (TEMPLATES / "spiders").glob(f"*.py{SUFFIX}"))


# -- startproject ------------------------------------------------------------------------------------------------------


@click.command("startproject", cls=Command, short_help="Make a project.")
@click.argument("name")
@click.argument("folder", required=False, type=click.Path(path_type=Path), metavar="[DIR]")
def startproject_command(name: str, folder: Path | None) -> None:
    """Make a project called NAME, in the folder DIR or NAME, that runs at once."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise UsageError(f"{name!r} is no name for a project: a letter, then letters, digits, _ or -")
    folder = folder or Path(name)
    write_project(name, folder)
    click.echo(
        f"The project {name} is in {folder}. It has a spider that crawls a few pages of its own:\n"
        f"    cd {folder}\n"
        "    python main.py -O quotes.jsonl\n"
        "Then make yours:\n"
        "    scrapy-plus genspider NAME example.com"
    )


def write_project(name: str, folder: Path) -> None:
    """Writes the project template. Raises UsageError, with nothing written, if a file of it is there already."""
    sources = sorted(path for path in (TEMPLATES / "project").rglob("*") if path.is_file() and path.suffix != ".pyc")
    targets = {source: folder / _target(source.relative_to(TEMPLATES / "project")) for source in sources}
    if there := [target for target in targets.values() if target.exists()]:
        raise UsageError(f"{there[0]} is there already; choose another folder: scrapy-plus startproject {name} DIR")
    for source, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.read_text("utf-8")
        is_template = source.suffix == SUFFIX
        target.write_text(Template(text).substitute(project_name=name) if is_template else text, "utf-8")


def _target(relative: Path) -> Path:
    """dot-x becomes .x: files that begin with a dot are easily left out of packages."""
    return relative.with_name(relative.name.removesuffix(SUFFIX).replace("dot-", ".", 1))


# -- genspider ---------------------------------------------------------------------------------------------------------


def _print_templates(ctx: click.Context, param: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo("\n".join(spider_templates()))
        ctx.exit()


@click.command("genspider", cls=Command, short_help="Write a new spider.")
@click.argument("name")
@click.argument("target", default="https://example.com/", metavar="[URL or DOMAIN]")
@click.option("-t", "--template", default="basic", show_default=True, help="The kind of spider; see --list.")
@click.option("--force", is_flag=True, help="Replace the spider if it is there.")
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_print_templates, help="Print kinds.")
def genspider_command(name: str, target: str, template: str, force: bool) -> None:
    """Write a new spider called NAME for a site into the folder spiders, and add it to SPIDERS in settings.py."""
    project = find_project(parents=True)
    if project is None:
        raise UsageError(NO_PROJECT)
    if template not in spider_templates():
        raise UsageError(f"there is no template {template!r}; there are {', '.join(spider_templates())}")
    module = module_name(name)
    file = project / "spiders" / f"{module}.py"
    if file.exists() and not force:
        raise UsageError(f"{file} is there already; --force replaces it")
    class_name = "".join(part[:1].upper() + part[1:] for part in module.split("_")) + "Spider"
    text = (TEMPLATES / "spiders" / f"{template}.py{SUFFIX}").read_text("utf-8")
    url = target_url(target)
    domain = urlsplit(url).hostname
    words = {"class_name": class_name, "name": name, "url": _literal(url), "domain": _literal(domain)}
    file.parent.mkdir(exist_ok=True)
    file.write_text(Template(text).substitute(words), "utf-8")
    click.echo(f"Wrote {file}")
    _register(project / "settings.py", f"spiders.{module}.{class_name}")


def module_name(name: str) -> str:
    """The name of a spider as that of a module. Raises UsageError if it cannot be one."""
    module = re.sub(r"[-.]", "_", name)
    if not (module.isidentifier() and module.isascii()) or keyword.iskeyword(module) or module.startswith("_"):
        raise UsageError(f"{name!r} is no name for a spider: a letter, then letters, digits, _ or -")
    return module


def target_url(target: str) -> str:
    """A URL as it is, a domain as the URL of its start page. Raises UsageError if it is neither."""
    url = target if "://" in target else f"https://{target}" + ("" if "/" in target else "/")
    try:
        clean_url(url)
    except ValueError as error:
        raise UsageError(f"{target!r} is no URL and no domain: {error}") from None
    return url


def _literal(text: str | None) -> str:
    """The text as a Python literal in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _register(settings_file: Path, dotted: str) -> None:
    try:
        is_added = add_to_list(settings_file, "SPIDERS", dotted)
    except (OSError, SyntaxError, ValueError):
        is_added = False
    if is_added:
        click.echo(f"{dotted} is in SPIDERS of {settings_file}")
    else:
        click.echo(f'Add it to SPIDERS in {settings_file} yourself:\n    SPIDERS = [..., "{dotted}"]')


def add_to_list(file: Path, name: str, value: str) -> bool:
    """Adds a text to the list that `name` is set to in a Python file, if that list is plain, and nothing else changes.

    True also if it is there already. Raises OSError, SyntaxError or ValueError if the file cannot be read.
    """
    before = file.read_bytes()
    node = _plain_list(before, name)
    if node is None:
        return False
    values = ast.literal_eval(node)
    if value in values:
        return True
    after = _with_element(before, node, _literal(value))
    changed = _plain_list(after, name)
    if changed is None or ast.literal_eval(changed) != [*values, value]:
        return False
    file.write_bytes(after)
    return True


def _plain_list(source: bytes, name: str) -> ast.List | None:
    """The list of texts that is assigned to `name`, once, at the top level; or None."""
    found = [
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and [getattr(target, "id", None) for target in node.targets] == [name]
    ]
    if len(found) != 1 or not isinstance(found[0], ast.List):
        return None
    is_plain = all(isinstance(element, ast.Constant) for element in found[0].elts)
    return found[0] if is_plain else None


def _with_element(source: bytes, node: ast.List, literal: str) -> bytes:
    """The source with one more element at the end of the list, on its own line if the others have theirs."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 1) - 1  # the closing bracket
    new = literal.encode()
    if not node.elts:
        return source[:end] + new + source[end:]
    last = node.elts[-1]
    behind = starts[(last.end_lineno or 1) - 1] + (last.end_col_offset or 0)
    if last.end_lineno == node.end_lineno:
        return source[:behind] + b", " + new + source[behind:]
    indent = lines[last.lineno - 1][: last.col_offset]
    has_comma = source[behind:end].split(b"#")[0].strip().startswith(b",")
    line_end = starts[last.end_lineno or 1]
    newline = b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"
    comma = b"" if has_comma else b","
    return source[:behind] + comma + source[behind:line_end] + indent + new + b"," + newline + source[line_end:]
