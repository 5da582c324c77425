#!/usr/bin/env python3
"""
Compares what a small local model finds when asked message by message and when asked about a whole session.

    python bench/turnwise.py --data locomo10.json --base http://127.0.0.1:8091/v1 [--sessions session_1 …] [--json FILE]

Both ways use OMG's real path: pending → observe → receipt → vault. Share found: the share of the facts that the data set
lists for a session to which some note is near (cosine of MiniLM at least NEAR). Precision: the share of notes near some
fact. Near texts need not mean the same, so the JSON has the pairs for a person to read.
The data set (https://github.com/snap-research/locomo, CC BY-NC) is not part of this repository.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from locomo import Conversation, read

from omg.config import Config, Llm, Observation
from omg.embed import Embedder, load_embedder
from omg.errors import ModelError
from omg.graph.graph import Graph
from omg.identity import Identity
from omg.index.index import Index
from omg.llm.asker import Asker
from omg.llm.child import Child
from omg.llm.replies import Ask, Ledger
from omg.message.turn import Turn
from omg.observe.question import Observer
from omg.observe.run import observe_batch
from omg.vault.vault import Vault

NEAR = 0.6  # pairs below it are of different topics; .5 and .7 are also printed, to show how much depends on NEAR


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--data", type=Path, required=True)
    args.add_argument("--base", default="http://127.0.0.1:8091/v1")
    args.add_argument("--model", default="openai/qwen2.5-coder-1.5b")
    args.add_argument(
        "--sessions", nargs="+", default=["session_1", "session_2"], help="of the first conversation"
    )
    args.add_argument("--json", type=Path)
    given = args.parse_args()
    judge = load_embedder("auto")
    conversation = next(read(given.data))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        llm = Llm(
            api_base=given.base,
            api_key="none",
            timeout_s=1_800,
            context_window=8_192,
            max_output_tokens=2_000,
            json_schema=True,
            attempts=1,
        )
        config = Config(home=home, llm=llm)
        with closing(Child()) as child:
            ask = Asker(config, given.model, Ledger(home / "ledger.jsonl", config), child=child)
            for session, style in product(given.sessions, ("turnwise", "full")):
                observation = Observation(model=given.model, style=style)
                row = run(conversation, session, config.model_copy(update={"observation": observation}), ask)
                rows.append({**row, **score(row["facts"], row["notes"], judge)})
                shown = {k: v for k, v in rows[-1].items() if k not in ("facts", "notes", "pairs")}
                print(json.dumps(shown), flush=True)
                if given.json:
                    given.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")


def run(conversation: Conversation, session: str, config: Config, ask: Ask) -> dict[str, Any]:
    """Return the notes that the model behind *ask* makes of *session*, the time taken, and what went wrong."""
    messages = conversation.sessions[session]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        index, vault = Index(home / "index.db"), Vault(home / "vault", home / "written.jsonl")
        vault.root.mkdir()
        index.sync(vault)
        graph = Graph(Identity("agent:main:main", "dm", "main"), home, vault, index)
        graph.put(
            f"{messages[0].timestamp:015d}-0",
            Turn(session, session, "main", "turn", "", "", "", tuple(messages)),
        )
        started, error = time.monotonic(), ""
        try:
            observe_batch(graph, graph.pending(), Observer(ask, config.observation.model, 8_192), config)
        except ModelError as e:
            error = str(e)
        notes = [e.description for e in index.entries() if e.path.startswith("nodes/")]
        index.close()
    facts = [text for text, _ in conversation.observations[session]]
    return {
        "session": session,
        "style": config.observation.style,
        "messages": len(messages),
        "seconds": round(time.monotonic() - started),
        "error": error,
        "facts": facts,
        "notes": notes,
    }


def score(facts: list[str], notes: list[str], judge: Embedder | None) -> dict[str, Any]:
    if not notes or judge is None:
        return {"found": 0.0, "precision": 0.0, "of": len(facts), "made": len(notes), "pairs": []}
    near = judge(facts) @ judge(notes).T
    shares = {f"found@{at}": round(float((near.max(1) >= at).mean()), 3) for at in (0.5, 0.7)}
    pairs = [
        [fact, notes[int(near[i].argmax())], round(float(near[i].max()), 2)] for i, fact in enumerate(facts)
    ]
    found, precision = float((near.max(1) >= NEAR).mean()), float((near.max(0) >= NEAR).mean())
    return {
        "judge": judge.id,
        "found": round(found, 3),
        "precision": round(precision, 3),
        **shares,
        "of": len(facts),
        "made": len(notes),
        "pairs": pairs,
    }


if __name__ == "__main__":
    main()
