"""OMG's tab in OpenClaw's Control UI, in a real browser: it shows each view, searches, and changes nothing."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from gateway import GATEWAY_TOKEN, Gateway

from omg import Memory
from omg.curate import propose_note

pytestmark = [
    pytest.mark.gateway,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium"),
]
PAGE = "/plugins/omg/page"
MIDDLE = (
    "(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('{}').getBoundingClientRect())"
)
# The Control UI has its frame in a shadow root.
CORNER = """(function corner(root) {
    for (const e of root.querySelectorAll('*')) {
        if (e.tagName === 'IFRAME') { const r = e.getBoundingClientRect(); return [r.x, r.y]; }
        const inner = e.shadowRoot && corner(e.shadowRoot);
        if (inner) return inner;
    }
})(document)"""
SAID = ("I'm allergic to shellfish, prawns gave me a rash.", "My sister Clara lives in Bilbao.")


@pytest.fixture(scope="module")
def gateway(boot: object) -> Gateway:
    assert callable(boot)
    config = {"gateway": {"controlUi": {"enabled": True}}}
    made: Gateway = boot(omg='[observation]\nmodel = "offline"', config=config)
    with Memory(made.home) as memory:
        memory.capture([{"role": "user", "content": text, "id": str(n)} for n, text in enumerate(SAID)])
        memory.observe()
    return made.start()


@pytest.fixture
def browser(gateway: Gateway, tmp_path: Path) -> Iterator[Browser]:
    made = Browser(tmp_path / "profile")
    try:
        made.open(f"{gateway.url}/omg#token={GATEWAY_TOKEN}")
        yield made
    finally:
        made.close()


def test_the_tab_opens_every_view_and_finds_a_note(browser: Browser) -> None:
    with browser.inside(PAGE):
        browser.until("document.body.innerText.includes('allergic to shellfish')")
        for name in ("Given", "Days", "To decide", "Health", "Graph", "Memory"):
            browser.press_button(name, within="header")
            assert browser.js("document.querySelector('[aria-current]').textContent") == name
        browser.js("document.querySelector('#q').value = 'Clara'")
        browser.press_button("Search")
        browser.until("document.querySelector('#found .rows li')?.innerText.includes('Bilbao')")
        browser.js("document.querySelector('#found a[href*=note]').click()")
        browser.until("document.body.innerText.includes('My sister Clara')")
        assert browser.js("document.querySelectorAll('form[method=post]').length") == 0
        assert browser.js("document.querySelectorAll('script').length") == 1


def test_the_enter_key_shows_what_a_typed_prompt_would_be_given(browser: Browser) -> None:
    with browser.inside(PAGE):
        browser.until("document.body.innerText.includes('allergic to shellfish')")
        browser.press_button("Given", within="header")
        browser.js("document.documentElement.dataset.left = 1")
        browser.js(
            "document.querySelector('#q').value = 'May I order prawns?'; document.querySelector('#q').focus()"
        )
        browser.js(
            "document.querySelector('#q').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))"
        )
        browser.loaded()
        assert "would be given" in browser.js("document.body.innerText")


def test_the_confirm_button_opens_the_chat_and_its_command_confirms_the_note(
    browser: Browser, gateway: Gateway
) -> None:
    with Memory(gateway.home) as memory:
        graph = memory.find()
        path = propose_note(graph, "The user likes tea.", "Tea", None, memory.clock())
    with browser.inside(PAGE):
        browser.until("document.body.innerText.includes('allergic to shellfish')")
        browser.press_button("To decide", within="header")
        assert "likes tea" in browser.js("document.querySelector('main').innerText")
        told = browser.js("document.querySelector('[data-command*=confirm]').dataset.command")
        x, y = browser.js(MIDDLE.format("[data-command*=confirm]"))
    assert told == f"/omg confirm {path}"
    left, top = browser.js(CORNER)
    browser.click(left + x, top + y)  # as a hand does: a script may not copy
    browser.until("location.pathname === '/chat/main'")
    gateway.chat("agent:main:main", told)
    with Memory(gateway.home) as memory:
        assert memory.find().vault.read(path).origin == "human"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_tab_refuses_a_request_without_authorization_by_the_gateway(
    gateway: Gateway, method: str
) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{gateway.url}{PAGE}", method=method))
    assert refused.value.code == 401 and b"shellfish" not in refused.value.read()
