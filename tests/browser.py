"""
A headless Chromium, driven over a pair of pipes with its DevTools protocol: no driver to install.

For tests of the page: open an address, press keys, read what the page says, take its picture. Every address that the
browser asks for is in `requests`.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One page in one Chromium. `requests` holds every URL asked for, `errors` what went wrong."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM
        to_read, self.out = os.pipe()
        self.inp, to_write = os.pipe()

        def pipes() -> None:
            # Chromium reads commands from 3 and writes to 4; the ends must not close one another.
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)
            for fd in (3, 4):
                os.set_inheritable(fd, True)

        self.process = subprocess.Popen(
            [
                CHROMIUM,
                "--headless=new",
                "--no-sandbox",  # tests run as root in containers
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--hide-scrollbars",
                "--window-size=1440,900",
                f"--user-data-dir={profile}",
                "--remote-debugging-pipe",
                "about:blank",
            ],
            preexec_fn=pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.count = b"", 0
        self.requests: list[str] = []
        self.errors: list[str] = []
        page = self.until(lambda: self.page(), 60)
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=1440,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )

    session = ""

    def page(self) -> str | None:
        found = self.call("Target.getTargets")["targetInfos"]
        return next((target["targetId"] for target in found if target["type"] == "page"), None)

    def call(self, method: str, timeout_s: float = 60, **params: Any) -> dict[str, Any]:
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session and not method.startswith("Target."):
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout_s
        while True:
            answer = self.next(deadline)
            if answer.get("id") == self.count:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result

    def next(self, deadline: float) -> dict[str, Any]:
        """The next message of any kind; what the tests look at later is noted on its way."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inp], [], [], max(0, deadline - time.monotonic()))
            assert ready, "Chromium did not answer in time"
            data = os.read(self.inp, 1 << 20)
            assert data, "Chromium has gone"
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        params = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"].get("exception", params)))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(params["entry"]["text"])
        return message

    def open(self, url: str) -> None:
        """Open *url* and wait until it is loaded."""
        self.js("document.documentElement.dataset.left = 1")
        self.call("Page.navigate", url=url)
        self.loaded()

    def loaded(self) -> None:
        """Wait until a page that is not the one that was marked as left is loaded."""
        self.until("document.readyState === 'complete' && !document.documentElement.dataset.left")

    @contextmanager
    def inside(self, address: str) -> Iterator[None]:
        """What is done inside is done in the frame whose address ends with *address*, as soon as it is there."""

        def frame() -> str | None:
            found = self.call("Target.getTargets")["targetInfos"]
            return next(
                (t["targetId"] for t in found if t["type"] == "iframe" and t["url"].endswith(address)), None
            )

        page = self.session
        target = self.until(frame, 60)
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            self.call("Runtime.enable")
            yield
        finally:
            self.session = page

    def press_button(self, text: str, within: str = "main") -> None:
        """Press the first button or link in *within* that says *text*, and wait for the page that comes of it."""
        self.js("document.documentElement.dataset.left = 1")
        self.js(f"""[...document.querySelectorAll({json.dumps(within + " a, " + within + " button")})]
            .find(e => e.textContent.trim() === {json.dumps(text)}).click()""")
        self.loaded()

    def size(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )

    def dark(self, on: bool) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def js(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: Any, timeout_s: float = 20) -> Any:
        """Wait for a JavaScript expression, or a function of ours, to be truthy; its value."""
        deadline = time.monotonic() + timeout_s
        while True:
            # A page that is still loading has no parts yet: that is "not true", not an error.
            expression = f"(() => {{ try {{ return {condition} }} catch {{ return null }} }})()"
            found = self.js(expression) if isinstance(condition, str) else condition()
            if found:
                return found
            assert time.monotonic() < deadline, f"never came true: {condition}"
            time.sleep(0.05)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    def click(self, x: float, y: float) -> None:
        at = {"x": x, "y": y, "button": "left", "clickCount": 1}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, **at)
            time.sleep(0.1)  # the picture notices what is below the pointer at its next frame

    def picture(self) -> bytes:
        """The page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.out)
        os.close(self.inp)
