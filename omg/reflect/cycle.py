"""
What one cycle of the Reflector drafts: what changed, what is done about it, what a model said.

Not here: locks, and what is written (run.py). One rule: nobody is asked twice, and what a model said of a note counts
only while the note is what it was shown.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ..config.sections import Config
from ..errors import BadReply, ModelError, OmgError
from ..graph.graph import Graph
from ..index.entries import Entry
from ..journal import Outcome, Receipt
from ..llm.asker import reply_to_failure
from ..llm.ledger import ModelReply
from ..llm.question import Ask, ModelQuestion, instructions
from ..node.fields import TYPES
from ..node.maptable import OPEN_LOOPS
from ..node.note import Node
from ..observe.question import Observer
from ..plan.drafts import Plan
from .map_split import assign_maps, filed_lines
from .periods import (
    SHOWN_SHARE,
    Period,
    ReflectionDraft,
    as_shown,
    due_months,
    due_weeks,
    is_enough,
    reflection_on,
    write_reflection,
)
from .seen import Seen, load_seen, undone_notes
from .similar import merge_repeated, proposed_pairs, similar_notes
from .snapshot import Snapshot, link_of
from .upkeep import link_mentions_by_night, linked_lines, mark_dormant, mend_links
from .verdicts import (
    VERDICTS_SCHEMA,
    MergeRules,
    follow_verdicts,
    groups_to_ask,
    smaller_groups,
    verdicts_question,
)

Progress = Callable[[int, int], None]  # (questions asked, questions there will be)


@dataclass(slots=True)
class Cycle:
    """What one cycle came to. `receipt` None: nothing changed, or nothing was to be written (a dry run)."""

    receipt: Receipt | None = None
    outcome: Outcome | None = None
    summary: list[str] = field(default_factory=list)  # what was done, a line each, with links
    proposed: list[str] = field(default_factory=list)  # what a person may want to do
    skipped: list[str] = field(default_factory=list)  # what could not be done, and why
    refused: list[str] = field(default_factory=list)  # what the model wanted and may not, for the log
    counts: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0  # in and out

    @property
    def headline(self) -> str:
        """One line for a person."""
        said = [f"{n} {what.removesuffix('s') if n == 1 else what}" for what, n in self.counts.items() if n]
        said += [f"{len(self.proposed)} for you to judge"] * bool(self.proposed)
        return ", ".join(said) or "nothing to do"


@dataclass(slots=True)
class CycleReplies:
    """What a model said in this cycle."""

    calls: list[tuple[dict[str, str], str]] = field(default_factory=list)  # (handle → path, reply)
    shown: dict[str, str] = field(default_factory=dict)  # path → text of the note as it was shown
    asked: set[str] = field(default_factory=set)  # notes about which the model answered
    # reflection → what it was made of, as shown, and what came of it; None: there is no use in asking
    periods: dict[str, tuple[tuple[str, ...], ReflectionDraft | None]] = field(default_factory=dict)


def counted(ask: Ask, cycle: Cycle) -> Ask:
    def asked(question: ModelQuestion) -> ModelReply:
        cycle.calls += 1
        reply = ask(question)
        cycle.tokens += reply.tokens_in + reply.tokens_out
        return reply

    return asked


class CycleWork:
    """
    A cycle's drafts. *first*: the same cycle, drafted before on a vault that changed meanwhile; then nobody is asked,
    and the replies it had are followed again.
    """

    def __init__(
        self,
        graph: Graph,
        observer: Observer,
        config: Config,
        now: dt.datetime,
        *,
        since: dt.date | None,
        progress: Progress,
        first: CycleWork | None = None,
    ) -> None:
        self.graph, self.config, self.now, self.since = graph, config, now, since
        self.first, self.replies, self.cycle = first, CycleReplies(), Cycle()
        self.ask = counted(observer.ask, self.cycle) if observer.ask and first is None else None
        self.window, self.progress, self.answered, self.questions = observer.window, progress, 0, 0
        self.similar: dict[str, dict[str, float]] = {}
        self.state = graph.state()
        self.seen = load_seen(graph)
        self.before = Seen(dict(self.seen.notes), dict(self.seen.periods))
        self.hashes = graph.index.hashes()
        if first is not None:
            said = first.cycle
            self.cycle = Cycle(skipped=said.skipped, calls=said.calls, tokens=said.tokens)
            same = {p for p in first.replies.asked if self.hashes.get(p) == first.hashes.get(p)}
            self.replies, self.similar = replace(first.replies, asked=same), first.similar
        entries = {e.path: e for e in graph.index.entries(status=None) if e.status != "superseded"}
        notes = {p: h for p, h in self.hashes.items() if p in entries and entries[p].type in TYPES}
        self.changed = notes_said_since(entries, since) if since else self.seen.changed(notes)
        self.unasked = self.changed if since else self.seen.unasked(notes)
        day = now.astimezone(graph.zone).date()
        self.snapshot = Snapshot(Plan(graph, day), entries, self.changed, notes_still_undone(graph))
        self.plan.maps.known = on_maps(entries, graph.index.homes())

    @property
    def plan(self) -> Plan:
        return self.snapshot.plan

    def draft(self) -> None:
        cycle, snapshot, options = self.cycle, self.snapshot, self.config.reflection
        repeated, mended = merge_repeated(snapshot), mend_links(snapshot)
        seeds = (self.changed if self.ask is None else self.unasked) - snapshot.frozen
        if self.first is None:
            self.similar = similar_notes(snapshot, seeds, self.now)
        rules = MergeRules(self.plan, self.unasked, snapshot.frozen, self.similar)
        if self.first is None:
            self.ask_about_similar(rules, seeds)
        else:
            self.follow_again(rules)
        reflections = self.draft_reflections()
        dormant, woken = mark_dormant(
            snapshot, snapshot.plan.graph.uses, self.now, options.dormant_after_days
        )
        linked = link_mentions_by_night(snapshot)
        split, filed = assign_maps(snapshot, options.moc_entries)
        cycle.summary = [
            *repeated,
            *rules.done,
            *mended,
            *linked_lines(linked),
            *reflections,
            *split,
            *filed_lines(filed),
        ]
        cycle.summary += [f"{n} went to sleep." for n in dormant] + [f"{n} woke up." for n in woken]
        # What a model has looked at and left alone is no repetition.
        not_compared = {path: near for path, near in self.similar.items() if path not in self.replies.asked}
        cycle.proposed = [*rules.proposed, *proposed_pairs(snapshot, not_compared)]
        cycle.refused = rules.refused
        cycle.counts = {
            "merged": len(repeated) + rules.counts["merged"],
            "superseded": rules.counts["superseded"],
            "described": rules.counts["described"],
            "reflections": len(reflections),
            "mended": len(mended),
            "linked": len(linked),
            "dormant": len(dormant),
            "woken": len(woken),
            "split": len(split),
            "filed": filed.total(),
        }

    # --- notes that are alike

    def ask_about_similar(self, rules: MergeRules, seeds: set[str]) -> None:
        """Ask about changed notes and what they resemble, call by call, each seeing what the one before did."""
        if self.ask is None:
            if self.similar:
                said = f"{len(self.similar)} changed notes that resemble others: no model compared them"
                self.cycle.skipped.append(said)
            return
        self.replies.asked |= seeds - self.similar.keys()  # those that resemble nothing
        calls = groups_to_ask({path: list(near) for path, near in self.similar.items()})
        self.questions += len(calls)
        for n, paths in enumerate(calls):
            try:
                self.ask_about(rules, paths)
            except BadReply as e:
                self.cycle.skipped.append(f"{len(paths)} notes that resemble each other: {e}")
                continue
            except ModelError as e:
                self.stop_asking(f"{len(calls) - n} groups of notes that resemble each other", e)
                return
            finally:
                self.count_question()
            self.replies.asked |= {p for p in paths if p in self.similar}

    def ask_about(self, rules: MergeRules, paths: list[str]) -> None:
        """Ask about those of *paths* that are active; fewer at a time, where the reply was cut short."""
        assert self.ask is not None
        paths = [p for p in paths if self.snapshot.node(p).status == "active"]
        if len(paths) < 2:
            return
        shown = {f"n{n}": path for n, path in enumerate(paths, 1)}
        user = verdicts_question({handle: self.snapshot.node(path) for handle, path in shown.items()})
        system = instructions("reflect-notes", self.config.reflection.instruction)
        reply = reply_to_failure(
            self.ask,
            ModelQuestion(
                system, user, schema=VERDICTS_SCHEMA, purpose="reflect", agent=self.graph.identity.agent
            ),
        )
        if reply.cut and (fewer := smaller_groups(paths)):
            for some in fewer:
                self.ask_about(rules, some)
            return
        if reply.cut:
            self.cycle.skipped.append("the end of a reply about two notes, which was cut short")
        follow_verdicts(rules, shown, reply.text)
        self.replies.calls.append((shown, reply.text))
        self.replies.shown |= {path: self.plan.draft(path).before or "" for path in paths}

    def follow_again(self, rules: MergeRules) -> None:
        """
        Follow the replies there are, as far as their notes are what they were.

        Of a note that is not, perhaps because it was forgotten, the words of this reply and of later ones may tell.
        """
        same = {path for path, text in self.replies.shown.items() if self.is_unchanged(path, text)}
        words = True
        for shown, reply in self.replies.calls:
            left = {handle: path for handle, path in shown.items() if path in same}
            words = words and left == shown
            follow_verdicts(rules, left, reply, words=words)

    def is_unchanged(self, path: str, text: str) -> bool:
        try:
            return self.plan.draft(path).before == text
        except OmgError:  # gone, or not to be read any more
            return False

    # --- weeks and months

    def draft_reflections(self) -> list[str]:
        """Draft what is due of weekly, then of monthly reflections; a line for each."""
        lines: list[str] = []
        waiting = 0
        for periods in (due_weeks, due_months):
            over = [p for p in periods(self.snapshot.now(), self.plan.day) if self.is_unseen(p)]
            if self.first is not None:
                over = [p for p in over if self.is_as_shown(p)]
            elif self.ask is None:
                waiting += len(over)
                continue
            due = [(p, nodes) for p in over if (nodes := self.notes_to_reflect_on(p))]
            self.questions += len(due)
            for n, (period, nodes) in enumerate(due):
                try:
                    lines += self.draft_reflection(period, nodes)
                except ModelError as e:
                    self.stop_asking(f"{len(due) - n} of the weeks and months that are over", e)
                    break
        if waiting:
            said = f"{waiting} weeks and months that are over: no model looked back on them"
            self.cycle.skipped.append(said)
        return lines

    def is_unseen(self, period: Period) -> bool:
        """Whether no cycle has looked at what *period* holds now."""
        late = self.since is None or period.last >= self.since
        seen_so = self.seen.periods.get(period.path) == period.digest
        return late and not seen_so and period.path not in self.snapshot.frozen

    def is_as_shown(self, period: Period) -> bool:
        """Whether a model was asked about *period*, and what it was shown is so still."""
        shown, _ = self.replies.periods.get(period.path, (None, None))
        return shown == as_shown([self.snapshot.node(path) for path in period.members])

    def notes_to_reflect_on(self, period: Period) -> list[Node]:
        """What a reflection on *period* would be made of; nothing if there is no need of one."""
        nodes = [self.snapshot.node(path) for path in period.members]
        page = self.graph.vault.bytes(period.path)
        if page is None:
            # We wrote it, and a person deleted the page; after a rebuild it only has not been written yet.
            theirs = self.graph.vault.wrote(period.path) and any(period.path in n.reflected_in for n in nodes)
        else:
            theirs = not self.snapshot.ours(period.path)
        written = page is not None and all(period.path in n.reflected_in for n in nodes)
        if theirs or written or not is_enough(nodes):
            self.seen.periods[period.path] = period.digest
            return []
        return nodes

    def draft_reflection(self, period: Period, nodes: list[Node]) -> list[str]:
        """Draft the reflection on *period*. Raises ModelError if nobody answers at all."""
        try:
            found = self.reflection_for(period, nodes)
        except BadReply as e:
            self.cycle.skipped.append(f"{period.title}: {e}")
            return []
        self.seen.periods[period.path] = period.digest
        if found is None:
            self.cycle.skipped.append(f"{period.title}: no reflection came out shorter than its notes")
            return []
        label = link_of(self.snapshot.node(write_reflection(self.plan, period, found, nodes)))
        return [f"Looked back on {len(nodes)} notes in {label}: {found.description}"]

    def reflection_for(self, period: Period, nodes: list[Node]) -> ReflectionDraft | None:
        """What a model makes of *nodes*, or made of them before."""
        if self.ask is None:
            return self.replies.periods[period.path][1]
        try:
            found = reflection_on(
                period,
                nodes,
                self.ask,
                system=instructions("reflect-period", self.config.reflection.instruction),
                room=int(self.window * SHOWN_SHARE),
                agent=self.graph.identity.agent,
            )
        finally:
            self.count_question()
        self.replies.periods[period.path] = (as_shown(nodes), found)
        return found

    def stop_asking(self, what: str, e: ModelError) -> None:
        """The model is away or today's cap is reached: nobody is asked any more in this cycle."""
        self.ask = None
        self.cycle.skipped.append(f"{what}: {e}")

    def count_question(self) -> None:
        self.answered += 1
        self.progress(self.answered, self.questions)


def notes_said_since(entries: Mapping[str, Entry], since: dt.date) -> set[str]:
    notes = [e for e in entries.values() if e.type in TYPES]
    return {e.path for e in notes if any(d >= since for d in (e.created, e.updated) if d)}


def notes_still_undone(graph: Graph) -> set[str]:
    """Notes that are still as a person's undo left them."""
    texts = undone_notes(graph).items()
    return {path for path, text in texts if graph.vault.bytes(path) == (text and text.encode())}


def on_maps(entries: Mapping[str, Entry], homes: Mapping[str, str]) -> dict[str, list[Entry]]:
    """Map → the active notes it lists."""
    found: dict[str, list[Entry]] = defaultdict(list)
    for path, home in homes.items():
        if (entry := entries.get(path)) is not None:
            found[home].append(entry)
            if entry.loop == "open":
                found[OPEN_LOOPS].append(entry)
    return found
