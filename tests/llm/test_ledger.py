import json
import threading
from datetime import UTC, datetime, timedelta

import pytest

from omg.config import Config
from omg.errors import OverBudget
from omg.llm.replies import Ledger, ModelReply, Spent
from omg.worker.status import cost_lines, costs_of

NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)
SAID = ModelReply("text that stays out of the ledger", "openai/m", 100, 20, 0.5)


@pytest.fixture
def open_ledger(tmp_path):
    def opened(observation=None, zone="UTC", **more):
        config = Config(home=tmp_path, observation=observation or {}, time={"zone": zone}, **more)
        return Ledger(tmp_path / "state" / "ledger.jsonl", config)

    return opened


def test_a_reply_is_one_line_of_numbers(open_ledger):
    ledger = open_ledger()
    ledger.spend(SAID, "observe", NOON)
    assert json.loads(ledger.file.read_text()) == {
        "at": "2026-03-05T12:00:00.000+00:00",
        "day": "2026-03-05",
        "model": "openai/m",
        "purpose": "observe",
        "tokens_in": 100,
        "tokens_out": 20,
        "usd": 0.5,
    }
    assert ledger.file.stat().st_mode & 0o777 == 0o600


def test_the_ledger_counts_days_in_the_persons_time_zone(open_ledger):
    ledger = open_ledger(zone="Pacific/Auckland")  # 12:00 UTC is already tomorrow there
    ledger.spend(SAID, "observe", NOON)
    assert ledger.today(NOON).calls == 1
    assert ledger.today(NOON - timedelta(hours=2)).calls == 0


@pytest.mark.parametrize("torn", ['{"at": "2026-03-05T1', '{"day": "2026-03-05", "tokens_in": "x"}\n[]\n\n'])
def test_a_torn_line_of_the_ledger_does_not_spoil_the_other_lines(open_ledger, torn):
    ledger = open_ledger()
    ledger.spend(SAID, "observe", NOON)
    with ledger.file.open("a") as file:
        file.write(torn)
    ledger.spend(SAID, "observe", NOON)
    assert ledger.today(NOON) == Spent(240, 1.0, 2)


def test_the_ledger_lists_recent_days_by_purpose(open_ledger):
    ledger = open_ledger()
    assert ledger.lately(NOON, 2) == {"2026-03-04": {}, "2026-03-05": {}}
    for days, purpose in ((2, "observe"), (1, "reflect"), (0, "observe"), (0, "observe")):
        ledger.spend(SAID, purpose, NOON - timedelta(days=days))
    with ledger.file.open("a") as file:
        file.write('{"torn')
    twice = {"observe": Spent(240, 1.0, 2)}
    assert ledger.lately(NOON, 2) == {"2026-03-04": {"reflect": Spent(120, 0.5, 1)}, "2026-03-05": twice}


def test_costs_of_today_and_of_30_days_are_shown_beside_the_caps(open_ledger):
    ledger = open_ledger({"daily_budget_tokens": 5_000, "daily_budget_usd": 2})
    for days, purpose in ((40, "observe"), (29, "reflect"), (0, "observe")):
        ledger.spend(SAID, purpose, NOON - timedelta(days=days))
    costs = costs_of(ledger, NOON)
    assert cost_lines(costs) == [
        "today     1 call, 120 of 5,000 tokens, $0.50 of $2.00: observe 120 ($0.50)",
        "30 days   2 calls, 240 tokens, $1.00: observe 120 ($0.50), reflect 120 ($0.50)",
    ]
    assert cost_lines(costs, capped=False)[0] == "today     1 call, 120 tokens, $0.50: observe 120 ($0.50)"


def test_a_ledger_that_was_deleted_starts_again(open_ledger):
    ledger = open_ledger()
    ledger.spend(SAID, "observe", NOON)
    assert ledger.today(NOON).calls == 1
    ledger.file.unlink()
    assert ledger.today(NOON) == Spent()
    ledger.spend(SAID, "observe", NOON)
    assert ledger.today(NOON).calls == 1


@pytest.mark.parametrize(
    ("cap", "told"),
    [
        ({"daily_budget_tokens": 240}, r"daily_budget_tokens: 240 of 240 tokens used today; .*raise the cap"),
        ({"daily_budget_usd": 1.0, "model": "openai/m"}, r"daily_budget_usd: \$1.00 of \$1.00"),
    ],
)
def test_the_error_at_the_daily_cap_gives_the_option_and_the_sum_and_the_remedy(open_ledger, cap, told):
    ledger = open_ledger(cap)
    ledger.spend(SAID, "observe", NOON)
    ledger.check(NOON)
    ledger.spend(SAID, "reflect", NOON)
    with pytest.raises(OverBudget, match=told):
        ledger.check(NOON)
    ledger.check(NOON + timedelta(days=1))


def test_a_call_waits_only_if_calls_in_progress_may_still_use_up_the_daily_cap(open_ledger):
    ledger, ends = open_ledger({"daily_budget_tokens": 300}), []

    def call():
        with ledger.reserved(Spent(200), NOON):
            ends.append("second")

    second = threading.Thread(target=call)
    with ledger.reserved(Spent(200), NOON), ledger.reserved(Spent(90), NOON):
        with pytest.raises(RuntimeError), ledger.reserved(Spent(9), NOON):
            raise RuntimeError  # a call that fails gives back what it reserved
        ledger.spend(SAID, "observe", NOON)
        second.start()
        second.join(0.2)
        assert ends == []
    second.join(5)
    assert ends == ["second"]
    ledger.spend(SAID, "observe", NOON), ledger.spend(SAID, "observe", NOON)
    with pytest.raises(OverBudget), ledger.reserved(Spent(1), NOON):
        pass


@pytest.mark.parametrize(
    ("observation", "reflection", "cap"),
    [
        ({"model": "gateway"}, {}, 500_000),
        ({}, {}, 500_000),  # an empty model is `gateway` under the plugin
        ({"model": ["openai/m", "gateway"]}, {}, 500_000),
        ({"model": "openai/m"}, {"model": "gateway"}, 500_000),
        ({"model": "openai/m", "agents": {"main": {"model": "gateway"}}}, {}, 500_000),
        ({"model": "openai/m"}, {}, None),
        ({"model": "gateway", "daily_budget_tokens": 7}, {}, 7),
    ],
)
def test_only_the_gateways_model_has_a_default_cap(open_ledger, observation, reflection, cap):
    assert open_ledger(observation, reflection=reflection).cap_tokens == cap
