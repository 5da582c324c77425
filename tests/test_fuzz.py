"""
Five hundred short lives (lives.py): whatever is said, edited, deleted, answered and killed in whatever order,
every message is kept, observed once and cited truly; no person's words are lost; no slice goes back in time; and what leaves
a long context is observed (contexts.py).

`bench/fuzz.py` lives longer ones.
"""

import os

import lives
import pytest

from omg.worker import worker

SEEDS, BLOCK, STEPS = 500, 50, 12


@pytest.fixture(scope="module")
def begin(tmp_path_factory):
    return lives.template(tmp_path_factory.mktemp("fuzz") / "begin")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    # A process that is killed loses nothing that the kernel has: the disk need not be waited for.
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_in_500_random_lives_no_message_or_edit_is_lost_and_nothing_is_observed_twice(first, begin, tmp_path):
    assert (
        sum(lives.live(seed, tmp_path, begin, STEPS) for seed in range(first, first + BLOCK)) == BLOCK * STEPS
    )


@pytest.mark.parametrize("seed", [30000, 30006, 30007])
def test_in_long_lives_each_message_of_a_context_is_shown_or_observed(seed, begin, tmp_path):
    life = lives.Life(seed, tmp_path / "life", begin)
    while len(life.steps) < 100 or not life.contexts.cuts:
        life.step()
    life.finish()


def test_a_random_life_has_every_kind_of_event(begin, tmp_path):
    """Were nothing to happen, everything would hold."""
    life = lives.Life(7, tmp_path / "life", begin)
    while len(life.steps) < 150 or not {step.rstrip("01") for step in life.steps} >= set(lives.STEPS):
        life.step()
    assert len(life.said) > 40
    assert len(life.theirs()) > 10
    assert sum(life.marks.values()) > 3
    assert life.contexts.cuts
    assert len(list(life.vault.parent.glob("receipts/*.json"))) > 5
    life.finish()


@pytest.mark.parametrize("seed", range(20))
def test_many_people_observed_in_parallel_keep_every_turn_in_order_within_the_cap(
    seed, tmp_path, monkeypatch
):
    monkeypatch.setattr(worker, "GATEWAY_GRAPHS", lives.Crowd.PARALLEL)
    crowd = lives.Crowd(seed, tmp_path / "omg")
    for _ in range(25):
        crowd.step()
    crowd.finish()
    assert crowd.most > 1 and len(crowd.said) > 10


@pytest.mark.parametrize("crime", ["lose", "forget a source", "overwrite", "repeat", "cut"])
def test_each_invariant_detects_a_violation(crime, begin, tmp_path):
    """Each of them fails where it should."""
    life = lives.Life(3, tmp_path / "life", begin)
    while not (len(life.theirs()) > 2 and any(life.marks.values())):
        life.step()
    graph = life.vault.parent
    life.check()
    match crime:
        case "lose":
            life.said["e9999"] = lives.MAIN
        case "forget a source":
            ours = [f for f in life.theirs() if "PERSON" not in f.read_text() and "moved" not in f.name]
            text = ours[0].read_text()
            ours[0].write_text(text[: text.index("sources:")] + text[text.index("links:") :])
        case "overwrite":
            for file in life.vault.rglob("*.md"):
                file.write_text(file.read_text().replace("PERSON", "nobody"))
        case "repeat":
            archive = next(graph.glob("archive/*.jsonl"))
            archive.write_text(archive.read_text() * 2)
        case "cut":
            life.contexts.served[lives.MAIN] = (("e9999",), "what stands for it")
    with pytest.raises(lives.Broken):
        life.check()
    life.close()
