"""A wrong configuration is refused when it is read. The error names the key, the value, and what to write instead."""

import re
from datetime import UTC
from pathlib import Path

import pytest

from omg.config import Config, load_config, set_value
from omg.errors import ConfigError
from omg.memory import Memory
from omg.node.note import TYPES
from omg.observe.question import observer_prompt
from omg.openclaw.graph_checks import check_model
from omg.worker.status import home_status, status_text


def read(home: Path, text: str) -> Config:
    (home / "omg.toml").write_text(text, encoding="utf-8")
    return load_config(home, {})


def observation(home: Path, line: str) -> Config:
    return read(home, f"[observation]\n{line}\n")


REFUSED = [
    ("buffer_tokens = 0", "buffer_tokens", "share"),
    ("buffer_tokens = true", "buffer_tokens", "false"),
    ('buffer_tokens = "often"', "buffer_tokens", "turn"),
    ("message_tokens = 5000\nbuffer_tokens = 6000", "buffer_tokens", "smaller than message_tokens"),
    ("message_tokens = 0", "message_tokens", "above 0"),
    ("message_tokens = 30000.5", "message_tokens", "whole number"),
    ("max_tokens_per_batch = -1", "max_tokens_per_batch", "above 0"),
    ("previous_observer_tokens = -1", "previous_observer_tokens", "0 to show none"),
    ("previous_observer_tokens = true", "previous_observer_tokens", "false for no limit"),
    ('activate_after_idle = "5 parsecs"', "activate_after_idle", "5m"),
    ("activate_after_idle = true", "activate_after_idle", "false"),
    ('quiet_after = "soon"', "quiet_after", "seconds"),
    ("daily_budget_usd = -1", "daily_budget_usd", "greater than or equal to 0"),
    ("model = []", "model", "name a model"),
    ('model = ["gpt-5-mini", ""]', "model", "empty"),
    ('model = ["gpt-5-mini", "gpt-5-mini"]', "model", "twice"),
    ('model = ["gpt-5-mini", "offline"]', "model", "cannot be in a list"),
    ("model = 3", "model", "name a model"),
    ('model = "none"', "model", "`offline` (rules, no model), `gateway`"),
    ('model = ["gpt-5-mini", "None"]', "model", "observation.enabled = false"),
    ('[observation.agents.mona]\nmodel = "none"', "observation.agents.mona.model", "`offline`"),
    ('enabled = "sometimes"', "enabled", "boolean"),
    ("[llm]\ntemperature = 0.3", "llm.temperature", '"openai/gpt-5-mini" = 1'),
    ('[llm.temperature]\n"openai/m" = 3', "llm.temperature", "from 0 to 2"),
    ('style = "terse"', "style", "turnwise"),
    ('[observation.agents.mona]\nmodle = "x"', "observation.agents.mona.modle", "unknown key"),
    ("[reflection]\nbuffer_activation = 1.2", "reflection.buffer_activation", "share"),
    ("[reflection]\nmoc_entries = 0", "reflection.moc_entries", "above 0"),
    ("[llm]\ntimeout_s = 0", "llm.timeout_s", "greater than 0"),
    ('[time]\nzone = "Leipzig"', "time.zone", "Europe/Berlin"),
    ('[embedding]\nmodel = ""', "embedding.model", "at least 1 character"),  # not the folder one is in
]


@pytest.mark.parametrize(("text", "key", "remedy"), REFUSED, ids=[r[0].replace("\n", " ") for r in REFUSED])
def test_a_wrong_value_is_refused_with_key_value_and_remedy(home, text, key, remedy):
    with pytest.raises(ConfigError) as refused:
        observation(home, text)
    message = str(refused.value)
    assert message.startswith(str(home / "omg.toml"))
    assert f"{key}`" in message
    assert remedy in message
    assert message.count(";") <= 2, "one fault is told once"
    if "=" in message:
        assert re.search(r"` = \S", message), "the value is named"


def test_omg_is_switched_off_for_all_agents_or_for_some(home):
    one_off = read(home, "[observation.agents.work]\nenabled = false")
    one_on = read(home, "[observation]\nenabled = false\n[observation.agents.work]\nenabled = true")
    assert [one_off.switched_off(agent) for agent in ("main", "work")] == [
        "",
        "[observation.agents.work] enabled = false",
    ]
    assert [one_on.switched_off(agent) for agent in ("main", "work")] == ["[observation] enabled = false", ""]
    assert load_config(home, {"OMG_OBSERVATION_ENABLED": "true"}).switched_off("main") == ""


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("", 7_500),
        ("buffer_tokens = 0.5", 15_000),
        ("buffer_tokens = 1", 1),  # one token, not the whole
        ("buffer_tokens = 5000", 5_000),
        ("buffer_tokens = 0.333\nmessage_tokens = 1000", 333),
        ('buffer_tokens = "turn"', None),
        ("buffer_tokens = false", None),
    ],
)
def test_a_step_below_one_is_a_share_of_the_threshold_and_a_larger_step_is_a_token_count(home, line, tokens):
    assert observation(home, line).observation.step == tokens


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("300", 300),
        ("0", 0),
        ('"5m"', 300),
        ('"300s"', 300),
        ('"1hr"', 3600),
        ('"1.5h"', 5400),
        ("false", False),
        ('"250ms"', 0.25),
    ],
)
def test_a_pause_is_a_number_of_seconds_or_a_duration_in_words(home, value, seconds):
    assert observation(home, f"activate_after_idle = {value}").observation.activate_after_idle == seconds


def test_the_error_for_an_unknown_key_suggests_the_most_similar_key(home):
    with pytest.raises(ConfigError, match=r"did you mean `observation\.message_tokens`"):
        observation(home, "message_token = 3")
    with pytest.raises(ConfigError) as raised:  # a key is not mistaken for itself
        read(home, "[observation.agents.main]\nquiet_after = 5")
    assert "did you mean `observation.agents.main.quiet_after`" not in str(raised.value)
    with pytest.raises(ConfigError, match="did you mean `observation`"):
        read(home, "[observations]\nstyle = 'full'")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[observation]\nquiet_after = -1\n[llm]\ntimeout_s = 0", r"quiet_after.*timeout_s"),  # both at once
        ("[observation]\nstyle = = 3", "line 2"),
        ('home = "/elsewhere"', "OMG_HOME"),  # a home cannot be moved from inside it
    ],
)
def test_all_mistakes_of_a_file_are_in_one_error(home, text, told):
    with pytest.raises(ConfigError, match=told):
        read(home, text)


def test_an_environment_variable_overrides_the_file_and_is_checked(home):
    read(home, '[observation]\nmodel = "a"\n')
    env = {"OMG_OBSERVATION_MODEL": "b", "OMG_OBSERVATION_BUFFER_TOKENS": "0.5", "OMG_HOME": str(home)}
    assert load_config(home, env).observation.model == "b"
    assert load_config(home, env).observation.step == 15_000
    with pytest.raises(ConfigError, match="buffer_tokens"):
        load_config(home, {"OMG_OBSERVATION_BUFFER_TOKENS": "0"})


# --- what the options come to


def home_with(home: Path, text: str, gateway=None) -> Memory:
    return Memory(read(home, text), gateway=gateway, embed=None)


def test_models_are_asked_in_the_order_of_the_list_and_the_smallest_window_is_used(home):
    with home_with(home, '[observation]\nmodel = ["openai/gpt-4o-mini", "openai/gpt-4"]') as which:
        observer = which.worker.observer("main")
        assert observer.model == "openai/gpt-4o-mini"
        assert observer.ask.models == ("openai/gpt-4o-mini", "openai/gpt-4")
        assert observer.window == 8_192  # gpt-4's


def test_a_model_for_reflection_does_not_change_the_observer(home):
    with home_with(
        home, '[observation]\nmodel = "offline"\n[reflection]\nmodel = "openai/gpt-4o-mini"'
    ) as which:
        assert (which.worker.models(), which.worker.reflecting()) == (["offline"], ["openai/gpt-4o-mini"])
        told = status_text(home_status(which.worker), UTC)
        assert "observer  offline" in told and "reflector openai/gpt-4o-mini" in told
        assert any("gpt-4o-mini works only at night" in finding.what for finding in check_model(which, None))


def test_an_agent_may_have_a_model_of_its_own(home):
    with home_with(
        home, '[observation]\nmodel = "offline"\n[observation.agents.mona]\nmodel = "openai/gpt-4o-mini"'
    ) as which:
        assert which.worker.observer("mona").model == "openai/gpt-4o-mini"
        assert which.worker.observer("main").model == "offline"


def test_without_a_configured_model_the_gateways_is_used(home):
    with home_with(home, "") as alone, home_with(home, "", gateway=lambda question: None) as under:
        assert alone.worker.observer("main").model == "offline"
        assert under.worker.observer("main").model == "gateway"


def test_the_instruction_of_an_agent_replaces_the_shared_one(home):
    config = read(
        home,
        '[observation]\ninstruction = "Note recipes."\n[observation.agents.mona]\ninstruction = "Note birds."\n[observation.agents.mute]\ninstruction = ""',
    )
    assert "Note recipes." in observer_prompt("observe", config, "main")
    assert "Note birds." in observer_prompt("observe", config, "mona")
    assert "Note recipes." not in observer_prompt("observe", config, "mona")
    assert "# Also" not in observer_prompt("observe", config, "mute")
    assert all(kind in observer_prompt("observe", config, "mute") for kind in TYPES)


@pytest.mark.parametrize(
    "before, after",
    [
        ("# mine\n[observation]\nmodel = 'x'  # cheap\n\n[inject]\n", "# mine\n[observation]\nmodel = \"m\"  # cheap\n\n[inject]\n"),
        ("observation = { model = 'x', style = \"full\" }\n", 'observation = { model = "m", style = "full" }\n'),
        ("observation.quiet_after = 1\n", 'observation.quiet_after = 1\nobservation.model = "m"\n'),
        ("[inject]\r\n[ observation ] # here\r\n", '[inject]\r\n[ observation ] # here\r\nmodel = "m"\n'),
        ("", '[observation]\nmodel = "m"\n'),
    ],
)  # fmt: skip
def test_setting_a_value_changes_nothing_else_in_the_file(home, before, after):
    file = home / "omg.toml"
    file.write_bytes(before.encode())
    file.chmod(0o640)
    set_value(home, "observation", "model", "m")
    assert file.read_bytes().decode() == after
    assert file.stat().st_mode & 0o777 == (0o640 if before else 0o600)


def test_removing_a_value_restores_the_file(home):
    file = home / "omg.toml"
    file.write_text('[identity.links]\nada = ["telegram:1"]\n')
    set_value(home, "vaults", "agent:main:main", None)
    assert file.read_text() == '[identity.links]\nada = ["telegram:1"]\n'
    set_value(home, "identity.links", "ada", None)
    assert load_config(home, {}).identity.links == {}


@pytest.mark.parametrize(
    "text", ["[observation", "observation = 3\n", "[observation]\nmodell = 'x'\n", "\xff"]
)
def test_the_error_for_a_file_that_cannot_be_edited_gives_the_line_to_add_by_hand(home, text):
    file = home / "omg.toml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r'omg.toml: .*add to \[observation\] by hand: "model" = "m"'):
        set_value(home, "observation", "model", "m")
    assert file.read_bytes() == text.encode("latin-1")
