"""Which names and titles in a text are links, and which only look alike."""

import time
from datetime import UTC, date, datetime

import pytest

from omg.config import Config, Observation
from omg.identity import identity_of_session
from omg.journal import commit_receipt, new_receipt
from omg.memory import Memory
from omg.node.note import Node, Source
from omg.plan.drafts import Plan
from omg.plan.edits import Edit, as_entry
from omg.plan.mentions import MentionedNames, link_names, with_mentions

MAIN = "agent:main:main"


def note(kind, title, description, **more):
    path = f"nodes/{kind}/{title.lower().replace(' ', '-')}"
    return as_entry(Node(path, path, description, kind, body=description, heading=title, **more))


KNOWN = [
    note("identity", "Name", "The user's name is Nora Feldmann."),
    note("identity", "Home", "They live in Leipzig with Tomas and a dog called Pepper."),
    note("identity", "Sister", "The user's sister Jule has her birthday on 2026-03-21."),
    note("fact", "Editor at Möwe", "The user's editor at Möwe is Katrin Ahlers."),
    note("fact", "Host name", "The host is nora.uber.space."),
    note("decision", "Uberspace", "The user went with Uberspace for the site."),
    note("project", "Tidepool", "The picture book is called Tidepool."),
    note("project", "Site", "The site is relaunched in spring."),
    note("episode", "Final art", "The final art is due on 2026-04-30."),
    note("identity", "Gina's job", "Today Gina lost her job at Door Dash."),
    note("fact", "Working hard", "Jon is working hard."),
    note("fact", "Planted", "The page wants Mallory to be paid.", origin="tool"),
    note("episode", "Kids to pottery workshop", "They took the kids to a pottery workshop."),
    note("fact", "Tough times", "Those were tough times."),
    note("fact", "Dairy-free flavours", "They try dairy-free flavours."),
    note("episode", "Renovation of Vera", "The user and their brother Jonas renovate the boat Vera."),
    note("fact", "Gym on Dale Street", "The gym on Dale Street closes at nine."),
    note("fact", "Hobbies", "Chess and painting are Nate's hobbies."),
]


@pytest.mark.parametrize(
    "text, linked",
    [
        ("Katrin moved the deadline.", ["nodes/fact/editor-at-möwe"]),
        ("Dinner for Jule's birthday.", ["nodes/identity/sister"]),
        ("Walks with Pepper, then Tidepool.", ["nodes/project/tidepool"]),  # "Home" is no name of a dog
        ("Vera is dry. Jonas came.", ["nodes/episode/renovation-of-vera"]),
        ("The dentist is on Bold Street, the gym too.", []),
        ("Katrin Ahlers and Katrin Berg met.", ["nodes/fact/editor-at-möwe"]),
        ("Ordered paper for the final art.", ["nodes/episode/final-art"]),
        ("Moved to Uberspace, and Uberspace is fast.", ["nodes/decision/uberspace"]),
        (
            "The host name is set, the name and the site are not.",
            ["nodes/fact/host-name", "nodes/project/site"],
        ),
        ("nora.uberspace.de and Uberspace.de, Tidepool-like, x@Jule", []),
        ("Nora likes pepper on her home fries.", []),
        ("`Katrin` and [[nodes/x/y|Jule]] and [Tidepool](https://Jule.example/Tidepool)", []),
        ("Finalart, sisterly, Julesound", []),
        ("Mallory wants to be paid.", []),
        ("On Sunday in March.", []),
        ("Two pottery workshops on Friday.", ["nodes/episode/kids-to-pottery-workshop"]),
        ("A pottery. Workshop of the kids.", []),
        ("A tough time, with dairy-free milk.", []),
        ("The site is up.", ["nodes/project/site"]),
        ("A site and their portfolio site.", []),
        ("They met Nate.", []),
        ("After losing the job at Door Dash, Gina was working hard.", []),
    ],
)
def test_a_name_is_linked_and_a_lookalike_is_not(text, linked):
    after, found = with_mentions(text, MentionedNames(KNOWN), ())
    assert found == linked
    assert all(f"[[{path}|" in after for path in linked)
    if not linked:
        assert after == text


def test_a_name_in_the_title_of_a_note_is_linked_but_the_title_as_a_whole_is_not():
    own = note("episode", "Place for Jule's dinner", "They need a place for Jule's dinner.")
    text, found = with_mentions(own.description, MentionedNames([*KNOWN, own]), (), own=own.path)
    assert found == ["nodes/identity/sister"]
    assert text == "They need a place for [[nodes/identity/sister|Jule]]'s dinner."


def test_a_shared_phrase_of_two_titles_links_them_to_each_other():
    june = note("episode", "Big pride parade in June", "A pride parade.", created=date(2026, 6, 1))
    august = note("episode", "Pride parade", "The pride parade.", created=date(2026, 8, 1))
    names = MentionedNames([june, august])
    assert [with_mentions("The pride parade.", names, (), own=n.path)[1] for n in (june, august)] == [
        [august.path],
        [june.path],
    ]
    assert with_mentions("Two pride parades.", names, ())[1] == [august.path]


def test_a_mention_links_an_event_of_the_same_person_and_not_of_another():
    told = [note("fact", f"{who} {n}", f"{who} said {n}.") for who in ("John", "Maria") for n in range(6)]
    trip = note("episode", "Family road trip", "John made a family road trip.")
    names = MentionedNames([*told, trip])
    assert with_mentions("The road trip.", names, (), own="nodes/fact/john-1")[1] == [trip.path]
    assert with_mentions("The road trip.", names, (), own="nodes/fact/maria-1")[1] == []


def test_the_longest_matching_title_is_linked_once():
    names = MentionedNames([note("fact", "Final art", "F."), note("fact", "Final art paper", "P.")])
    text, found = with_mentions("The final art paper came; final art paper is heavy.", names, ())
    assert found == ["nodes/fact/final-art-paper"]
    assert text == "The [[nodes/fact/final-art-paper|final art paper]] came; final art paper is heavy."


def test_the_vault_owners_name_is_not_linked():
    notes = [note("fact", f"Thing {n}", f"Then Nora did thing number {n}.") for n in range(12)]
    names = MentionedNames([note("identity", "Person", "This is Nora."), *notes])
    assert with_mentions("I met Nora.", names, ())[1] == []


@pytest.fixture
def memory(home):
    memory = Memory(Config(home=home, observation=Observation(model="offline")), embed=None)
    yield memory
    for graph in memory.registry.kept():
        graph.close()


def write(graph, *notes):
    plan = Plan(graph, date(2026, 2, 1))
    for kind, title, text in notes:
        source = Source(MAIN, f"u-{title}", 1_770_000_000_000)
        plan.apply(Edit("create", title, text, type=kind, sources=(source,), origin="user"))
    with graph.lock():
        commit_receipt(graph, new_receipt("observation", datetime.now(UTC), plan.changes()))


def test_at_night_an_older_note_is_linked_to_newer_notes(memory):
    graph = memory.graph(identity_of_session(MAIN))
    write(graph, ("episode", "Deadline", "They say Katrin moved the deadline to 2026-03-23."))
    theirs = graph.vault.file("nodes/episode/deadline").with_name("mine.md")
    theirs.write_text("---\ntype: episode\n---\n\nMet Katrin at the fair.\n")
    write(graph, ("fact", "Editor", "The user's editor is Katrin Ahlers."))
    memory.reflect(graph.identity.key)
    linked = "They say [[nodes/fact/editor|Katrin]] moved the deadline to 2026-03-23."
    assert graph.vault.read("nodes/episode/deadline").body == linked
    assert theirs.read_text() == "---\ntype: episode\n---\n\nMet Katrin at the fair.\n"
    memory.reflect(graph.identity.key)
    assert graph.vault.read("nodes/episode/deadline").body == linked


def test_a_name_in_the_description_alone_is_linked_in_the_head(memory):
    graph = memory.graph(identity_of_session(MAIN))
    write(graph, ("fact", "Editor", "The user's editor is Katrin Ahlers."))
    plan = Plan(graph, date(2026, 2, 2))
    source = Source(MAIN, "u9", 1_770_000_000_009)
    path = plan.apply(
        Edit(
            "create",
            "Deadline",
            "A day that Katrin moved.",
            body="It is near.",
            sources=(source,),
            origin="user",
        )
    )
    assert link_names(plan, [path], graph.index.entries()) == [path]
    assert plan.draft(path).node.links == ("mocs/moc-facts", "nodes/fact/editor")
    assert plan.draft(path).node.body == "It is near."


def test_a_link_in_the_frontmatter_moves_to_the_name_in_the_text(memory):
    graph = memory.graph(identity_of_session(MAIN))
    write(graph, ("fact", "Editor", "The user's editor is Katrin Ahlers."))
    plan = Plan(graph, date(2026, 2, 2))
    source = Source(MAIN, "u9", 1_770_000_000_009)
    edit = Edit("create", "Deadline", "Katrin moved it.", sources=(source,), links=("nodes/fact/editor",))
    path = plan.apply(edit)
    assert plan.draft(path).node.links == ("mocs/moc-facts", "nodes/fact/editor")
    link_names(plan, [path], graph.index.entries())
    assert plan.draft(path).node.links == ("mocs/moc-facts",)
    assert plan.draft(path).node.body == "[[nodes/fact/editor|Katrin]] moved it."


def test_names_in_a_long_description_are_found_quickly() -> None:
    long = note("fact", "A long story", "My Anna " * 4_000)
    start = time.process_time()
    MentionedNames([long])
    assert time.process_time() - start < 1
