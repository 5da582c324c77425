"""Each form that `omg import` reads, by a sample made from its description, and the traps of each."""

import json
import zipfile

import pytest
from exports import (
    activity,
    at,
    chat,
    claude_chat,
    claude_message,
    database,
    iso,
    lines,
    node,
    packed,
    talk,
    zipped,
)

from omg.errors import BadInput
from omg.importers import exports, read_drops
from omg.importers.recognise import found_here
from omg.message.drop import read_drop


def read(path):
    """The messages in *path*, as (role, text, day), and what the reading reports."""
    drops = read_drops([path])
    turns = [read_drop(json.dumps(drop).encode()) for drop in drops]
    said = [(m.role, m.text) for turn in turns for m in turn.messages]
    return said, drops.reading, turns


def words(path):
    return [text for _, text in read(path)[0]]


# --- ChatGPT


def test_of_a_chatgpt_chat_only_the_branch_that_was_shown_last_is_read(tmp_path):
    tree = chat(
        "c1",
        "2025-03-01",
        node("root", "system", None, None),
        node(
            "sys", "system", "You are ChatGPT", None, metadata={"is_visually_hidden_from_conversation": True}
        ),
        node("u1", "user", "I live in Leeds.", at("2025-03-01")),
        node("think", "assistant", {"thoughts": []}, at("2025-03-01", 1), kind="thoughts"),
        node("call", "assistant", {"text": "import x"}, at("2025-03-01", 2), kind="code", recipient="python"),
        node("tool", "tool", {"text": "42"}, at("2025-03-01", 3), kind="execution_output"),
        node("weight", "assistant", "unseen", at("2025-03-01", 3), weight=0),
        node(
            "a1",
            "assistant",
            "Leeds it is 【4:0†source】\ue200cite\ue202turn0search1\ue201.",
            at("2025-03-01", 4),
        ),
        node("old", "user", "I like tea.", at("2025-03-01", 5), parent="a1"),
        node("new", "user", "I like coffee.", None, parent="a1"),
        node(
            "end",
            "assistant",
            'Near \ue200entity\ue202["city","Lisbon","PT"]\ue201 then.',
            at("2025-03-01", 9),
        ),
    )
    said, reading, turns = read(zipped(tmp_path / "x.zip", {"conversations.json": [tree], "user.json": {}}))
    assert said == [
        ("user", "I live in Leeds."),
        ("assistant", "Leeds it is ."),
        ("user", "I like coffee."),
        ("assistant", "Near Lisbon then."),
    ]
    assert turns[0].session == "agent:main:main:thread:import-chatgpt-c1"
    assert [m.timestamp for m in turns[0].messages][2] == at(
        "2025-03-01", 4
    ) * 1000  # as the message before it
    assert reading.left_out == {
        "hidden": 2,
        "reasoning": 1,
        "calls of tools": 1,
        "tools and system": 1,
        "edited and retried": 1,
    }


def test_a_damaged_chatgpt_tree_is_read_up_to_its_newest_message(tmp_path):
    looped = chat("c1", "2025-03-01", node("a", "user", "one", at("2025-03-01"), parent="b"))
    looped["mapping"]["b"] = node("b", "assistant", "two", at("2025-03-01", 5), parent="a")[1]
    looped["mapping"]["c"] = None
    looped["current_node"] = None
    assert set(words(zipped(tmp_path / "x.zip", {"conversations.json": [looped]}))) == {"one", "two"}


def test_split_files_replace_the_single_file_and_files_of_macos_are_ignored(tmp_path):
    files = {
        "export/conversations.json": [talk("c0", "2025-03-01", "old copy")],
        "export/conversations-001.json": [talk("c2", "2025-03-02", "second")],
        "export/conversations-000.json": [talk("c1", "2025-03-01", "first")],
        "export/shared_conversations.json": [{"id": "s", "conversation_id": "c1", "title": "t"}],
        "__MACOSX/export/._conversations-000.json": b"\x00\x05\x16\x07",
        "export/file-1.dat": b"\x89PNG",
    }
    assert words(zipped(tmp_path / "x.zip", files)) == ["first", "second"]


def test_temporary_chats_are_left_out_and_counted(tmp_path):
    chats = [
        talk("c1", "2025-03-01", "secret", is_temporary=True),
        talk("c2", "2025-03-01", "hush", is_do_not_remember=True),
        talk("c3", "2025-03-01", "open"),
    ]
    said, reading, _ = read(zipped(tmp_path / "x.zip", {"conversations.json": chats}))
    assert said == [("user", "open")]
    assert reading.left_out["temporary and do-not-remember chats"] == 2


def test_chatgpt_memory_counts_as_the_assistant_and_custom_instructions_as_the_user(tmp_path):
    def contexts(n, memory):
        told = {"model_set_context": memory}
        own = {"user_profile": "I am a baker.", "user_instructions": "Answer briefly."}
        return [
            node(
                f"i{n}",
                "user",
                own,
                None,
                kind="user_editable_context",
                metadata={"is_user_system_message": True},
            ),
            node(f"m{n}", "assistant", told, None, kind="model_editable_context"),
        ]

    old, new = "1. [2024-05-03]. Lives in Leeds.", "Model Set Context:\n\n1. [2024-06-01]. Lives in Berlin."
    chats = [
        chat("c2", "2025-03-02", *contexts(2, new), node("u2", "user", "hello", at("2025-03-02"))),
        chat("c1", "2025-03-01", *contexts(1, old), node("u1", "user", "hi", at("2025-03-01"))),
    ]
    said, _, turns = read(zipped(tmp_path / "x.zip", {"conversations.json": chats}))
    assert said == [
        ("user", "hello"),
        ("user", "hi"),
        ("user", "I am a baker.\nAnswer briefly."),
        ("assistant", "Lives in Berlin."),
    ]
    claim = turns[-1].messages[0]
    assert (claim.role, claim.id.startswith("inbox:ChatGPT"), claim.timestamp // 1000) == (
        "assistant",
        True,
        at("2024-06-01"),
    )
    assert turns[-2].messages[0].timestamp == at("2025-03-01") * 1000


def test_images_and_files_leave_placeholders_and_speech_is_read_as_text(tmp_path):
    parts = {
        "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"},
            {"content_type": "audio_transcription", "text": "Said aloud."},
            "Typed.",
            "",
        ]
    }
    about = {
        "attachments": [
            {"name": "plan.pdf", "mime_type": "application/pdf"},
            {"name": "a.png", "mime_type": "image/png"},
        ]
    }
    one = chat(
        "c1", "2025-03-01", node("u", "user", parts, at("2025-03-01"), kind="multimodal_text", metadata=about)
    )
    assert words(zipped(tmp_path / "x.zip", {"conversations.json": [one]})) == [
        "[image]\nSaid aloud.\nTyped.\n[file: plan.pdf]"
    ]


def test_of_a_chat_in_two_exports_only_the_newest_copy_is_read(tmp_path):
    old = talk("c1", "2025-03-01", "draft")
    new = {**talk("c1", "2025-03-01", "draft", "answer", "more"), "update_time": at("2025-03-05")}
    paths = [
        zipped(tmp_path / f"{n}.zip", {"conversations.json": [c]}) for n, c in (("new", new), ("old", old))
    ]
    drops = read_drops(paths)
    assert sum(len(drop["entries"]) for drop in drops) == 3
    assert drops.reading.left_out["older copies of a chat"] == 1


# --- Claude.ai


def test_a_claude_export_is_read_by_branch_and_its_attachments_count_as_material(tmp_path):
    pasted = [{"file_name": "cv.txt", "extracted_content": "I am the king of Spain."}]
    thought = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Fine."},
        {"type": "tool_use", "name": "x"},
    ]
    chats = [
        claude_chat(
            "c1",
            "2025-03-01",
            claude_message("u1", "human", "Read my CV.", "2025-03-01", parent="00000000", attachments=pasted),
            claude_message("a1", "assistant", "Old answer.", "2025-03-01", 1, parent="u1"),
            claude_message(
                "a2", "assistant", thought, "2025-03-01", 2, parent="u1", files_v2=[{"file_name": "p.png"}]
            ),
            current_leaf_message_uuid="a2",
        ),
        claude_chat("c2", "2025-03-02", claude_message("u2", "human", [], "2025-03-02")),
    ]
    chats[1]["chat_messages"][0]["text"] = "By its text."
    project = {
        "uuid": "p1",
        "name": "Harbour",
        "description": "A map.",
        "prompt_template": "Be brief.",
        "docs": [],
    }
    memory = [
        {
            "account_uuid": "x",
            "conversations_memory": "**Work**\nRuns a bakery.",
            "project_memories": {"p1": "Likes maps."},
        }
    ]
    files = {
        "conversations.json": chats,
        "projects/p1.json": {**project, "created_at": iso("2025-02-01")},
        "memories.json": memory,
        "users.json": [{"uuid": "x"}],
        "design_chats/d.json": {"contentBlocks": []},
    }
    # by batches: zips in a zip
    batches = {f"batch-000{n}.zip": packed({name: value}) for n, (name, value) in enumerate(files.items())}
    for path in (zipped(tmp_path / "one.zip", files), zipped(tmp_path / "all.zip", batches)):
        said, reading, turns = read(path)
        assert ("user", "By its text.") in said
        assert ("assistant", "Fine.\n[file: p.png]") in said
        assert ("user", "Project Harbour: A map.\n\nBe brief.") in said
        assert [m for m in said if m[0] == "assistant"][-2:] == [
            ("assistant", "Runs a bakery."),
            ("assistant", "Likes maps."),
        ]
        assert "Old answer." not in [text for _, text in said]
        (cv,) = [m for t in turns for m in t.messages if "king" in m.text]
        assert cv.spoken.strip().startswith("Read my CV.") and "king" not in cv.spoken
        assert reading.left_out["design chats"] == reading.left_out["edited and retried"] == 1
        assert reading.skipped == []


# --- Gemini


def test_geminis_activity_is_split_at_pauses_in_any_language(tmp_path):
    listed = [
        activity("Prompted And Porto?", "2025-03-01T15:00:00Z", "<p>Porto &amp; fish</p>"),
        activity("Used an extension", "2025-03-01T12:02:00Z"),
        activity(
            "Prompted Tell me of Lisbon", "2025-03-01T12:01:00.5Z", "<ul><li>Hills</li><li>Trams</li></ul>"
        ),
    ]
    korean = [activity("리스본에 대해 물음", "2025-03-02T12:00:00Z", "답", header="Gemini 앱")]
    other = [
        {"header": "YouTube", "title": "Watched x", "time": "2025-03-02T12:00:00Z", "products": ["YouTube"]}
    ]
    files = {
        "Takeout/My Activity/Gemini Apps/MyActivity.json": listed,
        "Takeout/내 활동/Gemini 앱/내활동.json": korean,
        "Takeout/My Activity/YouTube/MyActivity.json": other,
    }
    said, reading, turns = read(zipped(tmp_path / "takeout.zip", files))
    assert said == [
        ("user", "And Porto?"),
        ("assistant", "Porto & fish"),
        ("user", "Tell me of Lisbon"),
        ("assistant", "Hills\nTrams"),
        ("user", "리스본에 대해 물음"),
        ("assistant", "답"),
    ]
    assert len({t.session for t in turns}) == 3
    assert reading.left_out == {"activities that are no prompts": 1}


# --- coding agents


def test_a_claude_code_transcript_gives_the_same_entries_as_the_claude_code_hooks(tmp_path):
    def row(id, kind, content, **more):
        shared = {"sessionId": "s-1", "cwd": "/w", "timestamp": iso("2025-03-01"), "uuid": id, "type": kind}
        return {**shared, "message": {"role": kind, "content": content}, **more}

    typed = {"promptSource": "typed"}
    new = lines(
        tmp_path / "new.jsonl",
        [
            {"type": "queue-operation", "sessionId": "s-1", "operation": "enqueue"},
            row("u1", "user", "Fix the map.", **typed),
            row("u2", "user", [{"type": "tool_result", "content": "x"}], toolUseResult={}),
            row(
                "a1",
                "assistant",
                [
                    {"type": "text", "text": "Done."},
                    {"type": "tool_use", "id": "t", "name": "Bash", "input": {}},
                ],
            ),
            row("u3", "user", "This session is being continued", isCompactSummary=True, **typed),
            row("u4", "user", "sub-agent's task", isSidechain=True, **typed),
        ],
    )
    old = lines(
        tmp_path / "old.jsonl",
        [
            row("u1", "user", "Fix the harbour."),
            row("u2", "user", "<command-name>/clear</command-name>"),
            row("u3", "user", "[Request interrupted by user]"),
            row("a1", "assistant", [{"type": "text", "text": "Fixed."}]),
        ],
    )
    assert read(new)[0] == [("user", "Fix the map."), ("assistant", "Done.")]
    assert read(new)[2][0].session == "agent:main:main:thread:claude-code-s-1"
    assert read(old)[0] == [("user", "Fix the harbour."), ("assistant", "Fixed.")]


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("rollout-1.jsonl", {"type": "session_meta", "payload": {"id": "t-1", "cwd": "/w"}}),
        ("a.jsonl", {"sessionId": "t-1", "type": "user", "cwd": "/w"}),
        ("b.jsonl", {"sessionId": "t-1", "projectHash": "x"}),
        ("c.jsonl", {"role": "user", "message": {"role": "user", "content": "Fix the map."}}),
    ],
)
def test_a_session_that_belongs_to_no_person_and_no_project_is_reported(tmp_path, name, row):
    drops = read_drops([lines(tmp_path / name, [row])])
    drops.reading.place = lambda client, session, folder: None
    assert not list(drops)
    assert drops.reading.skipped[0].endswith(
        ": this session belongs to no person and no project, so no memory takes it in"
    )


def test_codex_and_gemini_histories_are_read_in_their_new_and_old_forms(tmp_path):
    meta = {"type": "session_meta", "timestamp": iso("2025-03-01"), "payload": {"id": "t-1", "cwd": "/w"}}

    def item(n, role, text, kinds=None):
        about = (
            {"internal_chat_message_metadata_passthrough": {"turn_id": "1", "content_item_kinds": kinds}}
            if kinds
            else {"internal_chat_message_metadata_passthrough": {"turn_id": "1"}}
        )
        payload = {
            "type": "message",
            "id": f"m{n}",
            "role": role,
            "content": [{"type": "input_text", "text": text}],
            **about,
        }
        return {"type": "response_item", "timestamp": iso("2025-03-01", n), "ordinal": n, "payload": payload}

    new = [
        meta,
        item(1, "user", "<environment_context>", ["x"]),
        item(2, "user", "Ship it.", ["user.text"]),
        item(3, "assistant", "Shipped."),
    ]
    event = {"type": "event_msg", "timestamp": iso("2025-03-01", 4)}
    old = [
        meta,
        {**event, "payload": {"type": "user_message", "message": "Build it."}},
        {**event, "payload": {"type": "token_count"}},
        {**event, "payload": {"type": "agent_message", "message": "Built."}},
    ]
    assert read(lines(tmp_path / "rollout-new.jsonl", new))[0] == [
        ("user", "Ship it."),
        ("assistant", "Shipped."),
    ]
    assert read(lines(tmp_path / "rollout-old.jsonl", old))[0] == [
        ("user", "Build it."),
        ("assistant", "Built."),
    ]

    head = {"sessionId": "g-1", "projectHash": "h", "startTime": iso("2025-03-01"), "kind": "main"}
    said = [
        {"id": "1", "timestamp": iso("2025-03-01"), "type": "user", "content": [{"text": "Plan it."}]},
        {"id": "2", "timestamp": iso("2025-03-01", 1), "type": "gemini", "content": "Planned."},
        {"id": "3", "timestamp": iso("2025-03-01", 2), "type": "info", "content": "x"},
    ]
    whole = tmp_path / "session-1.json"
    whole.write_text(json.dumps({**head, "messages": said}))
    for path in (lines(tmp_path / "session-2.jsonl", [head, *said]), whole):
        assert read(path)[0] == [("user", "Plan it."), ("assistant", "Planned.")]


OPENCODE = """
CREATE TABLE session(id TEXT, directory TEXT, parent_id TEXT, time_created INT);
CREATE TABLE message(id TEXT, session_id TEXT, time_created INT, data TEXT);
CREATE TABLE part(id TEXT, message_id TEXT, session_id TEXT, data TEXT);
"""


def test_opencodes_database_is_read_without_sub_agents_and_a_fork_adds_only_new_messages(tmp_path):
    at_ms = int(at("2025-03-01") * 1000)
    rows = {
        "session": [("s1", "/w", None, 1), ("s2", "/w", None, 2), ("s3", "/w", "s1", 3)],
        "message": [],
        "part": [],
    }
    for n, (session, text, ms) in enumerate(
        [("s1", "Draw a map.", 0), ("s2", "Draw a map.", 0), ("s2", "In blue.", 5), ("s3", "task", 6)]
    ):
        data = {"role": "user", "time": {"created": at_ms + ms}}
        rows["message"].append((f"m{n}", session, at_ms + ms, json.dumps(data)))
        rows["part"].append((f"p{n}", f"m{n}", session, json.dumps({"type": "text", "text": text})))
    said, reading, _ = read(database(tmp_path / "opencode.db", OPENCODE, rows))
    assert said == [("user", "Draw a map."), ("user", "In blue.")]
    assert reading.left_out == {"sessions of sub-agents": 1, "copies in a fork": 1}


def test_cursors_database_and_transcripts_give_what_the_user_typed(tmp_path):
    made = json.dumps({"createdAt": at("2025-03-01") * 1000}).encode().hex()
    blobs = [
        {"role": "system", "content": "You are"},
        {
            "role": "user",
            "content": "<user_info>OS: linux</user_info>\n<user_query>\nSort it.\n</user_query>",
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Sorted."}, {"type": "tool-call"}]},
    ]
    script = "CREATE TABLE blobs(id TEXT, data BLOB); CREATE TABLE meta(key TEXT, value TEXT);"
    rows = {
        "blobs": [*((str(n), json.dumps(b).encode()) for n, b in enumerate(blobs)), ("9", b"\x0a\x01")],
        "meta": [("0", made)],
    }
    said, _, turns = read(database(tmp_path / "u-1" / "store.db", script, rows))
    assert said == [("user", "Sort it."), ("assistant", "Sorted.")]
    assert turns[0].messages[0].timestamp // 1000 == at("2025-03-01")
    told = [
        {"role": "user", "message": {"content": [{"type": "text", "text": "<user_query>Go.</user_query>"}]}},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "Gone."}]}},
    ]
    assert read(lines(tmp_path / "a" / "a.jsonl", told))[0] == [("user", "Go."), ("assistant", "Gone.")]


def test_markdown_memories_count_as_claims_of_the_assistant_with_the_day_of_the_file(tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "MEMORY.md").write_text(
        "\ufeff# Memory\n\n- Lives in Leeds.\n- [Tea](tea.md)\n", encoding="utf-8"
    )
    (tmp_path / "memory" / "2025-03-01.md").write_text("Bought a boat.\n")
    note = "---\ntitle: Tea\ncreated: 2025-02-03\n---\n# Tea\n- [drink] Likes green tea #x\n- relates_to [[Cups]]\n"
    (tmp_path / "memory" / "tea.md").write_text(note)
    said, _, turns = read(tmp_path)
    assert set(said) == {
        ("assistant", "Lives in Leeds."),
        ("assistant", "Bought a boat."),
        ("assistant", "Likes green tea #x"),
    }
    days = {m.text: m.timestamp // 1000 for t in turns for m in t.messages}
    assert (days["Bought a boat."], days["Likes green tea #x"]) == (at("2025-03-01"), at("2025-02-03"))


@pytest.mark.parametrize(
    "text",
    [
        "- Has a boat.\n---\nLikes tea: green.\n---\n- Likes jam.\n",
        "---\ntags: [a\n- Has a boat.\n- Likes tea.\n- Likes jam.\n",
        "---\n- Has a boat.\n- Likes tea.\n---\n- Likes jam.\n",
        "---\ntitle: x\n---\n- Has a boat.\n---\n- Likes tea.\n-----\n- Likes jam.\n",
        f"---\na: {'[' * 100_000}\n---\n- Has a boat.\n- Likes tea.\n- Likes jam.\n",
    ],
    ids=["rules-without-a-head", "head-without-an-end", "list-for-a-head", "rules-below-a-head", "deep-head"],
)
def test_a_line_of_dashes_in_a_markdown_memory_does_not_start_frontmatter(tmp_path, text):
    (tmp_path / "MEMORY.md").write_text(text)
    said, _, _ = read(tmp_path)
    for words in ("Has a boat", "Likes tea", "Likes jam"):
        assert any(text.startswith(words) for _, text in said)


# --- traps of all


def test_an_unpacked_export_is_read_like_the_zip_also_with_a_byte_order_mark(tmp_path):
    chats = [talk("c1", "2025-03-01", "hello")]
    data = b"\xef\xbb\xbf" + json.dumps(chats, indent=1).encode()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "conversations.json").write_bytes(data)
    paths = [
        zipped(tmp_path / "x.zip", {"conversations.json": data}),
        tmp_path / "folder",
        tmp_path / "folder" / "conversations.json",
    ]
    assert [words(path) for path in paths] == [["hello"]] * 3


def test_a_zip_bomb_is_not_unpacked_and_the_error_names_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(exports, "ALWAYS_BYTES", 1_000_000)
    bomb = zipped(tmp_path / "bomb.zip", {"conversations.json": b"[" + b" " * 4_000_000 + b"]"})
    with pytest.raises(BadInput, match=r"bomb\.zip: conversations\.json would grow .* unpack it"):
        read(bomb)
    deep = packed({"conversations.json": []})
    for _ in range(4):
        deep = packed({"in.zip": deep})
    (tmp_path / "deep.zip").write_bytes(deep)
    with pytest.raises(BadInput, match="zips in zips"):
        read(tmp_path / "deep.zip")


def test_an_archive_of_two_services_or_of_none_is_refused_with_a_remedy(tmp_path):
    both = {
        "a/conversations.json": [talk("c1", "2025-03-01", "x")],
        "b/conversations.json": [claude_chat("c", "2025-03-01")],
    }
    html = {"Takeout/My Activity/Gemini Apps/MyActivity.html": b"<html>"}
    for files, why in (
        (both, "ChatGPT and Claude.ai; unpack it"),
        (html, "its format JSON"),
        ({"chat.html": b"x"}, "download the whole export"),
        ({"photo.jpg": b"x"}, "no export of"),
    ):
        with pytest.raises(BadInput, match=why):
            read(zipped(tmp_path / "x.zip", files))
    whole = zipped(tmp_path / "y.zip", both).read_bytes()
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(BadInput, match=r"cut\.zip: a broken zip .* download the export again"):
        read(tmp_path / "cut.zip")
    with pytest.raises(BadInput, match="an export of OMG, packed; unpack it"):
        read(zipped(tmp_path / "own.zip", {"out/omg-export.json": {"omg": "export"}}))


def test_a_zip_within_an_export_is_reported_with_a_remedy_whether_intact_or_broken(tmp_path):
    zipped(tmp_path / "all" / "other.zip", {"conversations.json": []})
    (tmp_path / "all" / "conversations.json").write_text(json.dumps([talk("c", "2025-03-01", "hello")]))
    said, reading, _ = read(tmp_path / "all")
    assert said == [("user", "hello")]
    assert "other.zip" in reading.skipped[0] and "import it by itself" in reading.skipped[0]
    with pytest.raises(BadInput, match=r"inner\.zip: a broken zip .* unpack the export"):
        read(zipped(tmp_path / "x.zip", {"conversations.json": [], "inner.zip": b"PK\x03\x04"}))


def test_an_export_that_is_cut_short_gives_the_chats_before_the_cut_and_names_the_file(tmp_path):
    data = json.dumps([talk(f"c{n}", "2025-03-01", f"number {n}") for n in range(3)]).encode()
    said, reading, _ = read(zipped(tmp_path / "x.zip", {"conversations.json": data[:-300]}))
    assert [text for _, text in said] == ["number 0", "number 1"]
    (why,) = reading.skipped
    assert "conversations.json" in why and "download the export again" in why


CODEX_TURN = {"turn_id": "t1", "content_item_kinds": ["user.text"]}
DAMAGED = {  # form → an item with each field that its reader looks at, and another one with the words "still here"
    "chatgpt": [
        chat(
            "c1",
            "2025-03-01",
            node(
                "m",
                "assistant",
                {"model_set_context": "1. [2024-06-01]. A bike."},
                1.0,
                kind="model_editable_context",
            ),
            node("u", "user", {"parts": ["a", {"content_type": "audio_transcription", "text": "b"}]}, 2.0),
            node("f", "user", "c", 3.0, metadata={"attachments": [{"name": "a.pdf", "mime_type": "x/pdf"}]}),
        ),
        talk("c2", "2025-03-01", "still here"),
    ],
    "claude": [
        claude_chat(
            "k1",
            "2025-03-01",
            claude_message("m1", "human", "a", "2025-03-01", attachments=[{"file_name": "f"}], files_v2=[{}]),
            claude_message("m2", "assistant", [{"type": "tool_use"}], "2025-03-01", parent="m1"),
            current_leaf_message_uuid="m2",
        ),
        claude_chat("k2", "2025-03-01", claude_message("m9", "human", "still here", "2025-03-01")),
        {"uuid": "p", "name": "P", "prompt_template": "x", "docs": [{"filename": "f", "content": "c"}]},
        {"conversations_memory": "likes tea", "project_memories": {"p": "about p"}},
    ],
    "gemini": [
        activity("Prompted tea", "2025-03-01T12:00:00Z", "<p>Tea</p>"),
        activity("Prompted still here", "2025-03-01T10:00:00Z", "<p>Yes</p>"),
    ],
    "codex": [
        {"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
        *(
            {
                "type": "response_item",
                "timestamp": "2025-03-01T10:00:00Z",
                "payload": {
                    "id": id,
                    "role": "user",
                    "content": [{"type": "input_text", "text": text}],
                    "internal_chat_message_metadata_passthrough": CODEX_TURN,
                },
            }
            for id, text in (("a", "first"), ("b", "still here"))
        ),
        {"type": "compacted", "payload": {"message": "x", "replacement_history": [{"content": "y"}]}},
    ],
    "gemini cli": [
        {"sessionId": "s", "projectHash": "h", "kind": "main"},
        {"id": "1", "type": "gemini", "content": "x", "toolCalls": [{"id": "c", "name": "n", "args": {}}]},
        {"id": "2", "type": "user", "timestamp": "2025-03-01T10:00:00Z", "content": [{"text": "still here"}]},
    ],
}


def places_in(value, at=()):
    """The place of each value in *value*, as keys and numbers."""
    yield at
    for key, inner in (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    ):
        yield from places_in(inner, (*at, key))


@pytest.mark.parametrize("form", DAMAGED)
def test_a_field_of_a_wrong_type_loses_no_other_message(tmp_path, form):
    whole = DAMAGED[form]
    jsonl = form in ("codex", "gemini cli")
    for place in places_in(whole):
        if len(place) < 2 or "still here" in json.dumps(whole[place[0]]) or (jsonl and place[0] == 0):
            continue
        for wrong in (5, True, "x", [[]], {"a": 1}, [{"type": 5, "text": 5}]):
            damaged = json.loads(json.dumps(whole))
            inner = damaged
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = wrong
            path = tmp_path / ("x.jsonl" if jsonl else "x.json")
            lines(path, damaged) if jsonl else path.write_text(json.dumps(damaged))
            assert "still here" in words(path), (place, wrong)


@pytest.mark.parametrize("wrong", [None, 5, "x", "[]", b"\xff", '{"role": 5, "time": []}', '{"type": 5}'])
@pytest.mark.parametrize("table", ["message", "part"])
def test_a_damaged_row_of_opencodes_database_loses_only_its_own_message(tmp_path, table, wrong):
    rows = {"session": [("s", "/w", None, 1)], "message": [], "part": []}
    for n, text in enumerate(("lost", "still here")):
        rows["message"].append(
            (f"m{n}", "s", 1740823200000, '{"role": "user", "time": {"created": 1740823200000}}')
        )
        rows["part"].append((f"p{n}", f"m{n}", "s", json.dumps({"type": "text", "text": text})))
    rows[table][0] = (*rows[table][0][:-1], wrong)
    assert words(database(tmp_path / "opencode.db", OPENCODE, rows)) == ["still here"]


def test_a_claude_chat_or_message_without_an_id_is_counted(tmp_path):
    nameless = {**claude_message("m", "human", "no id", "2025-03-01"), "uuid": None}
    chats = [claude_chat("k", "2025-03-01", nameless), claude_chat(None, "2025-03-01")]
    _, reading, _ = read(zipped(tmp_path / "x.zip", {"conversations.json": chats}))
    assert reading.left_out == {"messages without an id, or repeated": 1}
    assert [why.rpartition(": ")[2] for why in reading.skipped] == ["a chat without a uuid"]


def test_the_error_for_an_encrypted_zip_says_to_unpack_it(tmp_path):
    path = zipped(tmp_path / "x.zip", {"conversations.json": []}, zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + place] |= 1
    path.write_bytes(data)
    with pytest.raises(BadInput, match="encrypted; unpack it"):
        read(path)


def test_the_histories_on_this_machine_are_found_and_empty_folders_are_left_out(tmp_path):
    lines(tmp_path / ".claude" / "projects" / "-w" / "s.jsonl", [{}])
    (tmp_path / ".codex" / "sessions").mkdir(parents=True)
    database(tmp_path / ".local/share/opencode/opencode.db", OPENCODE, {})
    assert [title for title, _ in found_here(tmp_path)] == ["Claude Code", "OpenCode"]


def test_items_of_a_large_export_are_read_one_at_a_time(tmp_path, monkeypatch):
    values = [{"n": n, "text": "ä\U0001f600" * n} for n in range(50)]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    for chunk in (1, 7, 64, 1 << 20):
        monkeypatch.setattr(exports, "CHUNK", chunk)
        assert list(exports.items_of(exports.of_file(path, "x.json"))) == values
