import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from omg.errors import BadNode
from omg.node.markdown import generated_block, link_targets, slugify, wikilink, with_generated_block
from omg.node.note import (
    GENERATED,
    ORIGINS,
    PRIORITIES,
    SECONDS,
    STATUSES,
    TYPES,
    Node,
    Source,
    amend_text,
    head_of,
    parse_node,
    render_node,
)

PATH = "nodes/preference/answer-style"
TEXT = """\
---
id: omg/preference/answer-style
description: Prefers short checklists, with the next step first.
type: preference
priority: high
status: active
pinned: true
standing: true
loop: open
created: 2026-02-19
updated: 2026-02-20
event: 2026-03-05
appliesTo: { sessionScope: dm, identityKey: "agent:main:telegram:direct:alice" }
origin: user
reflected_in:
  - "[[reflections/2026-W08]]"
sources:
  - { sessionKey: "agent:main:main", kind: message, id: m1, timestamp: 1771495200000 }
supersedes:
  - "[[nodes/preference/long-answers]]"
links:
  - "[[mocs/moc-preferences]]"
tags:
  - format
aliases:
  - nodes/preference/checklists
mood: "on"
---

Start with the next step; depth is in [[nodes/preference/detail|detail]].

## History
- 2026-01-03: Wants everything explained.
"""
NODE = Node(
    path=PATH,
    id="omg/preference/answer-style",
    description="Prefers short checklists, with the next step first.",
    type="preference",
    priority="high",
    pinned=True,
    standing=True,
    loop="open",
    created=dt.date(2026, 2, 19),
    updated=dt.date(2026, 2, 20),
    event="2026-03-05",
    scope="dm",
    identity="agent:main:telegram:direct:alice",
    origin="user",
    reflected_in=("reflections/2026-W08",),
    sources=(Source("agent:main:main", "m1", 1771495200000),),
    supersedes=("nodes/preference/long-answers",),
    links=("mocs/moc-preferences",),
    tags=("format",),
    aliases=("nodes/preference/checklists",),
    body="Start with the next step; depth is in [[nodes/preference/detail|detail]].\n\n"
    "## History\n- 2026-01-03: Wants everything explained.",
    extra={"mood": "on"},
)

# What YAML 1.1, YAML 1.2 or an editor might take for something else.
TRICKY = "on no Yes y NULL null ~ true 12:30 0123 0x1F 0o17 1_000 1e3 +5 .5 5. .inf .nan 2026-02-19".split()
TRICKY += "2026-02-19T10:00:00Z --- ... [[x]] [a] &a *a !a %a @a `a` 'a' \"a\" a\\nb << = a,b".split()
TRICKY += ["- a", "a: b", "a #b", "{a: b}", " a", "a ", "naïve “quotes” – dashes…", "日本語"]
TRICKY += ["\u2028", "\x85", "\x07", "\ufeff", "\U0001f600"]
lines = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1)
strings = lines | st.sampled_from(TRICKY)
sentences = strings.filter(str.strip)
names = st.from_regex(r"[a-zé日][\w/-]{0,8}", fullmatch=True)
bodies = st.lists(lines | st.sampled_from(["", "---", "# h", "a: b", "```", "`", "[[x]]", "## History"])).map(
    "\n".join
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | strings,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3),
    max_leaves=6,
)
days = st.none() | st.dates()
times = st.integers(0, 2**53).filter(lambda ms: ms not in SECONDS)  # which are read as seconds
nodes = st.builds(
    Node,
    path=st.just(PATH),
    id=sentences,
    description=sentences,
    type=st.sampled_from((*TYPES, *GENERATED, "note")),
    priority=st.sampled_from(PRIORITIES),
    status=st.sampled_from(STATUSES),
    pinned=st.booleans(),
    standing=st.booleans(),
    loop=st.sampled_from((None, "open", "done")),
    created=days,
    updated=days,
    event=st.none()
    | st.dates().map(str)
    | st.tuples(st.dates(), st.dates()).map(lambda ends: f"{min(ends)}..{max(ends)}"),
    scope=st.sampled_from((None, "dm", "group", "global")),
    identity=st.none() | sentences,
    origin=st.sampled_from((None, *ORIGINS)),
    reflected_in=st.lists(names).map(tuple),
    sources=st.lists(st.builds(Source, strings, strings, times, st.just("message"))).map(tuple),
    supersedes=st.lists(names).map(tuple),
    superseded_by=st.none() | names,
    links=st.lists(names).map(tuple),
    tags=st.lists(strings).map(tuple),
    aliases=st.lists(strings).map(tuple),
    heading=st.just("") | lines,
    body=bodies,
    extra=st.dictionaries(strings.map(lambda s: f"x{s}") | st.sampled_from(TRICKY), values, max_size=3),
)


# --- parse and render


def test_the_documented_frontmatter_is_read_and_written_byte_for_byte():
    assert parse_node(TEXT, PATH) == NODE
    assert render_node(NODE) == TEXT


@given(nodes)
def test_parse_undoes_render(node):
    text = render_node(node)
    assert parse_node(text, PATH) == node
    assert render_node(parse_node(text, PATH)) == text


@given(nodes)
def test_yaml_1_1_reads_a_rendered_note_the_same_way(node):
    theirs = yaml.safe_load(render_node(node).split("\n---\n")[0])
    for key in {"created", "updated", "event"} & theirs.keys():
        theirs[key] = str(theirs[key])
    assert theirs == head_of(node)


heads = st.lists(
    st.tuples(
        st.sampled_from([*head_of(NODE), "superseded_by", "mood", "on", "2024", '"quoted key"']),
        st.sampled_from(
            [
                *TRICKY,
                "",
                "[[[a]], [[b|c]]]",
                "[1, 2.5, [x]]",
                "{ a: 1 }",
                "{ identityKey: '' }",
                "|\n  two\n  lines",
                "1.10",
            ]
        )
        | strings,
    )
)


@given(heads, bodies, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\ufeff"]))
def test_a_readable_note_is_unchanged_after_writing_and_reading_it_again(entries, body, eol, bom):
    text = "".join(f"{key}: {value}\n" for key, value in entries)
    try:
        node = parse_node(bom + f"---\n{text}---\n{body}".replace("\n", eol), PATH)
    except BadNode as e:
        assert str(e).startswith(f"{PATH}.md: the frontmatter")
    else:
        assert parse_node(render_node(node), PATH) == node


@given(st.text(st.sampled_from("-a:[]{}&*!|>'\"#%@`,? \t\r\n\ufeff\x00é") | st.characters(codec="utf-8")))
def test_parsing_any_text_fails_only_with_BadNode(text):
    for candidate in (text, f"---\n{text}\n---\n", f"---\n{text}"):
        try:
            node = parse_node(candidate, PATH)
        except BadNode:
            continue
        assert parse_node(render_node(node), PATH) == node


def test_a_file_without_a_head_is_a_persons_note():
    node = parse_node("\n# Buy [[milk]]\nand eggs\n", "inbox/buy milk")
    assert (node.id, node.type, node.description) == ("inbox/buy milk", "note", "Buy [[milk]]")
    assert node.body == "\n# Buy [[milk]]\nand eggs"
    assert parse_node("", "inbox/x").description == ""
    assert parse_node("---\n---\n", "inbox/x").type == "note"
    assert parse_node("----\nnot a head", "inbox/x").body == "----\nnot a head"
    assert len(parse_node("word " * 1000, "inbox/x").description) <= 200


def test_a_note_without_a_type_gets_the_type_of_its_folder():
    node = parse_node("Under the flowerpot.\n", "nodes/fact/spare-key")
    assert node.type == "fact" and "type: fact\n" in render_node(node)
    assert parse_node("Under the flowerpot.\n", "nodes/keys/spare").type == "note"
    loose = parse_node("---\ntype: note\n---\nx\n", "nodes/fact/x")
    assert loose.type == "note" and parse_node(render_node(loose), loose.path) == loose


def test_a_bom_and_crlf_do_not_hide_the_head():
    node = parse_node("\ufeff" + TEXT.replace("\n", "\r\n"), PATH)
    assert node == NODE


@pytest.mark.parametrize(
    "yaml, links",
    [
        ("[[a/b]]", ("a/b",)),
        ("[[[a]], [[b|label]]]", ("a", "b")),
        ("\n  - [[a]]\n  - '[[b#heading]]'\n  - c.md", ("a", "b", "c")),
        ('"[[a|x]]"', ("a",)),
        ("\n  - [[a]]\n  -", ("a",)),
    ],
)
def test_links_are_read_however_they_are_quoted(yaml, links):
    assert parse_node(f"---\nlinks: {yaml}\n---\n", PATH).links == links


def test_values_that_yaml_1_1_would_convert_are_read_as_text():
    text = "---\nswitch: on\ntime: 12:30\nzip: 0123\nday: 2026-02-19\nversion: 1.10\nn: 7\nyes: no\n"
    node = parse_node(f"{text}tags: [2026, off]\n---\n", PATH)
    assert node.extra == {
        **{"switch": "on", "time": "12:30", "zip": "0123", "day": "2026-02-19"},
        **{"version": 1.1, "n": 7, "yes": "no"},
    }
    assert node.tags == ("2026", "off")


@pytest.mark.parametrize(
    "key, bad, good, value",
    [
        ("priority", "urgent", "HIGH", "high"),
        ("status", "[x]", "Dormant", "dormant"),
        ("type", "book", "Fact", "fact"),
        ("pinned", "maybe", "yes", True),
        ("standing", "maybe", "on", True),
        ("loop", "ajar", "open", "open"),
        ("created", "2026-02-31", "2026-02-19 10:00", dt.date(2026, 2, 19)),
        ("event", "2026-03-08..2026-03-05", "2026-03-05..2026-03-08", "2026-03-05..2026-03-08"),
        ("superseded_by", "[a, b]", "[[a]]", "a"),
        ("links", "{ a: b }", "a", ("a",)),
        ("description", "[a]", "|\n  two\n  lines", "two lines"),
        ("id", "{ a: b }", "7", "7"),
        ("origin", "rumour", "tool", "tool"),
        (
            "sources",
            "[https://example.org]",
            "[{sessionKey: s, id: 1, timestamp: 2}]",
            (Source("s", "1", 2),),
        ),
        ("tags", "[[a]]", "a", ("a",)),
    ],
)
def test_an_unreadable_value_is_kept_under_its_key(key, bad, good, value):
    node = parse_node(f"---\n{key}: {bad}\n---\nbody\n", PATH)
    assert list(node.extra) == [key]
    assert parse_node(render_node(node), PATH) == node
    assert getattr(parse_node(f"---\n{key}: {good}\n---\n", PATH), key) == value


def test_an_invalid_appliesTo_is_kept_until_another_scope_is_set():
    node = parse_node("---\nappliesTo: { sessionScope: dm, note: mine }\n---\n", PATH)
    assert node.scope is None
    assert parse_node(render_node(node), PATH) == node
    assert parse_node(render_node(replace(node, scope="group")), PATH).scope == "group"


@pytest.mark.parametrize(
    "text, says",
    [
        ("---\ntype: [unclosed\n---\n", "not YAML: .* in line"),
        ("---\ntype: fact\n", "does not end"),
        ("---\n- a\n- b\n---\n", "not made of `key: value` lines"),
        ("---\njust words\n---\n", "not made of `key: value` lines"),
        ("---\n? [a, b]\n: c\n---\n", "list or mapping as a key in line 2"),
        ("---\na: \x07\n---\n", "not YAML"),
        ("---\na: " + "[" * 100_000 + "\n---\n", "too deeply nested"),
        ("---\n" + "- " * 100_000 + "\n---\n", "too deeply nested"),
        ("---\na: &a [*a]\n---\n", "YAML aliases repeat too much|not YAML"),
        ("---\na: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)
        ) + "---\n", "YAML aliases repeat too much"),
    ],
)  # fmt: skip
def test_the_error_of_an_unreadable_head_says_what_to_mend(text, says):
    with pytest.raises(BadNode, match=f"^{PATH}.md: the frontmatter.*({says})"):
        parse_node(text, PATH)


def test_title_is_the_first_heading_outside_code_or_the_file_name():
    assert replace(NODE, body="```sh\n# not this\n```\n# Answer *style*\n").title == "Answer *style*"
    assert replace(NODE, body="## Smaller").title == "Answer style"
    assert replace(NODE, path="reflections/2026-W08", body="").title == "2026-W08"


def test_a_title_without_a_heading_is_spelled_like_the_alias_that_matches_the_file_name():
    node = replace(NODE, path="nodes/fact/maria-s-iphone", body="")
    assert node.title == "Maria s iphone"
    assert (
        replace(node, aliases=("nodes/fact/her-phone", "Her phone", "Maria's iPhone")).title
        == "Maria's iPhone"
    )


# --- amend

# Lines as people write them: each value with its comments, quoting and spacing is one chunk of the head.
CHUNKS = {
    "status": [
        *("active  # for now", "'active'", "\tactive", "  active", "", "# nothing yet"),
        *("|\n  active\n", ">-\n  act\n  ive"),
    ],
    "links": [
        "[[a]]",
        "\n  - '[[a]]'  # the first\n  # the next\n  - \"[[b]]\"\n# below",
        "\n- '[[a]]'\n-",
        " # why\n  - '[[a]]'",
        "[ '[[a]]',\n  '[[b]]' ]",
    ],
    "mood": [
        *("on", "{ deep: { deeper: [1, 2] } }", '"two\\n lines"', "plain\n  on two lines"),
        *("|+\n  kept\n\n", "!!str 7"),
    ],
    "# a comment": [""],
    '"quoted: key"': ["x"],
    "pinned": ["1", "yes"],
}
chunks = st.lists(st.sampled_from(list(CHUNKS)), unique=True).flatmap(
    lambda keys: st.tuples(*(st.sampled_from(CHUNKS[key]).map(lambda v, key=key: (key, v)) for key in keys))
)
changes = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["superseded", "dormant"]),
        "links": st.just(["[[new]]", "[[a, b]]"]),
        "superseded_by": st.just("[[x]]"),
        "updated": st.just(dt.date(2026, 2, 20)),
        "pinned": st.just(True),
        "mood": strings | st.none() | st.just({"now": ["calm", 1]}),
    },
)


def compiled(entries, eol, bom, body, indent=""):
    lines = []
    for key, value in entries:
        gap = "" if value.startswith(("\n", "\t")) or key.startswith("#") else " "
        chunk = f"{key}\n" if key.startswith("#") else f"{key}:{gap}{value}\n"
        lines.append("".join(f"{indent}{line}\n" for line in chunk.split("\n")[:-1]))
    return [bom + "---\n".replace("\n", eol), *(c.replace("\n", eol) for c in lines), f"---{eol}" + body]


@given(
    chunks,
    changes,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
    st.sampled_from(["", "  "]),
)
def test_amend_sets_the_keys_and_leaves_every_other_byte(entries, wanted, eol, bom, indent):
    body = f"\tOdd  {eol}{eol}body, no end"
    parts = compiled(entries, eol, bom, body, indent)
    text = "".join(parts)
    before = parse_node(text, PATH)
    amended = amend_text(text, set=wanted)

    after = parse_node(amended, PATH)
    expected = parse_node(render_node(replace(before, **fields_of(before, wanted))), PATH)
    assert after == expected
    assert amend_text(amended, set=wanted) == amended

    rest = amended
    for (key, _), part in zip([("", ""), *entries, ("", "")], parts, strict=True):
        if key not in wanted:  # what was not asked for is found as it was, in its order
            assert part in rest
            rest = rest[rest.index(part) + len(part) :]
    assert rest == "" and amended.startswith(parts[0])


def fields_of(node, wanted):
    """The fields that *wanted*, which is frontmatter, gives a Node."""
    extra = dict(node.extra)
    found = {}
    for key, value in wanted.items():
        extra.pop(key, None)
        if key == "mood":
            extra |= {} if value is None else {key: value}
        elif key == "links":
            found[key] = ("new", "a, b")
        elif key == "superseded_by":
            found[key] = "x"
        else:
            found[key] = value
    return found | {"extra": extra}


@given(heads, changes)
def test_amend_of_any_readable_head_sets_the_values_or_raises(entries, wanted):
    text = "---\n" + "".join(f"{key}: {value}\n" for key, value in entries) + "---\nbody"
    try:
        before = parse_node(text, PATH)
    except BadNode:
        assume(False)
    try:
        amended = amend_text(text, set=wanted)
    except BadNode as e:
        assert "cannot change" in str(e)
    else:
        assert parse_node(amended, PATH) == replace(before, **fields_of(before, wanted))
        assert amend_text(amended, set=wanted) == amended


def test_amend_gives_a_head_to_a_file_without_one():
    assert (
        amend_text("Hello\r\n", set={"status": "dormant"}) == "---\r\nstatus: dormant\r\n---\r\n\r\nHello\r\n"
    )
    assert amend_text("\ufeffHello", set={"status": "dormant"}) == "\ufeff---\nstatus: dormant\n---\n\nHello"
    assert amend_text("", set={"pinned": True, "loop": None}) == "---\npinned: true\n---\n"
    assert amend_text("Hello", set={"loop": None}) == "Hello"
    assert parse_node(amend_text("\n\nHello\n", set={"pinned": True}), PATH).body == "\n\nHello"


@pytest.mark.parametrize(
    "head", ["a: &x 1\nstatus: *x", "status: &x active\nb: *x", "{b: 1}", "b: &x [1]\nstatus:\n  - *x"]
)
def test_amend_refuses_a_change_that_would_change_another_key(head):
    with pytest.raises(BadNode, match="cannot change status"):
        amend_text(f"---\n{head}\n---\n", set={"status": "dormant"})


def test_amend_of_an_unreadable_file_touches_nothing():
    with pytest.raises(BadNode):
        amend_text("---\nstatus: [\n---\n", set={"status": "dormant"})
    with pytest.raises(BadNode):
        amend_text("---\nstatus: x\n", history="a line")


@given(
    bodies,
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "---\nstatus: x\n---\n", "\ufeff"]),
    st.booleans(),
)
def test_adding_a_history_line_changes_no_other_byte(body, eol, head, ends):
    text = (head + body + ("\n" if ends else "")).replace("\n", eol)
    assume(not body.startswith("---"))
    amended = amend_text(text, history="2026-02-20: was\nother")
    assert "- 2026-02-20: was other" in amended
    cut = len(amended) - len(text)
    same = next((i for i, (a, b) in enumerate(zip(amended, text, strict=False)) if a != b), len(text))
    assert any(amended[:i] + amended[i + cut :] == text for i in range(same + 1))
    assert "\r\n" not in text or amended.count("\r\n") == amended.count("\n")


@pytest.mark.parametrize(
    "text, amended",
    [
        ("Body", "Body\n\n## History\n- new"),
        ("Body\n", "Body\n\n## History\n- new\n"),
        ("---\na: 1\n---", "---\na: 1\n---\n\n## History\n- new"),
        ("B\n\n## History\n- old\n\n\n## More\nx", "B\n\n## History\n- old\n- new\n\n\n## More\nx"),
        ("B\n\n## History\n\n### Sub\n- old", "B\n\n## History\n\n### Sub\n- old\n- new"),
        ("```\n## History\n```\n", "```\n## History\n```\n\n## History\n- new\n"),
        ("## History\n- a\n<!-- omg:begin -->\n", "## History\n- a\n- new\n<!-- omg:begin -->\n"),
        ("## Historyless\r\n", "## Historyless\r\n\r\n## History\r\n- new\r\n"),
    ],
)
def test_a_history_line_is_added_at_the_end_of_the_history_or_starts_a_new_history(text, amended):
    assert amend_text(text, history="- new") == amended


# --- blocks, links, names


@given(bodies, bodies, bodies)
def test_a_generated_block_keeps_its_content_and_the_text_around_it(above, inner, below):
    assume("<!-- omg:" not in above + inner + below)
    text = f"{above}\n<!-- omg:begin -->\n<!-- omg:end -->\n{below}"
    filled = with_generated_block(text, inner)
    assert generated_block(filled) == inner.strip("\n")
    assert filled.startswith(f"{above}\n<!-- omg:begin -->\n") and filled.endswith(
        f"\n<!-- omg:end -->\n{below}"
    )
    assert with_generated_block(filled, inner) == filled


def test_content_cannot_end_a_generated_block():
    text = "<!-- omg:begin -->\n<!-- omg:end -->"
    filled = with_generated_block(text, "x <!-- omg:end --> y <!-- omg:begin -->")
    assert with_generated_block(filled, "") == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<!-- omg:begin -->",
        "<!-- omg:end --><!-- omg:begin -->",
        "<!-- omg:begin --><!-- omg:end -->" * 2,
    ],
)
def test_a_generated_block_without_exactly_one_pair_of_markers_is_an_error(text):  # fmt: skip
    assert generated_block(text) is None
    with pytest.raises(BadNode, match="<!-- omg:begin -->"):
        with_generated_block(text, "x")


@pytest.mark.parametrize(
    "text, found",
    [
        ("[[a]] and [[b|label]], ![[c#h]] [[d.md]] [[a]]", ("a", "b", "c", "d")),
        ("| [[a\\|label]] |", ("a",)),
        ("`[[a]]` ``x ` [[b]]`` [[c]]", ("c",)),
        ("```\n[[a]]\n```\n[[b]]", ("b",)),
        ("~~~md\n[[a]]\n~~~~\n[[b]]\n```\n[[c]] never closed", ("b",)),
        ("an ` alone\n\n[[a]] and another `", ("a",)),
        ("[[]] [[ ]] [[#h]] [[a\nb]] [a] [[[c]]]", ("c",)),
    ],
)
def test_links_are_found_outside_code(text, found):
    assert link_targets(text) == found
    assert replace(NODE, body=text).wikilinks == found


@given(names, strings)
def test_a_written_link_is_parsed_back_to_its_path_whatever_the_label_is(path, label):
    assert link_targets(f"see {wikilink(path, label.replace('`', ''))}") == (path,)


@pytest.mark.parametrize(
    "title, slug",
    [
        ("Answer style", "answer-style"),
        ("Crème brûlée — à la carte!", "creme-brulee-a-la-carte"),
        ("../../etc/passwd", "etc-passwd"),
        ("हिन्दी में", "हिन्दी-में"),
        ("com¹", "com1-note"),
        ("🎉", "note"),
        (
            "The renovation of the kitchen and the pantry by Jonas",
            "the-renovation-of-the-kitchen-and-the-pantry-by",
        ),
        ("x" * 100, "x" * 50),
    ],
)
def test_a_title_becomes_a_slug(title, slug):
    assert slugify(title) == slug


@given(st.text())
def test_a_slug_is_safe_as_a_name_on_any_system(title):
    slug = slugify(title)
    assert 1 <= len(slug) <= 55
    assert not set(slug) & set('/\\.:*?"<>|#^[]\0 \n\t_') and not slug.startswith("-") and slug.isprintable()
    assert slugify(slug) == slug
    assert Path(f"{slug}.md").name == f"{slug}.md"
