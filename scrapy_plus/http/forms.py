"""A form of a page, filled in and sent as a browser would."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from scrapy_plus.http.encoding import resolve
from scrapy_plus.http.multipart import File, as_file, multipart, pairs
from scrapy_plus.http.request import Request
from scrapy_plus.http.url import encode_form

if TYPE_CHECKING:
    from scrapy_plus.http.response import Response

Entries = list[tuple[str, Any]]

_CONTROLS = ("input", "button", "select", "textarea")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_MULTIPART = "multipart/form-data"
_PLAIN = "text/plain"


def form_request(
    response: Response,
    formdata: Any = None,
    *,
    id: str | None = None,  # noqa: A002  the attribute's name
    name: str | None = None,
    number: int | None = None,
    css: str | None = None,
    xpath: str | None = None,
    click: Any = None,
    files: Mapping[str, Any] | None = None,
    **arguments: Any,
) -> Request:
    """The request that sends a form of the page; see `Response.form_request`."""
    form = find_form(response, id=id, name=name, number=number, css=css, xpath=xpath)
    controls = list(controls_of(form))
    button = _button(controls, click)
    encoding = _encoding(response, form)
    entries = _overridden(entry_list(controls, button, encoding), formdata, files)
    method = str(arguments.pop("method", None) or _said(form, button, "method") or "get").strip().upper()
    kind = (_said(form, button, "enctype") or "").strip().lower()
    action = (_said(form, button, "action") or "").strip()
    url = response.link_url(action) if action else response.url
    arguments.setdefault("encoding", encoding)
    if method != "POST":
        query = encode_form(_texts(entries), encoding=encoding)
        base = url.partition("#")[0].partition("?")[0]
        return Request(arguments.pop("url", f"{base}?{query}" if query else base), **arguments)
    if kind == _MULTIPART or any(isinstance(value, File) and value.name for _, value in entries):
        body, content_type = multipart(entries, encoding=encoding)
    elif kind == _PLAIN:
        text = "".join(f"{key}={value}\r\n" for key, value in _texts(entries))
        body, content_type = text.encode(encoding, "xmlcharrefreplace"), _PLAIN
    else:
        return Request(arguments.pop("url", url), "POST", data=_texts(entries), **arguments)
    headers = {**dict(arguments.pop("headers", None) or {}), "Content-Type": content_type}
    return Request(arguments.pop("url", url), "POST", data=body, headers=headers, **arguments)


def find_form(
    response: Response,
    *,
    id: str | None = None,  # noqa: A002
    name: str | None = None,
    number: int | None = None,
    css: str | None = None,
    xpath: str | None = None,
) -> Any:
    """The form that is asked for, by what is given of it; the first of the page by default.

    `css` and `xpath` may find the form or something in it. Raises ValueError, saying what forms there are.
    """
    forms = list(response.root.iter("form"))
    for attribute, wanted in (("id", id), ("name", name)):
        if wanted is not None:
            forms = [form for form in forms if form.get(attribute) == wanted]
    if css is not None or xpath is not None:
        found = response.css(css) if css is not None else response.xpath(xpath or "")
        inside = [_form_around(one) for one in found if hasattr(one, "iterancestors")]
        forms = [form for form in inside if form is not None and form in forms]
    if not -len(forms) <= (number or 0) < len(forms):
        every = [form.get("id") or form.get("name") or "unnamed" for form in response.root.iter("form")]
        raise ValueError(f"no such form at {response.url}; its forms are: {', '.join(every[:20]) or 'none'}")
    return forms[number or 0]


def _form_around(element: Any) -> Any:
    return element if element.tag == "form" else next(element.iterancestors("form"), None)


def controls_of(form: Any) -> Iterator[Any]:
    """The controls that belong to the form, those outside that name it too; disabled ones are left out."""
    root = form.getroottree().getroot()
    id = form.get("id")  # noqa: A001
    is_named = bool(id) and next((one for one in root.iter("form") if one.get("id") == id), None) is form
    for control in root.iter(*_CONTROLS):
        owner = control.get("form")
        is_ours = (is_named and owner == id) if owner is not None else next(control.iterancestors("form"), None) is form
        if is_ours and not _is_left_out(control):
            yield control


def _is_left_out(control: Any) -> bool:
    """Disabled, by itself or by a fieldset (but for what is in its first legend), or a mere suggestion."""
    if control.get("disabled") is not None:
        return True
    child = control
    for parent in control.iterancestors():
        if parent.tag in ("datalist", "template"):
            return True
        if parent.tag == "fieldset" and parent.get("disabled") is not None and parent.find("legend") is not child:
            return True
        child = parent
    return False


def _type(control: Any) -> str:
    kind = (control.get("type") or "").strip().lower()
    if control.tag == "button":
        return kind if kind in ("reset", "button") else "submit"
    return kind or "text"


def entry_list(controls: list[Any], button: Any, encoding: str) -> Entries:
    """Names and values in the order of the page. Source: WHATWG HTML, "constructing the entry list"."""
    last_checked = {_name(one): one for one in controls if _type(one) == "radio" and one.get("checked") is not None}
    entries: Entries = []
    for control in controls:
        kind, name = _type(control), _name(control)
        if control.tag == "select":
            entries += [(name, value) for value in _chosen(control)] if name else []
        elif control.tag == "textarea":
            entries += [(name, _textarea(control))] if name else []
        elif kind == "image":
            entries += [(f"{name}.{axis}" if name else axis, "0") for axis in "xy"] if control is button else []
        elif not name or kind in ("reset", "button") or (kind == "submit" and control is not button):
            continue
        elif kind in ("radio", "checkbox"):
            is_on = last_checked.get(name) is control if kind == "radio" else control.get("checked") is not None
            entries += [(name, control.get("value", "on"))] if is_on else []
        elif kind == "file":
            entries.append((name, File()))
        else:
            is_charset = kind == "hidden" and name.lower() == "_charset_"
            entries.append((name, encoding if is_charset else control.get("value", "")))
    return entries


def _name(control: Any) -> str:
    return str(control.get("name") or "")


def _textarea(control: Any) -> str:
    text = "".join(control.itertext())
    return _NEWLINE.sub("\r\n", re.sub(r"\A\r?\n", "", text))


def _chosen(select: Any) -> list[str]:
    """The values of the selected options; of a drop-down without any the first."""
    options = [option for option in select.iter("option") if not _is_disabled_option(option)]
    chosen = [option for option in options if option.get("selected") is not None]
    if select.get("multiple") is None:
        size = (select.get("size") or "1").strip()
        is_drop_down = not size.isdigit() or int(size) <= 1
        has_selected = any(option.get("selected") is not None for option in select.iter("option"))
        chosen = chosen[-1:] or (options[:1] if is_drop_down and not has_selected else [])
    return [_value(option) for option in chosen]


def _is_disabled_option(option: Any) -> bool:
    parent: Any = option.getparent()
    return option.get("disabled") is not None or (parent.tag == "optgroup" and parent.get("disabled") is not None)


def _value(option: Any) -> str:
    value = option.get("value")
    return str(value) if value is not None else " ".join("".join(option.itertext()).split())


def _button(controls: list[Any], click: Any) -> Any:
    """The button that is pressed: the first, none (False), the one of a name, id or value, or of certain attributes."""
    buttons = [one for one in controls if one.tag in ("input", "button") and _type(one) in ("submit", "image")]
    if click is None or click is True:
        return next(iter(buttons), None)
    if click is False:
        return None
    if isinstance(click, Mapping):
        wanted = {key: value for key, value in click.items() if key != "nr"}
        found = [one for one in buttons if all(one.get(key) == value for key, value in wanted.items())]
        found = found[int(click["nr"]) :][:1] if "nr" in click else found
    else:
        rows = ([one for one in buttons if one.get(key) == click] for key in ("name", "id", "value"))
        found = next((row for row in rows if row), [one for one in buttons if _label(one) == click])
    if len(found) != 1:
        every = [one.get("name") or one.get("id") or _label(one) or _type(one) for one in buttons]
        raise ValueError(f"click={click!r}: {len(found)} buttons of the form, not one of: {', '.join(every) or 'none'}")
    return found[0]


def _label(button: Any) -> str:
    return " ".join("".join(button.itertext()).split())


def _said(form: Any, button: Any, attribute: str) -> str | None:
    """What the pressed button says instead of the form, or the form."""
    own = button.get(f"form{attribute}") if button is not None else None
    said: str | None = own if own is not None else form.get(attribute)
    return said


def _encoding(response: Response, form: Any) -> str:
    """That of accept-charset, or of the page; UTF-16 and the like are not for forms."""
    for label in (form.get("accept-charset") or "").replace(",", " ").split():
        if resolved := resolve(label):
            return "utf-8" if resolved.startswith("utf-16") else resolved
    encoding = response.encoding
    return "utf-8" if encoding.startswith(("utf-", "iso2022")) else encoding


def _overridden(entries: Entries, formdata: Any, files: Mapping[str, Any] | None) -> Entries:
    """With the given fields in the place of those of the same name, or at the end; None takes a field away."""
    rows = list(formdata.items() if isinstance(formdata, Mapping) else formdata or ())
    names = [str(name) for name, _ in rows] + [str(name) for name in files or ()]
    given = pairs(rows) + [(str(name), as_file(file)) for name, file in (files or {}).items()]
    result: Entries = []
    placed: set[str] = set()
    for name, value in entries:
        if name not in names:
            result.append((name, value))
        elif name not in placed:
            placed.add(name)
            result += [pair for pair in given if pair[0] == name]
    return result + [pair for pair in given if pair[0] not in placed]


def _texts(entries: Entries) -> Entries:
    """Files by their names alone, which is all that a form has of them unless it is multipart; lines end in CRLF."""
    return [(name, value.name if isinstance(value, File) else _line_ends(value)) for name, value in entries]


def _line_ends(value: Any) -> Any:
    return _NEWLINE.sub("\r\n", value) if isinstance(value, str) else value
