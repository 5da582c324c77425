"""
`omg fleet work` with a scripted model: the process that would import LiteLLM is this file, and answers after SECONDS.

    python scripted.py work CACHE PARALLEL LEASE_S        python scripted.py model IDLE_S
"""

import json
import os
import re
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]
SECONDS = float(os.environ.get("SCRIPTED_S", "0.05"))


def edits_for(user: str) -> str:
    """Make a fact of each statement shown, in the words of the statement."""
    edits = [
        {"op": "create", "type": "fact", "title": text[:60], "description": text, "priority": "medium", "sources": [handle]}
        for handle, text in re.findall(r"^(m\d+) \S+ user: (.*)$", user, re.M)
    ]  # fmt: skip
    return json.dumps({"edits": edits, "now": {}})


def say(question):
    from openai_server import borne_out

    checked = borne_out(question["user"])
    if checked["verdicts"]:
        text = json.dumps(checked)
    else:
        time.sleep(SECONDS)
        text = edits_for(question["user"])
    return {"text": text, "tokens_in": 100, "tokens_out": 20, "usd": 0.0, "cut": False}


async def say_at_once(question):
    """Call `say` in a thread, so that one process answers many questions at once."""
    import asyncio

    return await asyncio.to_thread(say, question)


def main() -> None:
    from omg.llm import child

    if sys.argv[1] == "model":
        child.serve_parent(float(sys.argv[-1]), say_at_once)
        return
    from omg.fleet.serve import run_worker
    from omg.fleet.store import database_url

    model = child.Child(idle_s=600, command=(sys.executable, __file__, "model"))
    _, _, cache, parallel, lease_s = sys.argv
    run_worker(database_url(), parallel=int(parallel), cache=Path(cache), lease_s=float(lease_s), child=model)


if __name__ == "__main__":
    main()
