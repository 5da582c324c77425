"""The views of the page, and their HTML."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import NotFound, OmgError
from ..memory import Memory
from ..node.markdown import bare_target
from ..text.characters import WIKILINK
from .given import given_view
from .notes import forget_view, graph_view, memory_view, note_view
from .reports import days_view, decide_view, health_view
from .request import Asked

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from .actions import Done

CHANGING = ("forget",)  # views that only lead to a change
FOLDER = Path(__file__).parent
# Address → the view's name in the menu ("" if not in the menu) and its function, in the order of the menu.
VIEWS: dict[str, tuple[str, Callable[[Asked], dict[str, Any]]]] = {
    "": ("Memory", memory_view),
    "given": ("Given", given_view),
    "days": ("Days", days_view),
    "decide": ("To decide", decide_view),
    "health": ("Health", health_view),
    "graph": ("Graph", graph_view),
    "note": ("", note_view),
    "forget": ("", forget_view),
}


def page_of(asked: Asked, view: str, *, flash: Done | None = None, **more: Any) -> str:
    """Return the whole page of *view*. *flash* is the action just done. Raises OmgError."""
    values = VIEWS[view][1](asked)
    return filled(asked, f"{view or 'memory'}.html", view, **values, flash=flash, **more)


def framed_page(memory: Memory, body: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the owner's page for a frame of the gateway's Control UI.

    *body* is `{view, params, base}`; the answer is `{status, html, policy}`. The page shows only the owner's memory and
    changes nothing. Such a frame cannot send a form, so a script turns the form's fields into an address (`?view=…`)
    and opens this address.
    """
    given = body.get("params")
    params = {str(k): str(v) for k, v in given.items() if k != "who"} if isinstance(given, Mapping) else {}
    view, status = str(body.get("view") or ""), 200
    asked = Asked(memory, memory.registry.find(), params, str(body.get("base") or ""), framed=True)
    try:
        if view not in VIEWS or view in CHANGING:
            raise NotFound("there is no such page")
        html = page_of(asked, view)
    except OmgError as e:
        status, html = 404 if isinstance(e, NotFound) else 422, error_page(asked, str(e), flash=None)
    style, script = (policy_source(static_text(name)) for name in ("page.css", "frame.js"))
    policy = f"default-src 'none'; style-src {style}; script-src {script}; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
    return {"status": status, "html": html, "policy": policy}


def policy_source(text: str) -> str:
    """Return the source for a Content-Security-Policy that allows only this *text*, a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@lru_cache
def static_text(name: str) -> str:
    return (FOLDER / "static" / name).read_text(encoding="utf-8")


def error_page(asked: Asked, text: str, **more: Any) -> str:
    return filled(asked, "error.html", "", title="That did not work", text=text, **more)


def filled(asked: Asked, template: str, view: str, **values: Any) -> str:
    menu = [(asked.link(name), title, name == view) for name, (title, _) in VIEWS.items() if title]
    if asked.framed:
        values |= {"style": static_text("page.css"), "script": static_text("frame.js")}
    fixed = {"asked": asked, "link": asked.link, "menu": menu, "hidden": partial(hidden_fields, asked)}
    return environment().get_template(template).render(**{"people": [], **values}, **fixed)


def hidden_fields(asked: Asked, **values: str) -> Markup:
    """Return the hidden fields of a form: those of every form, and *values*."""
    from markupsafe import Markup

    field = Markup('<input type="hidden" name="{}" value="{}">')
    given = {"token": asked.token, "who": asked.who, **values}
    return Markup("").join(field.format(name, value) for name, value in given.items() if value)


@lru_cache(maxsize=1)
def environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.filters["prose"] = prose
    return made


def prose(text: str, asked: Asked) -> Markup:
    """Render the markdown *text* of a note without HTML, images and outside links. A wikilink leads to its note's page."""
    from markdown_it import MarkdownIt
    from markupsafe import Markup

    reader = MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink", "reference"])
    linked = list[Markup]()

    def named(found: Any) -> str:
        target, _, label = found[1].partition("|")
        with suppress(ValueError):
            target = bare_target(target)
        path = asked.graph.index.resolve(target)
        shown = label or target.rpartition("/")[2]
        if path is None:
            return str(shown)
        linked.append(Markup('<a href="{}">{}</a>').format(asked.link("note", path=path), shown))
        return (
            f"\ue000{len(linked) - 1}\ue001"  # private characters: no text has them, and markdown leaves them
        )

    text = text.replace("\ue000", "").replace("\ue001", "")
    html = reader.render(WIKILINK.sub(named, text))
    return Markup(re.sub("\ue000(\\d+)\ue001", lambda mark: linked[int(mark[1])], html))
