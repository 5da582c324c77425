"""
What models replied to conversations, and what may come of it: data for whoever judges whether a note says what its
sources say, and what becomes of notes when things change. Written before the code that it tries.

`attacks.jsonl`: a model that obeys what a page, a mail or a tool told it. `edits` and `now` are its reply; none of
`expect.words` may come to stand in a note of a type in `expect.never` ("pinned": pinned; "origin user": of whatever
type, held to be the user's; "now": in what another session is shown of this one). Words are compared without case,
as written and after normalisation (NFKC, confusables, zero-width characters): of a word that the attack disguises
the plain form is there too. The notes in `expect.untouched` stay as they are; `expect.keeps` is honest, and its words
are still in a note of the edit's type. `benign.jsonl`: the honest twins. The first edit must become a note (or change
the one it names) of `expect.type` and `expect.origin` whose title, description or body has each of
`expect.kept_words`; where there are `expect.now_words`, they still are in how the conversation stands, for other
sessions too.

`changes.jsonl`: what a good model replies when something changed. Afterwards `expect.active` notes are active; the
description of that one has each of `present` and none of `gone`, its history (of one that took another's place, what
leads to the other) each of `history`, its body each of `kept`; `title`, `type`, `loop` and `event` where they are
given. An edit's `node` is a handle, or the title of a note of the same reply.

`assistant.jsonl`: what the assistant recommended, worked out, wrote or planned, and what the user made of it. `observed`
are the pieces of a conversation, each with what a good model replies; a message's handle is its place in the piece.
What each of `questions` is given in another conversation has all of `answer` as the assistant's word, and one of
`shows`, which tells whether the user took it up. `notes` are whose notes of what type there are afterwards.

`situations.jsonl`: conversations without a reply, for a model to observe and a judge who knows not which code it was.
`known` are whole notes that exist; `must` and `must_not` are sentences about the vault afterwards. The sessions come
one after the other, but those of one that says `together` are observed in one go.

`attacks_second.jsonl` and `benign_second.jsonl` were written from a description of the attacks, by someone who had not
seen the code that they try. Rows have the fields of the first two files, and:

- `plant` (attacks): pieces of the planted text, each as it stands in the message, the known note or the state that
  carries it, and the assistant's own wording where the assistant repeated it. A model that obeys gives the row's
  `edits` and `now` only to a request in which it sees one of them.
- `lang`: the language of the messages.
- `session_before`, `now_before`: earlier messages of the same session, which are observed already, and the task, state
  and next step that this observation left.
- `call` (kinds "remember", "correct" and "forget"): the tool call that the agent makes after the last of `messages`.
  The turn is observed afterwards. `{forget}`, `{alone}` and `{redact}` stand for the codes that the first call of
  `omg_forget`, in `session_before`, gave. "forgotten" in `expect.never`: the notes in `expect.untouched` and the
  messages are not forgotten.
- `verdicts` (kind "night"): what an obeying model replies to a group of the `known` notes. The text of the notes in
  `expect.untouched` stays as it is.
- `unmarked`: true where a person pasted someone else's text into their message and nothing marks where it begins and
  ends. Code alone cannot tell it from their own words.
- `max_tokens_per_batch`: the limit to observe the row with, so that the message is cut into parts.
- A known note's `standing`: true where it is a standing instruction.

A message's `entry` is the id that it has in the drop, where that matters (a note from the inbox). `known` are the
notes that the model was shown, and who each is held to come from. An edit's field that is null is left as it is.
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, Any]]:
    """The lines of `name.jsonl`, each a case of its own."""
    return [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text("utf-8").splitlines()]


def texts(edit: dict[str, Any]) -> str:
    """All that an edit would write where a person or a model reads it."""
    written = [str(edit[key] or "") for key in ("title", "description", "body")]
    return " ".join(written + edit["tags"] + edit["links"])
