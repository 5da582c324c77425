#!/usr/bin/env python3
"""
Measures how many words of the gold answer are in the memory that a question gets: a proxy that asks no model.

    python bench/words.py --data FOLDER… [--context slice raw …] [--recorded FILE.jsonl.gz…] [--vaults DIR]
                          [--budget 3000] [--texts DIR] [--json]

    --recorded  observe with recorded replies of a model (bench/replay.py), one file for each conversation;
                without it the rules observe
    --vaults    keep the observed conversations in this folder, and use the conversations already in it
    --texts     write each text to DIR/<context>/<question>.txt, to be read

A question's share is taken over the different words of its gold answer that are not in the question: the share of these
words that the text has. Stop words do not count; a plural counts as its singular. Questions whose right answer is "not
known" are left out. Printed are the means by conversation and by category, and the tokens. A text with the words need not
answer the question, so read the texts before you trust a change. PYTHONPATH may name another checkout, to measure its omg.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import mean
from typing import Any

# At the end: PYTHONPATH may name the checkout of another omg, to be measured with this bench.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from questions.contexts import CONTEXTS, context_text
from questions.data import Conversation, Question, read_all
from questions.files import file_name, in_parallel, write
from questions.recorded import Replies, read_recorded, served
from questions.vaults import Observing, commit, observe, opened

from omg.text.tokens import count_tokens

# Not omg's own list, which two checkouts may have different.
STOP = frozenset(
    """
    a about after again all also an and any are as at be because been before being but by can could did do does during each few for
    from had has have having he her here him his how i if in into is it its itself just me more most my no nor not of off on once only
    or other our out over own same she should so some such than that the their them then there these they this those through to too
    under until up very was we were what when where which while who whom why will with would you your
    """.split()
)
RUBRIC = re.compile(r"^LLM response should \w+:\s*")  # a prefix of BEAM's gold answers, no part of the answer


def words_of(text: str) -> frozenset[str]:
    words = re.findall(r"\d+(?:[.,:]\d+)*|[^\W\d_]+", text.casefold())
    return frozenset(w[:-1] if len(w) > 3 and w.endswith("s") else w for w in words if w not in STOP)


def share(question: Question, text: str) -> float | None:
    """Return the share of the gold answer's words that *text* has; None if all of them are in the question."""
    gold = frozenset[str]().union(*(words_of(RUBRIC.sub("", item)) for item in question.gold))
    gold -= words_of(question.text)
    return len(gold & words_of(text)) / len(gold) if gold else None


def rows_of(
    conversation: Conversation, contexts: Iterable[str], how: Observing, budget: int, texts: Path | None
) -> list[dict[str, Any]]:
    """Return a row for each question in each of *contexts*: its share and its tokens."""
    asked = [q for q in conversation.questions if not q.abstain]
    now, rows = [conversation.messages[-1].at], list[dict[str, Any]]()
    with opened(conversation.id, how, lambda: now[0], budget) as memory:
        while memory.find().index.embed():
            pass
        for question in asked:
            now[0] = question.at
            for context in contexts:
                text = context_text(context, conversation, question, memory, budget)
                if texts:
                    write(texts / context / f"{file_name(question.id)}.txt", f"{question.text}\n\n{text}")
                if (part := share(question, text)) is not None:
                    row = {"context": context, "chat": conversation.id, "category": question.category}
                    rows.append(row | {"question": question.id, "share": part, "tokens": count_tokens(text)})
    return rows


def measured(conversation: Conversation, args: Any, vaults: Path) -> list[dict[str, Any]]:
    recorded = {file.name.removesuffix(".jsonl.gz"): file for file in args.recorded}
    with ExitStack() as stack:
        how = Observing(vaults, "offline", "", "offline")
        if recorded:
            replies = Replies(read_recorded(recorded[conversation.id]), lambda *_: "not looked up", {})
            how = Observing(vaults, "openai/recorded", stack.enter_context(served(replies)), "end")
        observe(conversation, how)
        return rows_of(conversation, args.context, how, args.budget, args.texts)


def table(rows: Sequence[dict[str, Any]], by: str) -> dict[str, dict[str, dict[str, float]]]:
    """Return context → value of *by* (or "all") → mean share, mean tokens and number of questions."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for name in (row[by], "all"):
            groups[row["context"]][name].append(row)
    return {
        context: {
            name: {
                "share": round(mean(r["share"] for r in of), 3),
                "tokens": round(mean(r["tokens"] for r in of)),
                "n": len(of),
            }
            for name, of in named.items()
        }
        for context, named in groups.items()
    }


def main() -> None:
    args = arguments()
    conversations = read_all(args.data)
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        vaults = args.vaults or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="omg-words-")))
        troubles = in_parallel(
            lambda c: rows.extend(measured(c, args, vaults)), conversations, args.parallel, "conversations"
        )
    for trouble in troubles:
        print(trouble)
    rows.sort(key=lambda row: row["question"])
    tables = {by: table(rows, by) for by in ("chat", "category")}
    for named in tables.values():
        for context, values in named.items():
            for name, value in values.items():
                print(
                    f"{context:6} {name:28} {value['share']:.3f}  {value['tokens']:5} tokens, {value['n']:3} questions"
                )
    if args.json:
        print(json.dumps({"omg": commit(), "troubles": troubles, **tables, "rows": rows}))
    sys.exit(bool(troubles))


def arguments() -> Any:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, nargs="+", required=True)
    add("--context", choices=[c for c in CONTEXTS if c != "tools"], nargs="+", default=["slice"])
    add("--recorded", type=Path, nargs="+", default=[])
    add("--vaults", type=Path, help="keep the observed conversations here; default: a temporary folder")
    add("--budget", type=int, default=3_000, help="tokens of last, raw and slice")
    add("--texts", type=Path, help="write the text that each question gets into this folder")
    add("--parallel", type=int, default=1)
    add("--json", action="store_true", help="one JSON object on the last line")
    return parser.parse_args()


if __name__ == "__main__":
    main()
