"""No turn is lost or doubled, no generation skipped, and nothing forgotten kept, whatever happens to workers and Postgres."""

import os

import pytest
from chaos import chaos

FULL = {"graphs": 200, "turns": 2_000, "kills": 60, "stops": 20, "restarts": 2}
SMALL = {"graphs": 20, "turns": 150, "kills": 8, "stops": 3, "restarts": 1}
ASKED = (
    FULL if os.environ.get("OMG_FLEET_CHAOS") == "full" else SMALL
)  # read before the tests' own environment


@pytest.mark.timeout(1_800)  # the full form takes 10 minutes
def test_killed_workers_lose_no_turn_and_skip_no_revision_and_keep_no_forgotten_word(
    postgres, store, database, tmp_path
):
    """OMG_FLEET_CHAOS=full: 200 graphs, 2,000 turns, 60 kills, 20 stops, 2 restarts of Postgres."""
    found = chaos(postgres, store, database, tmp_path, **ASKED)
    print(found)
    assert found["said"] > ASKED["turns"] // 2
    assert {
        key: found[key] for key in ("lost", "doubled", "gaps", "rows_with_word", "pending")
    } == dict.fromkeys(("lost", "doubled", "gaps", "rows_with_word", "pending"), 0)
    assert found["clean_s"] <= 60
