"""
The Observer for small models: one message a call, and only `type` and `text` of each fact; the rest is derived.

What it would have a person say quotes a sentence of theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..config.sections import Config
from ..errors import BadReply
from ..inbox import PREFIX
from ..llm.jsontext import cut_out, object_schema
from ..llm.question import Ask, ModelQuestion
from ..node.fields import TYPES
from ..offline.conversation import speaker
from ..offline.observer import derive_edit
from .question import Observer, observer_prompt
from .reply import ParsedReply, ShownToObserver, parse_value, quoted_reply

# Of a reply about one message: without an end in the grammar small models find none.
FACTS, FACT_CHARS = 6, 240
SMALL_WINDOW = 16_000  # tokens; below it `style = "auto"` asks message by message

FACT_SCHEMA = object_schema(
    "type text",
    type={"type": "string", "enum": list(TYPES)},
    text={"type": "string", "maxLength": FACT_CHARS},
)
FACTS_SCHEMA = object_schema("facts", facts={"type": "array", "maxItems": FACTS, "items": FACT_SCHEMA})


def is_small_model(config: Config, observer: Observer) -> bool:
    style = config.observation.style
    return style == "turnwise" or (style == "auto" and observer.window < SMALL_WINDOW)


def message_by_message(shown: ShownToObserver, ask: Ask, config: Config, agent: str) -> Iterator[ParsedReply]:
    """
    The small-model form: one message a call, only `type` and `text` asked for; all else is derived here.

    A message whose reply cannot be read is skipped; if none could be, BadReply is raised.
    """
    system = observer_prompt("observe-turnwise", config, agent)
    read, failed = 0, None
    for handle, (_, message) in shown.messages.items():
        by_person = message.role == "user" or message.id.startswith(PREFIX)
        words = message.spoken
        if not by_person or not words:
            continue
        line = f"{speaker(message)}: {words}"
        reply = ask(ModelQuestion(system, line, schema=FACTS_SCHEMA, purpose="observe", agent=agent))
        try:
            facts = cut_out(reply.text, "facts", "text")["facts"]
        except BadReply as e:
            failed = e
            continue
        read += 1
        edits = [
            edit
            for f in (facts if isinstance(facts, list) else ())
            if isinstance(f, dict)
            and (edit := derive_edit(f, handle, message, notes=shown.notes, zone=shown.zone))
        ]
        parsed = quoted_reply(parse_value({"edits": edits}, shown), shown)
        parsed.cut = int(reply.cut)
        yield parsed
    if failed and not read:
        raise BadReply("the model's replies hold no `facts`; nothing was marked observed") from failed
