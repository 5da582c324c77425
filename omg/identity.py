"""Decides whose memory a session writes to and reads from.

`identity_of_session` reduces a gateway's session key to its owner: the main session, a direct peer or a group. Two
sessions share a memory only if the gateway, or an explicit link, says that they are one person's."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from .text.characters import plain_form

Scope = Literal["dm", "group", "global"]
OWNER = "owner"  # the name in [identity.links] that means the main session
DIRECT = frozenset(("direct", "dm"))
GROUPS = frozenset(("group", "channel", "room"))
WEB_CHAT = "webchat"  # the gateway's own interfaces: Control UI, apps, `openclaw gateway call chat.send`
INSIDE = ("", WEB_CHAT)  # channels that only the gateway's operator can reach
# ADMIN_SCOPE is a right that OpenClaw gives only to its owner. OWNERS_PROFILE is the profile of a person who signs in to
# OpenClaw without a name, by its token or from a paired device. A phone with limited access has only the profile.
ADMIN_SCOPE = "operator.admin"
OWNERS_PROFILE = {"type": "profile", "id": "gateway-owner"}

# Sessions in which no person speaks, and incognito sessions.
NOBODY = re.compile(
    r"(?:^|:)(?P<trigger>cron|subagent|internal-session-effects|hook):|^boot:"
    r"|(?:^|:)(?P<beat>heartbeat)(?::|$)|^unknown$|:incognito-"
)

AGENT = re.compile(r"agent:([^:]+):(.+)$", re.IGNORECASE | re.DOTALL)

# The end of a key that names a thread, a forum topic, or one sender in a group. Ids may contain other colons (Matrix).
LANE = re.compile(r":(?:topic|thread|sender):.*$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Identity:
    """The owner of a memory. Identities with the same key have the same memory."""

    key: str
    scope: Scope
    agent: str

    @property
    def folder(self) -> str:
        """A readable folder name, different for each key: `main-telegram-direct-alice-1f2e3d4c`."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.key.lower().removeprefix("agent:")).strip("-")[:40].strip("-")
        return f"{slug or 'memory'}-{hashlib.sha256(self.key.encode('utf-8', 'replace')).hexdigest()[:8]}"


def identity_of_session(
    session_key: str,
    *,
    links: Mapping[str, Sequence[str]] = MappingProxyType({}),
    channel: str = "",
    sender: str = "",
    owner: bool = False,
    asked: Collection[str] = (),
) -> Identity | None:
    """
    Return whose memory a session uses; None if the session is not remembered, for example because no person speaks in
    it.

    Most session keys name the owner of the memory: the agent's main session, a group, a project, or a person. A thread
    or a topic uses the memory of the session that it is part of.

    A session with any other key has a memory of its own. There are two exceptions, both on a channel that only the
    gateway's operator can reach (INSIDE; an unknown channel counts as such):

    - If *owner* is true, the session uses the owner's memory.
    - If *links* name the sender, the session uses the memory of that person.

    *links*: name of a person → the person's accounts, as "channel:sender". These accounts share a memory.
    *channel*, *sender*: where the turn was said, and by whom; "" if unknown.
    *owner*: whether the owner said the turn.
    *asked*: triggers ("cron", "heartbeat") whose sessions are remembered, in the owner's memory.
    """
    m = AGENT.match(session_key)
    agent, rest = (m[1], m[2]) if m else ("main", session_key)
    main = Identity(f"agent:{agent}:main", "dm", agent)
    if not rest.strip():
        return None
    if nobody := NOBODY.search(rest.strip().lower()):
        trigger = nobody["trigger"] or nobody["beat"]
        return main if trigger in ("cron", "heartbeat") and trigger in asked else None
    if rest != rest.strip():  # a key with outer spaces differs from the key without them
        return Identity(f"agent:{agent}:{rest}", "dm", agent)
    base = LANE.sub("", rest)
    shared = {"main": main, "global": Identity(f"agent:{agent}:global", "global", agent)}
    if base.lower() in shared:
        return shared[base.lower()]
    if ":project:" in base:  # a repository (hosts/sessions.py) has its own memory, whoever speaks
        return Identity(f"agent:{agent}:{base}", "dm", agent)
    parts = base.split(":")
    kinds = [part.lower() for part in parts[: min(3, len(parts) - 1)]]  # channel, account, kind; then the id
    if any(kind in GROUPS for kind in kinds):
        return Identity(f"agent:{agent}:{base}", "group", agent)
    at = next((i for i, kind in enumerate(kinds) if kind in DIRECT), None)
    inside = channel.lower() in INSIDE
    name = None
    if at is not None:
        place, peer = parts[0] if at else "", ":".join(parts[at + 1 :])
        # If the owner writes into another person's conversation, the conversation stays that person's.
        itself = channel.lower() == WEB_CHAT
        name = _linked(links, place if itself else channel or place, peer if itself else sender or peer)
    elif inside:
        name = OWNER if owner else _linked(links, channel, sender)
    if name is not None and name != OWNER:
        # Not ":direct:": a stranger whose id equals the name would get this memory.
        return Identity(f"agent:{agent}:person:{name}", "dm", agent)
    return main if name else Identity(f"agent:{agent}:{base}", "dm", agent)


def account_of(key: str) -> str:
    """
    The account that a direct conversation's *key* names, in the form of [identity.links]: "telegram:111". "" if the
    key names no account.
    """
    m = AGENT.match(key)
    place, _, peer = re.sub(r":(?:direct|dm):", "\n", m[2] if m else key, count=1).partition("\n")
    return f"{place.partition(':')[0]}:{peer}" if place and peer else ""


def person_label(people: dict[str, list[str]], group: str, name: str, sender_id: str) -> str:
    """
    Return *name* as a label that tells apart senders with the same first name.

    In each *group*, the first sender named Ann stays "Ann", and the second sender becomes "Ann-2". If the second
    sender is called "Ann Lee", the label is "Ann-2 Lee". Returns *name* unchanged if *sender_id* is empty.

    *people*: hash of a first name → hashes of the senders with this first name. A new sender is added to
    *people*.
    """

    def hashed(text: str) -> str:
        return hashlib.sha256(f"{group} {text}".encode("utf-8", "replace")).hexdigest()[:16]

    shown = " ".join(name.split())
    found = re.search(r"[^\W\d_][\w.'-]*", shown)  # "Ann" in "Ann; Bob", as the rules name a speaker
    if not found or not sender_id:
        return name
    first, rest = found[0], shown[found.end() :]
    bare = re.sub(r"-\d+$", "", first)  # "Ann-2" may be nobody's own name
    senders = people.setdefault(hashed(plain_form(bare).casefold()), [])
    if (sender := hashed(sender_id)) not in senders:
        senders.append(sender)
    number = senders.index(sender) + 1
    return name if number == 1 and first == bare else f"{shown[: found.start()]}{bare}-{number}{rest}"


def speaker_decides(session_key: str) -> bool:
    """Whether *session_key* leaves open whose the session is. Such a session is the owner's if only the owner speaks in
    it."""
    return identity_of_session(session_key, owner=True) != identity_of_session(session_key)


def says_owner(vouched: Mapping[str, Any]) -> bool | None:
    """
    Return whether the gateway says that its owner speaks; None if the gateway says nothing.

    - True if `senderIdentity` in *vouched* is OWNERS_PROFILE.
    - Otherwise `senderIsOwner` decides; only the boolean true counts as yes.
    - A command may have `gatewayClientScopes` in place of `senderIsOwner`. Then the scopes must include
      ADMIN_SCOPE.
    """
    if vouched.get("senderIdentity") == OWNERS_PROFILE:
        return True
    administers, scopes = vouched.get("senderIsOwner"), vouched.get("gatewayClientScopes")
    if administers is None and isinstance(scopes, list):
        return ADMIN_SCOPE in scopes
    return None if administers is None else administers is True


def is_remembered(ctx: Mapping[str, Any], triggers: Collection[str] = ("user",)) -> bool:
    """
    Return whether OMG remembers the turn of the hook context *ctx*. All of these must hold:

    - The turn's trigger is among *triggers*. The trigger "user" means that a person wrote.
    - The session belongs to an identity.
    - For the trigger "user", `inputProvenance` is missing or names an external user.
    """
    trigger = ctx.get("trigger")
    session = str(ctx.get("sessionKey") or "")
    if trigger not in triggers or identity_of_session(session, asked=triggers) is None:
        return False
    provenance = ctx.get("inputProvenance")
    kind = provenance.get("kind") if isinstance(provenance, Mapping) else provenance
    return trigger != "user" or kind in (None, "", "external_user")


def _linked(links: Mapping[str, Sequence[str]], channel: str, sender: str) -> str | None:
    """
    Return the name that *links* give to a sender; None if *links* do not list the sender. Upper and lower case
    are equal, as in OpenClaw's gateway. *links*: name → ids, such as `telegram:123`.
    """
    wanted = f"{channel}:{sender}".lower()
    return next((name for name, ids in links.items() if any(i.strip().lower() == wanted for i in ids)), None)
