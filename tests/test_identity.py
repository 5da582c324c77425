import pytest
from hypothesis import given
from hypothesis import strategies as st

from omg.identity import Identity, account_of, identity_of_session, is_remembered, says_owner, speaker_decides

LINKS = {"alice": ["telegram:111", "discord:A1"], "owner": ["telegram:999", "slack:U0WNER"]}
MAIN = "agent:main:main"


OWN = {
    # one a dmScope: main, per-peer, per-channel-peer, per-account-channel-peer; then forms nobody told us about
    "dm": """agent:main:main agent:work:main agent:main:direct:222 agent:main:telegram:direct:222
        agent:main:telegram:default:direct:222 agent:main:telegram:direct:alice agent:main:tlon:dm:~zod
        agent:main:web1 agent:main:dashboard:review-ui agent:main:acp:codex""",
    "group": "agent:main:telegram:group:-100555 agent:main:irc:room:#omg",
    "global": "agent:main:global",
}
REDUCED = [
    ("agent:main:main:thread:1777244748.777299", MAIN, "dm"),
    ("global", "agent:main:global", "global"),
    ("agent:main:slack:direct:U1:thread:1777244748.77", "agent:main:slack:direct:U1", "dm"),
    ("agent:main:my-plugin:task-1:thread:3", "agent:main:my-plugin:task-1", "dm"),
    ("something else", "agent:main:something else", "dm"),
    # what hangs on groups
    ("agent:main:telegram:group:-100555:topic:42", "agent:main:telegram:group:-100555", "group"),
    ("agent:main:discord:channel:123:thread:987", "agent:main:discord:channel:123", "group"),
    ("agent:main:feishu:group:oc_1:topic:om_2:sender:ou_3", "agent:main:feishu:group:oc_1", "group"),
    ("agent:main:matrix:channel:!Ab:x.org:thread:$e", "agent:main:matrix:channel:!Ab:x.org", "group"),
    ("agent:main:whatsapp:group:1@g.us:thread:whatsapp-b", "agent:main:whatsapp:group:1@g.us", "group"),
]


@pytest.mark.parametrize(
    "session_key, key, scope",
    [*((key, key, scope) for scope, keys in OWN.items() for key in keys.split()), *REDUCED],
)
def test_a_session_key_is_reduced_to_the_key_of_its_owner(session_key, key, scope):
    identity = identity_of_session(session_key)
    assert identity == Identity(key, scope, key.split(":")[1])


NOBODYS = """
unknown agent:main:unknown cron:17 hook:550e84 subagent:b2d0 agent:main:hook:automation
agent:main:cron:nightly agent:main:cron:nightly:run:8821 agent:main:subagent:b2d0334b
agent:main:subagent:a:subagent:b agent:main:heartbeat agent:main:main:heartbeat agent:main:global:heartbeat
agent:main:telegram:direct:222:heartbeat agent:main:internal-session-effects:run-af31
agent:main:dashboard:incognito-77 agent:main:boot:boot-2026-11-22
""".split()


@pytest.mark.parametrize("session_key", ["", "  ", *NOBODYS])
def test_a_turn_without_a_person_has_no_memory(session_key):
    assert identity_of_session(session_key, owner=True, links=LINKS) is None


def test_a_chat_of_the_owner_without_an_outside_channel_has_the_owners_main_memory():
    assert identity_of_session("agent:main:web1", owner=True).key == MAIN
    assert identity_of_session("agent:main:web1", owner=True, channel="webchat", sender="cli").key == MAIN
    at_the_web, outside = {"channel": "webchat", "sender": "cli"}, {"channel": "telegram", "sender": "9"}
    assert identity_of_session("agent:main:web1", owner=False, **at_the_web).key == "agent:main:web1"
    assert identity_of_session("agent:main:web1", owner=True, **outside).key == "agent:main:web1"
    assert identity_of_session("agent:main:telegram:direct:9", owner=True, **outside).key != MAIN
    assert identity_of_session("agent:main:telegram:group:-1", owner=True).scope == "group"


@pytest.mark.parametrize(
    "vouched, says",
    [
        ({"senderIsOwner": True}, True),
        ({"senderIsOwner": False}, False),
        ({}, None),
        ({"senderIsOwner": "true"}, False),
        # a command, of which the gateway says what its sender may do
        ({"gatewayClientScopes": ["operator.write", "operator.admin"]}, True),
        ({"gatewayClientScopes": ["operator.write"]}, False),
        ({"gatewayClientScopes": []}, False),
        ({"gatewayClientScopes": "operator.admin"}, None),
        ({"gatewayClientScopes": ["operator.admin"], "senderIsOwner": False}, False),
        # a phone with limited access: not an administrator, and the gateway's own profile of its owner
        ({"senderIsOwner": False, "senderIdentity": {"type": "profile", "id": "gateway-owner"}}, True),
        ({"senderIsOwner": False, "senderIdentity": {"type": "profile", "id": "p-ada"}}, False),
        ({"senderIsOwner": False, "senderIdentity": {"type": "observation", "id": "gateway-owner"}}, False),
        ({"senderIsOwner": False, "senderId": "gateway-owner"}, False),
    ],
)
def test_a_sender_is_the_owner_only_if_the_gateway_says_owner_or_administrator(vouched, says):
    assert says_owner(vouched) is says


@pytest.mark.parametrize("owner", [True, False])
def test_the_identity_of_a_project_does_not_depend_on_the_speaker(owner):
    key = "agent:main:main:project:1a2b3c4d-harbour"
    assert identity_of_session(f"{key}:thread:claude-7", owner=owner, links=LINKS).key == key
    assert not speaker_decides(key)


def test_a_program_without_a_name_is_the_owner_only_if_the_configured_links_say_so():
    links = {"owner": ["webchat:cli"]}
    asked = {"links": links, "channel": "webchat"}
    assert identity_of_session("agent:main:web1", sender="cli", **asked).key == MAIN
    assert identity_of_session("agent:main:web1", sender="other", **asked).key == "agent:main:web1"
    for theirs in ("agent:main:telegram:group:-5", "agent:main:telegram:direct:222"):
        assert identity_of_session(theirs, sender="cli", **asked).key == theirs
    outside = {"links": {"owner": ["lark:7"]}, "channel": "lark", "sender": "7"}
    assert identity_of_session("agent:main:lark:space:9", **outside).key == "agent:main:lark:space:9"


def test_the_owners_message_in_another_persons_conversation_stays_in_that_conversation():
    key, own = "agent:main:telegram:direct:111", {"channel": "webchat", "sender": "openclaw-control-ui"}
    assert identity_of_session(key, owner=True, **own).key == key
    assert identity_of_session(key, owner=True, links=LINKS, **own).key == "agent:main:person:alice"


@pytest.mark.parametrize(
    "key, account",
    [
        ("agent:main:telegram:direct:222", "telegram:222"),
        ("agent:main:telegram:default:direct:222", "telegram:222"),
        ("agent:main:matrix:dm:@a:b.org", "matrix:@a:b.org"),
        ("agent:main:direct:222", ""),
        ("agent:main:person:alice", ""),
        (MAIN, ""),
    ],
)
def test_the_account_of_a_direct_conversation_has_the_form_used_in_links(key, account):
    assert account_of(key) == account
    if account:
        linked = identity_of_session(key, links={"alice": [account]})
        assert linked is not None and linked.key == "agent:main:person:alice"


def test_links_join_a_persons_accounts_across_channels():
    forms = [
        ("agent:main:telegram:direct:111", "", ""),
        # as the gateway's own identityLinks write it
        ("agent:main:telegram:direct:alice", "telegram", "111"),
        ("agent:main:telegram:default:direct:111", "", ""),
        ("agent:main:direct:111", "telegram", "111"),
        ("agent:main:discord:direct:a1", "discord", "a1"),
    ]
    assert {identity_of_session(key, links=LINKS, channel=c, sender=s).key for key, c, s in forms} == {
        "agent:main:person:alice"
    }
    assert identity_of_session("agent:main:telegram:direct:999", links=LINKS).key == MAIN
    assert identity_of_session("agent:other:telegram:direct:999", links=LINKS).key == "agent:other:main"


@pytest.mark.parametrize(
    "session_key, channel, sender",
    [
        ("agent:main:irc:direct:alice", "irc", "alice"),  # a stranger who calls himself by the link's name
        ("agent:main:direct:alice", "irc", "alice"),
        ("agent:main:irc:direct:owner", "irc", "owner"),
        ("agent:main:discord:direct:111", "discord", "111"),  # her number, on another channel
        ("agent:main:telegram:direct:1111", "telegram", "1111"),
        ("agent:main:telegram:direct:alice", "telegram", "666"),
        ("agent:main:direct:111", "", ""),  # her number, on we do not know which channel
    ],
)
def test_nobody_is_joined_by_a_name_or_a_number_alone(session_key, channel, sender):
    assert identity_of_session(session_key, links=LINKS, channel=channel, sender=sender).key == session_key


def test_a_group_belongs_to_no_person_even_if_a_linked_person_speaks():
    group = identity_of_session(
        "agent:main:telegram:group:-5", links=LINKS, channel="telegram", sender="999", owner=True
    )
    assert group == Identity("agent:main:telegram:group:-5", "group", "main")


def test_cron_and_heartbeat_belong_to_the_owner_only_if_configured():
    assert identity_of_session("agent:a:cron:x:run:1", asked=("user", "cron")) == Identity(
        "agent:a:main", "dm", "a"
    )
    assert identity_of_session("agent:a:main:heartbeat", asked=("heartbeat",)).key == "agent:a:main"
    assert identity_of_session("agent:a:subagent:1", asked=("subagent",)) is None
    assert identity_of_session("agent:a:dashboard:incognito-1", asked=("cron", "user")) is None


@given(st.text(), st.text(), st.text(), st.booleans())
def test_any_session_key_gives_an_identity_or_none(key, channel, sender, owner):
    identity = identity_of_session(key, channel=channel, sender=sender, owner=owner, links=LINKS)
    if identity:
        assert identity.folder == identity.folder.lower()
        assert set(identity.folder) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        assert len(identity.folder) <= 49
        again = identity_of_session(identity.key, channel=channel, sender=sender, owner=owner, links=LINKS)
        assert again is None or again.agent == identity.agent


def test_different_keys_get_different_readable_folders():
    assert identity_of_session("agent:main:telegram:direct:alice").folder.startswith(
        "main-telegram-direct-alice-"
    )
    keys = [
        "agent:main:matrix:channel:!AB:x",
        "agent:main:matrix:channel:!Ab:x",
        "agent:main:記憶",
        "agent:main:記億",
    ]
    assert len({identity_of_session(key).folder for key in keys}) == 4


USER = {"sessionKey": MAIN, "trigger": "user"}


@pytest.mark.parametrize(
    "ctx, yes",
    [
        (USER, True),
        (USER | {"inputProvenance": {"kind": "external_user"}}, True),
        (USER | {"inputProvenance": {"kind": "inter_session"}}, False),  # a sub-agent's announcement
        (USER | {"inputProvenance": {"kind": "internal_system"}}, False),
        (USER | {"inputProvenance": {"kind": "something new"}}, False),
        (USER | {"trigger": "cron"}, False),
        (USER | {"trigger": "heartbeat"}, False),
        (USER | {"trigger": "memory", "sessionKey": "agent:main:internal-session-effects:x"}, False),
        (USER | {"trigger": None}, False),
        (USER | {"sessionKey": "agent:main:subagent:1"}, False),
        (USER | {"sessionKey": None}, False),
        ({}, False),
    ],
)
def test_only_turns_that_a_person_started_from_outside_are_remembered(ctx, yes):
    assert is_remembered(ctx) is yes


def test_turns_with_a_trigger_other_than_user_are_remembered_only_if_configured():
    cron = USER | {"sessionKey": "agent:main:cron:x:run:1", "trigger": "cron"}
    assert not is_remembered(cron)
    assert is_remembered(cron | {"inputProvenance": {"kind": "internal_system"}}, triggers=("user", "cron"))
