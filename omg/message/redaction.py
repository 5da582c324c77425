"""
Take the secrets out of a text.

- keys by their form: what detect-secrets knows, and the model providers and services it does not
- credentials in URLs and commands, private key blocks
- values by their name, such as `password: …` (passwords.py), cards and IBANs (accounts.py)

Not a scanner of files, and no judge of prose: UUIDs, hashes, phone numbers and dates stay. A secret is sought in
the text as a reader sees it (`unmasked`), and only where it stands is the text changed. One rule: what was redacted
is never changed again, so that redact(redact(x)) == redact(x).
"""

from __future__ import annotations

import importlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from .accounts import account_numbers
from .passwords import named_secrets
from .placed import is_stand_in, placed_secrets

FormSpan = tuple[int, int, str]  # start, end, kind


ROUNDS = 12  # a text that needs more is made to keep us busy


def redact(text: str) -> tuple[str, int]:
    """*text* with every secret replaced by "[redacted: <kind>]", and how many there were."""
    if len(text) <= REDACTED_AT_ONCE:
        return _redact(text)
    pieces = [_redact(piece) for piece in _pieces(text)]
    return "".join(piece for piece, _ in pieces), sum(found for _, found in pieces)


# chars: an expression that reads holds the interpreter, and so whoever waits for memory
REDACTED_AT_ONCE = 40_000


def _pieces(text: str) -> Iterator[str]:
    """*text* in pieces that end with a line, else with a word."""
    at = 0
    while len(text) - at > REDACTED_AT_ONCE:
        end = max(text.rfind("\n", at, at + REDACTED_AT_ONCE), at)
        end = end if end > at else text.rfind(" ", at, at + REDACTED_AT_ONCE)
        end = end + 1 if end > at else at + REDACTED_AT_ONCE
        yield text[at:end]
        at = end
    yield text[at:]


def _redact(text: str) -> tuple[str, int]:
    total = 0
    for _ in range(ROUNDS):  # taking one out can uncover another
        text, found = _round(text)
        total += found
        if not found:
            break
    return text, total


# Letters that a reader sees as others, or not at all: blanks of all widths, full-width and mathematical letters,
# quotation marks; soft hyphens, zero-width characters, direction marks, variation selectors, tags.
UNSEEN = "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"

UNSEEN += "\uffa0\U000e0000-\U000e01ef"

MASKED = re.compile(
    rf"(?P<unseen>[{UNSEEN}]+)|[\u00a0\u2000-\u200a\u202f\u205f\u3000‘-‟«»\uff01-\uff5e\U0001d400-\U0001d7ff]"
)

PLAIN_QUOTES = dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„‟«»", '"')


def unmasked(text: str) -> tuple[str, Sequence[int]]:
    """*text* in plain letters, and the place in *text* of each of its characters and of its end."""
    if not MASKED.search(text):
        return text, range(len(text) + 1)
    plain: list[str] = []
    places: list[int] = []
    at = 0
    for m in MASKED.finditer(text):
        plain.append(text[at : m.start()])
        places += range(at, m.start())
        if not m["unseen"]:
            plain.append(PLAIN_QUOTES.get(m[0]) or unicodedata.normalize("NFKC", m[0]))
            places.append(m.start())
        at = m.end()
    return "".join(plain) + text[at:], [*places, *range(at, len(text) + 1)]


@dataclass(frozen=True, slots=True)
class Form:
    """
    A secret given away by its form.

    Every match begins with one of *hints* (`back`: holds one so many chars after its start at the most).
    They are sought first, at memory speed.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    back: int = 0


KEY_START = r"(?<![A-Za-z0-9])"  # a key begins where a word begins: no "risk-…", no middle of a hash

# to the end of the word: a form that counts 24 chars would leave a longer key's rest
KEY_TAIL = r"[A-Za-z0-9_-]*"
REACH = 400  # chars a form with `back` may extend beyond its hint


def _form(kind: str, hints: str, pattern: str, back: int = 0) -> Form:
    return Form(
        kind, tuple(hints.split(",")), re.compile(f"(?:{pattern}){KEY_TAIL}", re.DOTALL | re.ASCII), back
    )


OURS = (  # the longer prefix first: an Anthropic key would pass for an OpenAI one
    _form(
        "private key",
        "-----BEGIN ",
        r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----(?:(?!-----).){16,}?-----END \1-----"
        r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+",
    ),
    _form("private key", "Private-Lines: ", r"Private-Lines: \d+(?:\s+[A-Za-z0-9+/=]{8,})+"),
    _form("private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    _form("JSON web token", "eyJ", r"(?<![\w.-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?"),
    _form("OpenRouter key", "sk-or-", KEY_START + r"sk-or-[\w-]{20,}"),
    _form("Anthropic key", "sk-ant-", KEY_START + r"sk-ant-[\w-]{20,}"),
    _form("OpenAI key", "sk-", KEY_START + r"sk-(?:proj|svcacct|admin|service|None)-[\w-]{20,}"),
    _form(
        "OpenAI key",
        "sk-",
        KEY_START + r"sk-(?:[a-z0-9]{1,12}-){0,2}(?=[A-Za-z]{0,24}\d)[A-Za-z0-9]{18,}[\w-]*",
    ),
    _form("Google key", "AIza", KEY_START + r"AIza[\w-]{35,}"),
    _form("Google key", "AQ.Ab", KEY_START + r"AQ\.Ab[\w-]{30,}"),
    _form("Google token", "ya29.,GOCSPX-", KEY_START + r"(?:ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,})"),
    _form("Groq key", "gsk_", KEY_START + r"gsk_[A-Za-z0-9]{20,}"),
    _form("xAI key", "xai-", KEY_START + r"xai-[A-Za-z0-9]{20,}[\w-]*"),
    _form("Hugging Face token", "hf_,api_org_", KEY_START + r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _form("Perplexity key", "pplx-", KEY_START + r"pplx-[A-Za-z0-9]{30,}"),
    _form("Replicate key", "r8_", KEY_START + r"r8_[A-Za-z0-9]{30,}"),
    _form("NVIDIA key", "nvapi-", KEY_START + r"nvapi-[\w-]{30,}"),
    _form("Cerebras key", "csk-", KEY_START + r"csk-[a-z0-9]{30,}"),
    _form("Fireworks key", "fw_", KEY_START + r"fw_[A-Za-z0-9]{20,}"),
    _form("Together key", "tgp_v1_", KEY_START + r"tgp_v1_[\w-]{30,}"),
    _form("ElevenLabs key", "sk_", KEY_START + r"sk_[0-9a-f]{40,}"),
    _form("Tavily key", "tvly-", KEY_START + r"tvly-[\w-]{20,}"),
    _form("Firecrawl key", "fc-", KEY_START + r"fc-[0-9a-f]{32}"),
    _form(
        "GitHub token",
        "ghp_,gho_,ghu_,ghs_,ghr_,github_pat_",
        KEY_START + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})",
    ),
    _form(
        "GitLab token",
        "glpat-,gldt-,glft-,glsoat-,glrt-,glcbt-,glptt-,gloas-",
        KEY_START + r"gl[a-z]{2,4}-[\w-]{20,}",
    ),
    _form("Slack token", "xox,xapp-", KEY_START + r"(?:xox[a-z]|xapp)-[\w.-]{10,}"),
    _form("Telegram bot token", ":A", r"(?<!\w)(?:bot)?\d{6,12}:A[\w-]{32,}", back=15),
    _form("Stripe key", "sk_,rk_,pk_", KEY_START + r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _form("Stripe secret", "whsec_", KEY_START + r"whsec_[A-Za-z0-9+/=]{20,}"),
    _form("npm token", "npm_", KEY_START + r"npm_[A-Za-z0-9]{30,}"),
    _form("Notion token", "ntn_,secret_", KEY_START + r"(?:ntn|secret)_[A-Za-z0-9]{40,}"),
    _form("Linear key", "lin_", KEY_START + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    _form("DigitalOcean token", "dop_v1_,doo_v1_,dor_v1_", KEY_START + r"do[opr]_v1_[a-f0-9]{40,}"),
    _form("Databricks token", "dapi", KEY_START + r"dapi[a-f0-9]{32}[\w-]*"),
    _form("Supabase key", "sbp_,sb_", KEY_START + r"(?:sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,})"),
    _form("Shopify token", "shp", KEY_START + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _form("Vault token", "hvs.,hvb.", KEY_START + r"hv[sb]\.[\w-]{24,}"),
    _form("1Password token", "ops_eyJ", KEY_START + r"ops_eyJ[\w=-]{40,}"),
    _form("password", "://", r"(?<=://)[^\s:/@\[\]\"'<>]*:(?P<value>[^\s/\[\]\"'<>]+)@(?=[\w\[])", back=-3),
    _form(
        "password",
        "curl ,wget ",
        r"(?:curl|wget) (?:[^\n]{0,200}? )?(?:-[a-zA-Z]{0,5}[uU]|--(?:proxy-)?user)[ =]?(?P<q>[\"'])?[^\s:\"'$]{1,80}:"
        r"(?!\$)(?P<value>(?(q)[^\n\"']|[^\s\"']){2,})",
    ),
    _form("password", "sshpass -p", r"sshpass -p ?[\"']?(?P<value>[^\s\"'$]{3,})"),
    _form("token", "earer ", r"(?<=[Bb]earer )(?=[A-Za-z._~+/=-]*\d)[\w.~+/=-]{20,}", back=-6),
)

# Of detect-secrets, the detectors that decide by form: module, class, our name for it, hints, back.
# Their expressions are used and not their `analyze_*`, which return only the group where there is one.
THEIRS = (
    ("aws", "AWSKeyDetector", "AWS key", "AKIA,ASIA,ABIA,ACCA,A3T", 0),
    ("azure_storage_key", "AzureStorageKeyDetector", "Azure storage key", "AccountKey=", 0),
    # a bot's token begins with its number in base64
    ("discord", "DiscordBotTokenDetector", "Discord bot token", "MT,Mj,Mz,ND,NT,Nj,Nz,OD,OT", 0),
    ("mailchimp", "MailchimpDetector", "Mailchimp key", "-us", 32),
    ("pypi_token", "PypiTokenDetector", "PyPI token", "pypi-", 0),
    ("sendgrid", "SendGridDetector", "SendGrid key", "SG.", 0),
    ("slack", "SlackDetector", "Slack token", "https://hooks.slack.com", 0),
    ("square_oauth", "SquareOAuthDetector", "Square secret", "sq0csp-", 0),
    ("twilio", "TwilioKeyDetector", "Twilio key", "AC,SK", 0),
)


@cache
def _forms() -> tuple[Form, ...]:
    theirs = []
    for module, name, kind, hints, back in THEIRS:  # imported here: it brings `requests`, 0.15 s
        detector = getattr(importlib.import_module(f"detect_secrets.plugins.{module}"), name)
        for pattern in detector.denylist:
            if "aws." in pattern.pattern:  # a name and its value, not a form: passwords.py does that
                continue
            whole = re.compile(f"{KEY_START}(?:{pattern.pattern}){KEY_TAIL}", pattern.flags)
            theirs.append(Form(kind, tuple(hints.split(",")), whole, back))
    return OURS + tuple(theirs)


MARK = re.compile(r"\[redacted: [A-Za-z0-9 ]+\]")


def _round(text: str) -> tuple[str, int]:
    """Take out what can be seen now, and how many that were."""
    seen, places = unmasked(text)
    spans = [span for form in _forms() for span in _formed(form, seen)]
    spans += [*named_secrets(seen), *account_numbers(seen), *placed_secrets(seen)]
    spans += [wrapped for span in spans if (wrapped := continued(seen, span))]
    if not spans:
        return text, 0
    marks = [m.span() for m in MARK.finditer(seen)]
    parts, at, kept, count = [], 0, 0, 0  # `at` in what is seen, `kept` in *text*
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if any(start < closed and opened < end for opened, closed in marks):
            continue
        if start >= at:
            parts += [text[kept : places[start]], f"[redacted: {kind}]"]
            count += 1
        if end > at:  # of one that overlaps the one before, the rest goes with it
            at, kept = end, places[end - 1] + 1
    return "".join(parts) + text[kept:], count


EXAMPLE = re.compile(r"@(?:localhost|127\.|[\w.-]{0,60}example\.)")
WRAPPED = re.compile(r"\\?\n[> \t]*(?P<rest>[A-Za-z0-9+/=_-]{4,120})(?=\\?\s*(?:\n|\Z))")
LINES = 60  # of a key that a mail or a terminal broke


def continued(text: str, span: FormSpan) -> FormSpan | None:
    """The lines below a key that stands at its line's end, as long as they look like more of it."""
    start, end, kind = span
    if end - start < 16 or kind in ("password", "cookie", "card number", "IBAN"):
        return None
    at, wide = end, 0
    for _ in range(LINES):
        m = WRAPPED.match(text, at)
        if not m:
            break
        rest = m["rest"]
        mixed = any(c.isdigit() for c in rest) or (
            not rest.islower() and not rest.isupper() and not rest.istitle()
        )
        if not mixed or len(rest) > max(wide, 120):
            break
        at, wide = m.end("rest"), len(rest)
        if wide < 12:  # the last one
            break
    return (end, at, kind) if at > end else None


def _formed(form: Form, text: str) -> Iterator[FormSpan]:
    for hint in form.hints:
        at = text.find(hint)
        while at >= 0:
            if form.back > 0:
                m = form.pattern.search(text, max(0, at - form.back), at + REACH)
            else:
                m = form.pattern.match(text, at - form.back)
            if m:
                start, end = m.span("value") if "value" in form.pattern.groupindex else m.span()
                if not (is_stand_in(text[start:end]) and EXAMPLE.match(text, end)):
                    yield start, end, form.kind
            at = text.find(hint, max(at + 1, m.end() if m else 0))


# --- the arguments of a call

DEEP = 12  # levels of a call's arguments; what lies below is redacted as the text it is


def redact_arguments(arguments: str) -> tuple[str, int]:
    """
    *arguments*, the JSON of a call, with the secrets of its values taken out before they are escaped, and how many.

    A value is read with the name it has: its key, or what a form calls the field beside it.
    """
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return redact(arguments)
    if not isinstance(value, dict | list):
        return redact(arguments)
    clean, found = _value_without(value, "", DEEP)
    return (json.dumps(clean, ensure_ascii=False, separators=(",", ":")), found) if found else (arguments, 0)


LABELS = ("label", "name", "key", "field", "placeholder", "selector")


def _value_without(value: Any, name: str, levels: int) -> tuple[Any, int]:
    if isinstance(value, str):
        clean, found = redact(value)
        if found or not name or len(value) > 4_000 or "\n" in value:
            return clean, found
        quoted = json.dumps(value, ensure_ascii=False)
        plain, found = redact(f"{name}: {value}" if '"' in value else f"{name}: {quoted}")
        return (f"[redacted: {MARK.search(plain)[0][11:]}", 1) if found else (value, 0)  # type: ignore[index]
    if levels == 0 or not isinstance(value, dict | list):
        if isinstance(value, dict | list):
            clean, found = redact(json.dumps(value, ensure_ascii=False))
            return clean, found
        return value, 0
    found = 0
    if isinstance(value, list):
        items = []
        for item in value:
            clean, more = _value_without(item, name, levels - 1)
            items.append(clean)
            found += more
        return items, found
    label = next((value[k] for k in LABELS if isinstance(value.get(k), str) and len(value[k]) < 60), "")
    fields = {}
    for key, item in value.items():
        called = label if key in ("text", "value", "content") and label else key
        key_clean, more = redact(key)
        clean, most = _value_without(item, called, levels - 1)
        fields[key_clean] = clean
        found += more + most
    return fields, found
