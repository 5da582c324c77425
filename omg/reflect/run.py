"""Runs one night over one graph: drafts what changes, asks a model, and writes everything as one receipt.

Drafting and asking hold no lock. If somebody writes to the vault meanwhile, the night drafts once more, and uses the
replies that it already has."""

from __future__ import annotations

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Literal

from ..config import Config
from ..dates.days import day_of_ms
from ..errors import BadInput, BadNode, BadReply, ModelError, NotFound, how_many
from ..graph.graph import Graph
from ..graph.state import State, flock
from ..index.rows import days_of_note
from ..index.store import Entry
from ..journal import UNDONE, Change, Outcome, Receipt, commit_receipt, read_receipt, receipt_id, replay_open
from ..llm.asker import reply_to_failure
from ..llm.replies import Ask, ModelQuestion, ModelReply, instructions
from ..node.markdown import BEGIN, END, generated_block, wikilink, with_generated_block
from ..node.note import LOG_FOLDER, TYPES, Node, page_title, parse_node, render_node
from ..observe.question import Observer
from ..plan.drafts import Plan
from ..plan.pages import YOURS, is_topic, maps_of, project_of_map, week_of
from ..vault.files import digest
from . import periods, similar, verdicts
from .checking import claims_of_night, not_borne_out, questions
from .maps import ShownMap, ToldMap, draft_told, map_to_tell, newest_that_fit, tell_maps
from .periods import Period, ReflectionDraft
from .topics import Snapshot, assign_maps, filed_lines, link_of
from .verdicts import (
    Group,
    Matter,
    MergeRules,
    Refusal,
    commit_seen,
    follow_verdicts,
    stage_seen,
)

# --- The result of one cycle of the Reflector, and what a model said in it.


TellReflection = Callable[..., None]  # called with (event, **fields), for events.jsonl


@dataclass(frozen=True, slots=True)
class CycleOptions:
    """The options of a cycle. `tell` and `refresh` do nothing by default."""

    since: dt.date | None = None  # look again at all notes created or updated on this day or later
    dry_run: bool = False  # ask and draft, but write nothing
    tell: TellReflection = lambda *a, **k: None
    # updates the index from the files (`Registry.refresh`)
    refresh: Callable[[], object] = lambda: None


# Plain words for those counts of a cycle whose own name a person would not understand.
IN_WORDS = {"told": "map texts", "mended": "mended links", "unanswered": "unanswered claims"}


@dataclass(slots=True)
class Cycle:
    """The result of one cycle. `receipt` is None if nothing changed, and after a dry run."""

    id: str = ""  # of the receipt; the events of this cycle name it, too
    receipt: Receipt | None = None
    outcome: Outcome | None = None
    summary: list[str] = field(default_factory=list)  # what was done, a line each, with links
    proposed: list[str] = field(default_factory=list)  # what a person may want to do
    skipped: list[str] = field(default_factory=list)  # what could not be done, and why
    refused: list[Refusal] = field(default_factory=list)  # verdicts of the model that were not followed
    verdicts: int = 0  # of the model, followed or not
    counts: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0  # in and out

    @property
    def headline(self) -> str:
        """What the cycle did, in one line for a person."""
        done = [(IN_WORDS.get(what, what), n) for what, n in self.counts.items() if n]
        said = [f"{n} {what.removesuffix('s') if n == 1 else what}" for what, n in done]
        said += [f"{len(self.proposed)} for you to judge"] * bool(self.proposed)
        return ", ".join(said) or "nothing to do"


def counted(ask: Ask, cycle: Cycle) -> Ask:
    def asked(question: ModelQuestion) -> ModelReply:
        cycle.calls += 1
        reply = ask(question)
        cycle.tokens += reply.tokens_in + reply.tokens_out
        return reply

    return asked


Replies = dict[tuple[str, str], ModelReply | ModelError]  # by the question: its system part, its user part


def asked_once(ask: Ask, replies: Replies, *, over: bool) -> Ask:
    """
    Wrap *ask* to keep its answers in *replies*. If asking is *over*, only these answers are given and no model is
    asked.
    """

    def asked(question: ModelQuestion) -> ModelReply:
        key = question.system, question.user
        if not over:
            try:
                replies[key] = ask(question)
            except ModelError as e:
                replies[key] = e
        answer = replies.get(key) or BadReply("its notes changed while the model was asked")
        if isinstance(answer, ModelError):
            raise answer
        return answer

    return asked


class CycleWork:
    """
    The drafts of one cycle.

    *first*: earlier drafts of the same cycle, if the vault has changed since. With *first*, no model is asked: a
    question that was asked for *first* gets the same answer, and any other question waits for the next night.
    """

    def __init__(
        self,
        graph: Graph,
        observer: Observer,
        config: Config,
        now: dt.datetime,
        options: CycleOptions,
        *,
        first: CycleWork | None = None,
    ) -> None:
        self.graph, self.config, self.now, self.since = graph, config, now, options.since
        self.first, self.cycle = first, Cycle()
        self.replies: Replies = first.replies if first else {}
        ask = observer.ask and counted(observer.ask, self.cycle)
        self.ask = ask and asked_once(ask, self.replies, over=first is not None)
        self.answered = set[Matter]()
        self.passed_over = set[Matter]()  # asked about, but the reply left them out
        self.untold: list[Refusal] = []  # parts of replies about maps that were not used
        self.by_rule = observer.ask is None
        self.window, self.able = observer.window, observer.able
        self.similar: dict[str, dict[str, float]] = {}
        self.matters: list[Matter] = []  # to ask about
        self.looked_at: dict[str, str] = {}  # the changed notes that the matters are about → their hashes
        self.added: dict[tuple[str, str], str] = {}  # week, note → what the week added to its text
        self.state = graph.state()
        self.seen = verdicts.load_seen(graph)
        self.before = deepcopy(self.seen)
        self.hashes = graph.index.hashes()
        if first is not None:
            said = first.cycle
            self.cycle = Cycle(said.id, calls=said.calls, tokens=said.tokens)
            self.similar, self.looked_at = first.similar, first.looked_at
        self.all = graph.index.entries(status=None)
        entries = {e.path: e for e in self.all if e.status != "superseded"}
        if first is not None:
            self.matters = [m for m in first.matters if entries.keys() >= {*m.paths}]
        notes = {p: h for p, h in self.hashes.items() if p in entries and entries[p].type in TYPES}
        self.changed = notes_said_since(entries, self.since) if self.since else self.seen.changed(notes)
        self.unasked = self.changed if self.since else self.seen.unasked(notes)
        day = now.astimezone(graph.zone).date()
        self.snapshot = Snapshot(Plan(graph, day), entries, self.changed, notes_still_undone(graph))
        self.plan.maps.known = on_maps(entries, graph.index.homes())

    @property
    def plan(self) -> Plan:
        return self.snapshot.plan

    def draft(self) -> None:
        cycle, snapshot, options = self.cycle, self.snapshot, self.config.reflection
        repeated, mended = similar.merge_repeated(snapshot), similar.mend_links(snapshot)
        if self.first is None:
            self.look_for_matters()
        asked = {frozenset(m.paths) for m in self.matters if m.kind == "same"}
        rules = MergeRules(self.plan, snapshot.frozen, asked)
        self.ask_about_matters(rules)
        reflections = self.draft_reflections()
        if self.since:
            cycle.skipped += undone_lines(snapshot.frozen)
        dormant, woken = similar.mark_dormant(snapshot, self.now, options.dormant_after_days)
        unanswered = similar.mark_unanswered(snapshot)
        linked = similar.link_mentions_by_night(snapshot)
        split, filed = assign_maps(snapshot, options.moc_entries)
        told, moved = self.tell_maps()
        for old, new in moved.items():
            title = page_title(old)[0]
            split = [line.replace(wikilink(old, title), wikilink(new, page_title(new)[0])) for line in split]
        cycle.summary = [
            *repeated,
            *rules.done,
            *mended,
            *[f"Linked {how_many(len(linked), 'note')} to other notes that they name."] * bool(linked),
            *reflections,
            *split,
            *filed_lines(filed),
            *told,
        ]
        cycle.summary += [f"{n} is dormant now." for n in dormant] + [f"{n} is active again." for n in woken]
        cycle.summary += unanswered
        cycle.proposed = [
            *rules.proposed,
            *similar.proposed_pairs(snapshot, self.not_compared()),
        ]
        cycle.refused = [*rules.refused, *self.untold]
        cycle.verdicts = rules.verdicts
        cycle.counts = {
            **rules.counts,
            "merged": rules.counts["merged"] + len(repeated),
            "linked": len(linked),
            "reflections": len(reflections),
            "mended": len(mended),
            "dormant": len(dormant),
            "woken": len(woken),
            "unanswered": len(unanswered),
            "split": len(split),
            "filed": filed.total(),
            "told": len(self.plan.maps.told),
            "refused": len(cycle.refused),
        }

    # --- what a model is asked of notes

    def look_for_matters(self) -> None:
        """
        Find what to ask a model: pairs of similar notes, and open loops whose day is past. Leaves out matters that a
        model has answered.
        """
        alike = similar.NotesAlike(self.snapshot, self.now)
        seeds = (self.changed if self.by_rule else self.unasked) - self.snapshot.frozen
        self.similar = similar.similar_notes(alike, seeds)
        self.looked_at = {path: self.hashes[path] for path in seeds}
        if not self.by_rule:
            matters = [
                *self.loops_in_question(alike, seeds),
                *verdicts.pairs_alike(self.similar),
            ]
            self.matters = [m for m in matters if self.since or self.is_open(m, seeds)]

    def loops_in_question(self, alike: similar.NotesAlike, changed: set[str]) -> Iterator[Matter]:
        """
        Yield the question whether a plan has ended, for each open loop whose day is past.

        If no note changed, a loop that a model has already judged is left out.
        """
        for loop, days in verdicts.loops_past_their_day(self.snapshot):
            plain = Matter("overdue", (loop.path,))
            if (changed or self.is_open(plain, changed)) and (matter := verdicts.overdue(loop, days, alike)):
                yield matter

    def is_open(self, matter: Matter, changed: set[str]) -> bool:
        """
        Whether the model must be asked about *matter*.

        One of these must hold:
        - no model has answered this question about the present texts of the notes
        - one of the *changed* notes may tell how an overdue plan ended
        """
        news = matter.kind == "overdue" and not changed.isdisjoint(matter.paths[1:])
        return news or not self.seen.is_answered(matter, self.matter_digest(matter))

    def matter_digest(self, matter: Matter) -> str:
        return verdicts.digest_of(
            verdicts.note_shown("", self.snapshot.node(path)) for path in matter.known_by
        )

    def ask_about_matters(self, rules: MergeRules) -> None:
        """
        Ask the model about similar notes and overdue plans, in one or more calls.

        Each call shows the notes with the changes of the earlier calls.
        """
        if self.ask is None:
            if self.similar:
                said = f"{len(self.similar)} changed notes that resemble others: no model compared them"
                self.cycle.skipped.append(said)
            return
        calls = [
            (groups, least)
            for least, matters in verdicts.by_trust(self.matters, self.snapshot.entries).items()
            for groups in verdicts.calls_of(verdicts.groups_of(matters))
        ]
        for n, (groups, least) in enumerate(calls):
            try:
                self.ask_about(rules, groups, least)
            except BadReply as e:
                asked = sum(len(g.paths) for g in groups)
                self.cycle.skipped.append(f"comparing {how_many(asked, 'note')}: {e}")
            except ModelError as e:
                left = sum(len(groups) for groups, _ in calls[n:])
                self.stop_asking(f"comparing {how_many(left, 'group')} of notes", e)
                return

    def ask_about(self, rules: MergeRules, groups: list[Group], least: int) -> None:
        """
        Ask the model about *groups* of notes, and apply the answers with *rules*.

        A question about a note that is no longer active is left out. If the reply is cut short, each half of the groups
        is asked about alone. *least*: `trust_of` of the least trusted note in *groups*.
        """
        assert self.ask is not None
        left = [self.still_in_question(group) for group in groups]
        self.answered |= {m for g in groups for m in g.matters} - {m for g in left for m in g.matters}
        shown = verdicts.shown_groups([group for group in left if group.matters], least)
        if not shown:
            return
        nodes = {path: self.snapshot.node(path) for s in shown for path in s.notes.values()}
        system = instructions("reflect-notes", self.config.reflection.instruction)
        user = verdicts.groups_question(shown, nodes, self.plan.day)
        agent = self.graph.identity.agent
        question = ModelQuestion(
            system, user, schema=verdicts.VERDICTS_SCHEMA, purpose="reflect", agent=agent
        )
        reply = reply_to_failure(self.ask, question)
        asked = [s.group for s in shown]
        if reply.cut and (fewer := verdicts.halves(asked)):
            for some in fewer:
                self.ask_about(rules, some, least)
            return
        if reply.cut:
            self.cycle.skipped.append("the end of a reply about two notes, which was cut short")
        claims = claims_of_night(shown, verdicts.read_verdicts(reply.text, shown, []), self.snapshot.node)
        unsaid = not_borne_out(claims, self.ask, self.able, reply.model, agent)
        rules.proposed += questions(claims, unsaid)
        named = follow_verdicts(rules, shown, reply.text, unsaid)
        for s in shown:
            (self.answered if s.name in named else self.passed_over).update(s.group.matters)

    def still_in_question(self, group: Group) -> Group:
        """
        *group* without the matters of notes that are no longer active, because an earlier call settled these matters.
        """
        gone = {path for path in group.paths if self.snapshot.node(path).status != "active"}
        return Group([m for m in group.matters if gone.isdisjoint(m.paths)])

    def not_compared(self) -> dict[str, dict[str, float]]:
        """
        Return the pairs in `similar` that no model has judged: path → path → similarity.

        Without a model, these are all pairs. A pair that a model has judged need not be shown to a person.
        """
        open_pairs = {frozenset(m.paths) for m in self.matters if m not in self.answered}
        return {
            path: {
                o: score for o, score in near.items() if self.by_rule or frozenset((path, o)) in open_pairs
            }
            for path, near in self.similar.items()
        }

    def unanswered(self) -> set[str]:
        """
        Return the notes that a later night still has to ask a model about.

        `unasked` has the notes that this night was to ask about. A note is left out once a model has answered all
        questions about its present text. Without a model, all of `unasked` are returned.
        """
        left = {path for m in self.matters if m not in self.answered for path in m.paths}
        done = {path for path, hash in self.looked_at.items() if self.hashes.get(path) == hash} - left
        return self.unasked - (set() if self.by_rule else done)

    # --- weeks and months

    def draft_reflections(self) -> list[str]:
        """Draft the weekly reflections that are due, then the monthly reflections. Returns a line for each."""
        lines: list[str] = []
        waiting, said = 0, self.said_by_day()
        for of in (week_of, periods.month_of):
            if of is periods.month_of:  # in a month, a week's page stands for the week's notes
                weekly = {e.path: e for e in self.snapshot.now() if periods.WEEK.fullmatch(e.path)}
                said = [s for s in said if week_of(s[0]) not in weekly]
                said += [(periods.monday(path), e) for path, e in weekly.items()]
            over = [p for p in periods.due_periods(said, of, self.plan.day) if self.is_unseen(p)]
            if not self.by_rule and self.ask is None:
                waiting += len(over)
                continue
            self.added = periods.added_texts(self.graph, over)
            asked = [(p, nodes) for p in over if (nodes := self.notes_to_reflect_on(p))]
            for n, (period, nodes) in enumerate(asked):
                try:
                    lines += self.draft_reflection(period, nodes)
                except ModelError as e:
                    self.stop_asking(f"{how_many(len(asked) - n, 'reflection')} on weeks and months", e)
                    break
        if waiting:
            left = f"{how_many(waiting, 'reflection')} on weeks and months: no model answered"
            self.cycle.skipped.append(left)
        return lines

    def said_by_day(self) -> list[tuple[dt.date, Entry]]:
        """(day, note) for each day on which a note was said, sorted by day. Includes notes that were replaced."""
        days, zone, drafted = defaultdict[str, set[dt.date]](set), self.graph.zone, self.plan.drafted()
        for path, ms in self.graph.index.times_said():
            days[self.plan.place_now(path)].add(day_of_ms(ms, zone))
        notes = {there: drafted.get(there, e) for e in self.all if (there := self.plan.place_now(e.path))}
        for path in notes.keys() & self.plan.drafts.keys():  # another note may have been merged into this one
            days[path] |= {*days_of_note(self.plan.drafts[path].node, zone)}
        said = ((e, days[e.path] or {e.created or self.plan.day}) for e in notes.values() if e.type in TYPES)
        return sorted(((day, e) for e, on in said for day in on), key=lambda one: (one[0], one[1].path))

    def notes_then(self, period: Period) -> list[Node]:
        """The notes of *period*, each as it was at the end of the week in which it was said."""
        zone, drafts = self.graph.zone, ((day, path, self.plan.draft(path)) for day, path in period.members)
        then = [
            periods.note_in_week(d, day, zone, self.added.get((week_of(day), path), ""))
            for day, path, d in drafts
        ]
        return periods.not_of_tools(then)

    def is_unseen(self, period: Period) -> bool:
        """
        Whether to make a reflection on *period*. True if all of these hold:

        - The notes of *period* are not the ones that an earlier nightly run looked at.
        - `since` is None, or *period* ends on the day `since` or later.
        - The page of *period* was not restored by a person's undo.
        """
        late = self.since is None or period.last >= self.since
        seen_so = (self.period_digest(period), period.digest)
        return (
            late
            and self.seen.periods.get(period.path) not in seen_so
            and period.path not in self.snapshot.frozen
        )

    def period_digest(self, period: Period) -> str:
        """
        The digest to keep for *period* after this cycle. Without a model the digest is marked, so that a model looks
        at *period* later.
        """
        return f"by rule {period.digest}" if self.by_rule else period.digest

    def notes_to_reflect_on(self, period: Period) -> list[Node]:
        """The notes for a new page on *period*; none if the period needs no new page."""
        nodes, page = self.notes_then(period), self.graph.vault.bytes(period.path)
        if page is None:
            # If OMG wrote the page and notes name it, a person deleted it. Else, as after a rebuild,
            # OMG has yet to write the page.
            theirs = self.graph.vault.wrote(period.path) and any(period.path in n.reflected_in for n in nodes)
            written = False
        else:
            theirs = not self.snapshot.ours(period.path)
            ours = [n for n in nodes if not self.by_rule or self.snapshot.ours(n.path)]
            written = all(period.path in n.reflected_in for n in ours)
            written = written and periods.THEN in self.seen.periods.get(period.path, periods.THEN)
            written = written and (
                self.by_rule or periods.BY_RULE not in self.snapshot.node(period.path).tags
            )
        if theirs or written or not periods.is_enough(nodes):
            self.seen.periods[period.path] = self.period_digest(period)
            return []
        return nodes

    def draft_reflection(self, period: Period, nodes: list[Node]) -> list[str]:
        """Draft the reflection on *period*, and return a line for the log. Raises ModelError if no model answers."""
        try:
            found = self.reflection_for(period, nodes)
        except BadReply as e:
            self.cycle.skipped.append(f"{period.title}: {e}")
            return []
        self.seen.periods[period.path] = self.period_digest(period)
        if found is None:
            self.cycle.skipped.append(f"{period.title}: no reflection came out shorter than its notes")
            return []
        label = link_of(self.snapshot.node(periods.write_reflection(self.plan, period, found, nodes)))
        return [f"Wrote a page on {label} from {how_many(len(nodes), 'note')}: {found.description}"]

    def reflection_for(self, period: Period, nodes: list[Node]) -> ReflectionDraft | None:
        """
        Return a reflection on *nodes*, or None if it would not be shorter than the notes.

        A model writes the reflection; without a model, rules do.
        """
        if self.ask is None:
            return periods.notes_by_thread(nodes)
        return periods.reflection_on(
            period,
            nodes,
            self.ask,
            system=instructions("reflect-period", self.config.reflection.instruction),
            room=int(self.window * periods.SHOWN_SHARE),
            agent=self.graph.identity.agent,
        )

    # --- maps

    def tell_maps(self) -> tuple[list[str], dict[str, str]]:
        """
        Ask a model what the changed maps are about and where things stand. Returns a line for the log, and the former
        and the present path of each topic that got a name.
        """
        if self.ask is None:
            return [], {}
        changed = [m for m in self.maps_to_tell() if self.seen.maps.get(m.path) != m.digest]
        fitting, extra, told = newest_that_fit(changed), self.config.reflection.instruction, list[ToldMap]()
        if changed:
            try:
                told, self.untold = tell_maps(fitting, self.ask, self.able, extra, self.graph.identity.agent)
            except ModelError as e:
                self.stop_asking(f"the text of {how_many(len(changed), 'map')}", e)
        moved = draft_told(self.plan, told)
        self.seen.maps |= {moved.get(m.shown.path, m.shown.path): m.shown.digest for m in told}
        links = [wikilink(p, self.title_of(p)) for p in self.plan.maps.told]
        left = len(changed) - len(fitting)
        rest = f" {how_many(left, 'map')} must wait for the next night." if left else ""
        return [
            f"Wrote the present state at the top of {how_many(len(links), 'map')} (pages that list notes): {', '.join(links)}.{rest}"
        ] * bool(links), moved

    def maps_to_tell(self) -> Iterator[ShownMap]:
        """Yield the maps that have enough notes after this cycle, without maps that an undo restored."""
        maps = self.plan.maps
        new = maps.new.keys() - {*self.graph.index.homes().values()}
        for path, entries in maps.lists(maps.paths - self.snapshot.frozen).items():
            exists = not is_topic(path) or path in maps.new or maps.stays(path, entries)
            if (page := maps.text(path)) and generated_block(page) is None:
                continue  # its owner removed the markers
            shown = map_to_tell(path, self.title_of(path), entries, unnamed=path in new)
            if exists and shown:
                yield shown

    def title_of(self, moc: str) -> str:
        """The title of a map after this cycle; for a project's map, the project's title."""
        if moc in self.plan.maps.new:
            return parse_node(self.plan.maps.new[moc], moc).title
        of = self.snapshot.entries.get(moc) or self.snapshot.entries.get(project_of_map(moc))
        return of.title if of else page_title(moc)[0]

    def stop_asking(self, what: str, e: ModelError) -> None:
        """Ask no more in this cycle: no model answers, or today's cap is reached. *what*: the work that is left."""
        self.ask = None
        self.cycle.skipped.append(f"{what}: {e}")


def notes_said_since(entries: Mapping[str, Entry], since: dt.date) -> set[str]:
    notes = [e for e in entries.values() if e.type in TYPES]
    return {e.path for e in notes if any(d >= since for d in (e.created, e.updated) if d)}


def undone_notes(graph: Graph) -> dict[str, str | None]:
    """
    The files that a person's undo of a cycle restored, by path: the restored text, or None if the undo removed the
    file.

    The person rejected what the cycle did to a note, so no cycle does the same until the note changes.
    """
    texts: dict[str, str | None] = {}
    for file in sorted((graph.folder / "receipts").glob("*-undo-*.json")):
        with suppress(BadInput):  # a damaged receipt, which the doctor reports
            receipt = read_receipt(file)
            if any(line.startswith(UNDONE) and "-reflection-" in line for line in receipt.summary):
                texts |= {c.path: c.after for c in receipt.changes}
    return texts


def notes_still_undone(graph: Graph) -> set[str]:
    """The notes that are still as a person's undo left them."""
    texts = undone_notes(graph).items()
    return {path for path, text in texts if graph.vault.bytes(path) == (text and text.encode())}


UNDONE_NAMED = 5


def undone_lines(frozen: Iterable[str]) -> list[str]:
    """
    Return a line that names the notes which an undo restored and which nobody has changed since.

    For the report of `omg reflect --since`, which looks again at old notes. Returns [] if there are no such notes.
    """
    notes = (p for p in frozen if p.startswith(("nodes/", "reflections/")))
    left = sorted(path for path in notes if not path.startswith("reflections/log/"))
    named = ", ".join(left[:UNDONE_NAMED]) + ", …" * (len(left) > UNDONE_NAMED)
    return [f"changes that you undid, until somebody edits these notes: {named}"] * bool(left)


def on_maps(entries: Mapping[str, Entry], homes: Mapping[str, str]) -> dict[str, list[Entry]]:
    """Map → the notes that the map lists. *homes*: path of a note → its map."""
    found: dict[str, list[Entry]] = defaultdict(list)
    for path in homes:
        if (entry := entries.get(path)) is not None:
            for moc in maps_of(entry, loop=entry.loop == "open"):
                found[moc].append(entry)
    return found


def is_due(graph: Graph, config: Config) -> Literal["now", "background"] | None:
    """
    Decide whether enough has changed since the previous cycle for another cycle.

    "now": at least `observation_tokens` tokens have changed. "background": at least the share `buffer_activation` of
    `observation_tokens`; the cycle runs when there is nothing else to do. None: less. With `buffer_tokens = false`
    there is no "background".
    """
    changed, options = graph.state().changed_tokens, config.reflection
    if changed >= options.observation_tokens:
        return "now"
    if config.observation.buffer_tokens is False:
        return None
    return "background" if changed >= options.observation_tokens * options.buffer_activation else None


def reflect_graph(
    graph: Graph,
    observer: Observer,
    config: Config,
    now: dt.datetime,
    options: CycleOptions | None = None,
) -> Cycle:
    """
    Run one cycle. The caller has updated the index from the files.

    If no model answers, the rest is done, and the model's part is left to the next cycle. A cycle that changes
    nothing leaves no receipt and no line in the log. Raises Locked if a cycle is under way.
    """
    options = options or CycleOptions()
    tell, dry_run = options.tell, options.dry_run
    with flock(graph.folder / "reflect.lock", f"the Reflector of {graph.identity.key}", timeout_s=0):
        started = time.monotonic()
        notes = "\n".join(f"{path} {hash}" for path, hash in graph.index.hashes().items())
        id, changed = receipt_id(now, "reflection", of=notes), graph.state().changed_tokens
        tell("reflection_start", cycle=id, model=observer.model, changed_tokens=changed)
        if not dry_run:
            with graph.lock():
                replay_open(graph)
        work = CycleWork(graph, observer, config, now, options)
        work.cycle.id, broken = id, False
        try:
            work.draft()
        except (NotFound, BadNode):  # a note was renamed, forgotten or broken while the model was asked
            if dry_run:
                raise
            broken = True
        if not dry_run:
            if broken or stale_notes(work):
                options.refresh()
            with graph.lock():
                replay_open(graph)
                if broken or stale_notes(work):
                    work = CycleWork(graph, observer, config, now, options, first=work)
                    work.draft()
                write_cycle(work)
        cycle = work.cycle
        for refusal in cycle.refused:
            tell("verdict_refused", op=refusal.op, reason=refusal.why)
        tell(
            "reflection_end",
            model=observer.model,
            cycle=cycle.id,
            calls=cycle.calls,
            tokens=cycle.tokens,
            verdicts=cycle.verdicts,
            duration_ms=round((time.monotonic() - started) * 1000),
            **cycle.counts,
        )
        return cycle


def stale_notes(work: CycleWork) -> bool:
    """
    Whether somebody wrote since the drafts were made: the index has another version of a note, or a file differs from
    the text with which its draft began.
    """
    if work.graph.index.hashes() != work.hashes:
        return True
    drafts = [(p, d) for p, d in work.plan.drafts.items() if d.text != d.before]
    return any(
        work.graph.vault.bytes(d.was or p) != (None if d.before is None else d.before.encode())
        for p, d in drafts
    )


def write_cycle(work: CycleWork) -> None:
    """Write the receipt, the files, the index and the record of what was seen. The caller holds the vault's lock."""
    graph, cycle = work.graph, work.cycle
    changes = [*work.plan.changes(), *now_page(work)]
    note_seen(work)
    if changes or cycle.proposed or cycle.refused:
        cycle.receipt = cycle_receipt(work, changes)
        stage_seen(graph, work.seen, cycle.receipt.id)
        cycle.outcome = commit_receipt(graph, cycle.receipt)
        commit_seen(graph)
    elif work.seen != work.before:
        stage_seen(graph, work.seen, "")
        commit_seen(graph)

    def reflected(state: State) -> None:
        state.reflected_ms = int(work.now.timestamp() * 1000)
        state.changed_tokens = max(0, state.changed_tokens - work.state.changed_tokens)
        if cycle.calls:
            state.verdicts, state.verdicts_refused = cycle.verdicts, len(cycle.refused)

    graph.update(reflected)


def cycle_receipt(work: CycleWork, changes: list[Change]) -> Receipt:
    cycle, at = work.cycle, work.now.astimezone(UTC)
    if changes and not cycle.summary:
        cycle.summary = [f"Brought {how_many(len(changes), 'map')} up to date."]
        cycle.counts["maps"] = len(changes)
    return Receipt(
        cycle.id,
        "reflection",
        at.isoformat(timespec="seconds"),
        (*changes, *log_page(work, cycle.id)),
        summary=(cycle.headline,),
        person=bool(cycle.counts["superseded"]),  # a superseded note leaves every prompt at once
    )


def note_seen(work: CycleWork) -> None:
    """
    Record in `work.seen` the hash of each note after this cycle, and whether a model was asked about that version.
    """
    drafts = [(p, d) for p, d in work.plan.drafts.items() if d.text != d.before]
    # A file that differed from the index when it was drafted is left to the next cycle.
    after = {
        p: digest(d.text.encode())
        for p, d in drafts
        if digest((d.before or "").encode()) == work.hashes.get(d.was or p)
    }
    gone = {p for p, d in drafts if d.node.status == "superseded"}
    notes, left = {}, work.unanswered()
    for path, entry in work.snapshot.entries.items():
        if entry.type in TYPES and path in work.hashes and path not in gone:
            there = work.plan.place_now(path)
            notes[there] = (after.get(there, work.hashes[path]), path not in left)
    work.seen.notes = notes
    for matter in {*work.answered, *work.passed_over}:
        if gone.isdisjoint(matter.paths):
            now = replace(matter, paths=tuple(map(work.plan.place_now, matter.paths)))
            work.seen.note_answer(now, work.matter_digest(now), answered=matter in work.answered)
    work.seen.drop_gone()


def now_page(work: CycleWork) -> Iterable[Change]:
    """Yield the change of the page Now if an open loop changed, since the page lists them."""
    plan, graph = work.plan, work.graph
    loops = any(d.node.loop and d.text != d.before for d in plan.drafts.values())
    if loops and (change := plan.maps.now_change(graph.state().sessions, plan.day)):
        yield change


def log_page(work: CycleWork, id: str) -> Iterable[Change]:
    """This month's log page with one more paragraph."""
    cycle, day = work.cycle, work.plan.day
    path, title = f"{LOG_FOLDER}{day:%Y-%m}", f"{day:%B %Y}"
    lines = [
        f"### {work.now.astimezone(work.graph.zone):%Y-%m-%d %H:%M}, cycle {id}",
        f"\n{cycle.headline[0].upper()}{cycle.headline[1:]}.\n",
        *(f"- {line}" for line in cycle.summary),
    ]
    if cycle.proposed:
        lines += ["\nFor you to judge:\n", *(f"- {line}" for line in cycle.proposed)]
    if cycle.refused:
        lines += [
            "\nThe model proposed this, and OMG did not do it:\n",
            *(f"- {r.line}" for r in cycle.refused),
        ]
    draft = work.plan.drafts.get(path)  # links on it may have been mended
    written = generated_block(draft.text if draft else work.plan.maps.text(path))
    inner = "\n\n".join(filter(None, (written, "\n".join(lines))))
    node = Node(path, f"omg/log/{day:%Y-%m}", f"What the Reflector did in {title}.", "log")
    body = f"# {title}\n\n{YOURS}\n\n{BEGIN}\n{END}"
    if change := work.plan.maps.change(
        path, inner, with_generated_block(render_node(replace(node, body=body)), inner)
    ):
        yield change
