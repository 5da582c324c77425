import base64
import json
import random
import re
import string
import time
from pathlib import Path

import pytest
from corpora.messages import HERE, clean_lines
from hypothesis import example, given
from hypothesis import strategies as st

from omg.secrets import redact, redaction, rules_number

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
URLSAFE = ALNUM + "-_"
JWT = ".".join(
    base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
    for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "name": "A. Person"}, {"s": "x" * 20})
)

# Keys with the shape of real ones, none of which opens anything: drawn afresh from a fixed seed, so that no
# scanner of this repository finds one. prefix, alphabet, length, suffix.
FORMS = [
    ("sk-proj-", URLSAFE, 148, ""),
    ("sk-svcacct-", URLSAFE, 120, ""),
    ("sk-", ALNUM, 48, ""),
    ("sk-", HEX, 32, ""),  # DeepSeek's
    ("sk-admin-", ALNUM, 20, "T3BlbkFJ" + "a1" * 10),
    ("sk-ant-api03-", URLSAFE, 93, "AA"),
    ("sk-or-v1-", HEX, 64, ""),
    ("AIza", URLSAFE, 35, ""),
    ("gsk_", ALNUM, 52, ""),
    ("xai-", ALNUM, 80, ""),
    ("hf_", string.ascii_letters, 34, ""),
    ("pplx-", ALNUM, 48, ""),
    ("r8_", ALNUM, 37, ""),
    ("nvapi-", URLSAFE, 64, ""),
    ("csk-", LOWER, 48, ""),
    ("sk_", HEX, 48, ""),
    ("tvly-dev-", ALNUM, 32, ""),
    ("ghp_", ALNUM, 36, ""),
    ("ghs_", ALNUM, 40, ""),
    ("github_pat_", ALNUM, 22, "_" + "a1B2" * 14 + "xyz"),
    ("glpat-", URLSAFE, 20, ""),
    ("xoxb-123456789012-1234567890123-", ALNUM, 24, ""),
    ("xapp-1-A0123456789-1234567890123-", HEX, 64, ""),
    ("https://hooks.slack.com/services/T012AB3CD/B012AB3CD/", ALNUM, 24, ""),
    ("7770001112:AA", URLSAFE, 33, ""),
    ("sk_live_", ALNUM, 99, ""),
    ("rk_test_", ALNUM, 24, ""),
    ("whsec_", ALNUM, 32, ""),
    ("npm_", ALNUM, 36, ""),
    ("pypi-AgEIcHlwaS5vcmc", URLSAFE, 120, ""),
    ("ntn_", ALNUM, 46, ""),
    ("lin_api_", ALNUM, 40, ""),
    ("SG.", ALNUM, 22, "." + "x1Y2" * 10 + "abc"),
    ("SK", HEX, 32, ""),
    ("dop_v1_", HEX, 64, ""),
    ("dapi", HEX, 32, ""),
    (JWT, ALNUM, 0, ""),
]


def secret(prefix, alphabet, length, suffix, seed=7):
    rng = random.Random(f"{prefix}{seed}")
    return prefix + "".join(rng.choices(alphabet, k=length)) + suffix


GONE = "[redacted]"


def unnamed(clean):
    """*clean* without the kinds of what was taken out: which rule finds a secret first is no promise."""
    return re.sub(r"\[redacted: [A-Za-z0-9 ]+\]", GONE, clean)


def pieces(text, size=8):
    return {text[i : i + size] for i in range(len(text) - size + 1)}


@pytest.mark.parametrize("prefix, alphabet, length, suffix", FORMS, ids=[f[0][:12] for f in FORMS])
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "my key is {}, keep it",
        "export X={}\nls",
        '{{"a": "{}"}}',
        "({})",
        "`{}`.",
        "鍵は{}です",
        "{}\r\n",
    ],
)
def test_a_key_is_removed_whole_and_nothing_else(prefix, alphabet, length, suffix, around):
    key = secret(prefix, alphabet, length, suffix)
    clean, count = redact(around.format(key))
    assert unnamed(clean) == around.format(GONE)
    assert count == 1


@given(st.sampled_from(FORMS), st.integers(0, 10**6), st.text(max_size=40), st.text(max_size=40))
@example(("tvly-dev-", ALNUM, 32, ""), 114729, "", "")  # these hardly look drawn
@example(("sk-proj-", URLSAFE, 148, ""), 3345, "", "")
@example(("whsec_", ALNUM, 32, ""), 52, "", "")
def test_no_piece_of_a_key_survives(form, seed, before, after):
    prefix, alphabet, length, suffix = form
    key = secret(prefix, alphabet, length, suffix, seed)
    clean, count = redact(f"{before} {key} {after}")
    left = pieces(key) - pieces(before) - pieces(after) - pieces("[redacted: ")
    assert count >= 1
    assert not any(piece in clean for piece in left)


words = st.sampled_from(
    [
        *("password:", "password", "is", "api_key=", "token:", "[redacted: key]", '"', "'", "hunter2", "="),
        *(
            "https://",
            "a:b@c",
            "sk-proj-" + "aB3" * 10,
            "Bearer ",
            "eyJ" + "a" * 12,
            ".",
            " ",
            "\n",
            "x9" * 12,
        ),
        *("secret", "AKIA" + "Z9" * 8, "authorization", "-----BEGIN PRIVATE KEY-----", "1234567890:A"),
        *(
            "\u200b",
            "：",
            "［redacted: key］",
            "4111 1111 1111 1111",
            "cvv 123",
            "curl -u a:",
            "horse ",
            "密码是",
        ),
    ]
)


@given(st.text() | st.lists(words).map("".join))
def test_redacting_twice_changes_nothing(text):
    once, _ = redact(text)
    assert redact(once) == (once, 0)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("password: hunter2", "password: [redacted: password]"),
        ("the wifi password is Sunflower-92, ok?", "the wifi password is [redacted: password], ok?"),
        (
            "the password for the router is: Fritz!7430#x",
            "the password for the router is: [redacted: password]",
        ),
        ("passwd=swordfish", "passwd=[redacted: password]"),
        ('{"password":"correct horse"}', '{"password":"[redacted: password]"}'),
        ("my pin is 4821.", "my pin is [redacted: password]."),
        ("MISTRAL_API_KEY=" + "aB3xY7" * 6, "MISTRAL_API_KEY=[redacted: key]"),
        ("'x-api-key': '3f9a1c7e5b2d'", "'x-api-key': '[redacted: key]'"),
        ("my api key is abc123def456ghi", "my api key is [redacted: key]"),
        ("STRIPE_KEY=ab12cd34ef56gh78ij", "STRIPE_KEY=[redacted: key]"),
        ("client_secret = 9f8e7d6c5b4a39281706", "client_secret = [redacted: key]"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz9qRLX3aa",
            "aws_secret_access_key = [redacted: key]",
        ),
        ("Authorization: Bearer 8f14e45fceea167a5a36", "Authorization: Bearer [redacted: token]"),
        ('"Authorization": "Bearer 8f14e45fceea167a5a36"', '"Authorization": "Bearer [redacted: token]"'),
        ("authorization: Basic dXNlcjpwYXNzMTIz", "authorization: Basic [redacted: token]"),
        ("curl -H 'Bearer 8f14e45fceea167a5a36dedd'", "curl -H 'Bearer [redacted: token]'"),
        ("postgres://bob:s3cr3t@db:5432/x", "postgres://bob:[redacted: password]@db:5432/x"),
        ("redis://:p4ss@cache/0", "redis://:[redacted: password]@cache/0"),
        (
            "https://x.test/?access_token=a1b2c3d4e5f6&q=1",
            "https://x.test/?access_token=[redacted: token]&q=1",
        ),
        (
            "-----BEGIN EC PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\nQw==\n-----END EC PRIVATE KEY-----\nok",
            "[redacted: private key]\nok",
        ),
        ("-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0B\\nAQEF", "[redacted: private key]"),
    ],
)
def test_a_secret_is_recognised_by_its_label(text, expected):
    assert unnamed(redact(text)[0]) == unnamed(expected)


MASKS = {
    "zero-width characters": lambda key: "\u200b".join(key),
    "a soft hyphen and a joiner": lambda key: key[:3] + "\u00ad" + key[3:9] + "\u2060" + key[9:],
    "full-width letters": lambda key: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in key),
    "a full-width beginning": lambda key: "".join(chr(ord(c) + 0xFEE0) for c in key[:6]) + key[6:],
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("prefix, alphabet, length, suffix", FORMS, ids=[f[0][:12] for f in FORMS])
def test_a_key_is_recognised_by_its_form(prefix, alphabet, length, suffix, mask):
    key = MASKS[mask](secret(prefix, alphabet, length, suffix))
    clean, count = redact(f"Sieh an\u200b: {key} – hübsch 🧑\u200d🍳")
    assert (unnamed(clean), count) == (f"Sieh an\u200b: {GONE} – hübsch 🧑\u200d🍳", 1)


SAID = """\
密码：{}
密码是{}。
密碼: {}
パスワード：{}
パスワードは{}です
비밀번호: {}
mật khẩu: {}
contraseña: {}
La contrasen\u0303a es {}
mot de passe : {}
le mot de passe est {}
senha: {}
Passwort: {}
Das Passwort für das WLAN ist {}.
Kennwort={}
hasło: {}
пароль: {}
пароль от вайфая={}
wachtwoord: {}
lösenord: {}
adgangskode: {}
heslo: {}
şifre: {}
La clave es {}
PASSWORT:\u00a0{}
""".splitlines()


@pytest.mark.parametrize("said", SAID)
def test_a_random_looking_password_is_removed_under_any_label(said):
    for password in ("Tulpe-8XpJw01", "Turnip-Cellar-2040", "maus!Kq4tO69"):
        text = said.format(password)
        clean, count = redact(text)
        assert count == 1
        assert not pieces(password, 5) & pieces(clean, 5)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("password: correct horse battery staple", "password: [redacted: password]"),
        ("Passwort: „Sonne Mond Sterne“, ja?", "Passwort: „[redacted: password]“, ja?"),
        ("wifi password = purple monkey dishwasher\nThanks", "wifi password = [redacted: password]\nThanks"),
        (
            "seed phrase: legal winner thank year wave sausage worth useful legal winner thank yellow",
            "seed phrase: [redacted: password]",
        ),
        ("password: hunter2 and user bob", "password: [redacted: password] and user bob"),
        ("curl -sS -X POST -u 'bob:p w:1' x", "curl -sS -X POST -u [redacted: password] x"),
        ("curl --user=bob:hunter2 x", "curl --user=[redacted: password] x"),
        ("ftp://me:p@ss@host.test/x", "ftp://me:[redacted: password]@host.test/x"),
        (
            "my card is 4111 1111 1111 1111, CVV 123",
            "my card is [redacted: card number], CVV [redacted: card code]",
        ),
        (
            "5555-5555-5555-4444 exp 12/27 cvc: 737",
            "[redacted: card number] exp 12/27 cvc: [redacted: card code]",
        ),
        ("amex 3782 822463 10005", "amex [redacted: card number]"),
        ("6304000000000000000?", "[redacted: card number]?"),
        ("DE89 3704 0044 0532 0130 00 BIC COBADEFF", "[redacted: IBAN] BIC COBADEFF"),
        ("IBAN: GB82WEST12345698765432.", "IBAN: [redacted: IBAN]."),
        ("NO93 8601 1117 947", "[redacted: IBAN]"),
    ],
)
def test_card_account_and_access_numbers_are_removed(text, expected):
    assert unnamed(redact(text)[0]) == unnamed(expected)


@pytest.mark.parametrize("text", clean_lines(HERE / "ordinary.txt"))
def test_ordinary_text_stays_as_it_is(text):
    assert redact(text) == (text, 0)


def test_redaction_reads_three_megabytes_a_second():
    text = "The quick brown fox jumps over the lazy dog, says its key opens no door.\n" * 30_000
    redact("warm up")
    best = min(timed(text) for _ in range(3))
    assert len(text) / best > 3e6  # 10 MB/s measured; CI is slower


def timed(text):
    start = time.process_time()
    redact(text)
    return time.process_time() - start


@pytest.mark.parametrize(
    "name", ["labels.py", "tokens.py", "redaction.py", "characters.py", "words.py", "a package"]
)
def test_a_change_in_any_file_or_package_that_redacts_changes_the_rules_version(name, monkeypatch):
    number, read, version = rules_number.__wrapped__, Path.read_bytes, redaction.version
    before = number()
    monkeypatch.setattr(Path, "read_bytes", lambda file: read(file) + b"#" * (file.name == name))
    monkeypatch.setattr(redaction, "version", lambda package: version(package) + "+1" * (name == "a package"))
    assert number() != before
