"""
Secrets that are known by their form: private keys, tokens with the prefix of a service, credentials in an address.

The detectors of detect-secrets that decide by form, the forms of providers and services it does not know, and what
has any prefix and is drawn for the rest. Not here: what is known by a name or a place. One rule: a form is sought by
its hints first, at memory speed, and by its expression only where a hint stands.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from .passwords import entropy
from .placed import LONG, LONG_RUN, UUID, is_stand_in

FormSpan = tuple[int, int, str]  # start, end, kind


@dataclass(frozen=True, slots=True)
class Form:
    """
    A secret given away by its form.

    Every match begins with one of *hints* (`back`: holds one so many chars after its start at the most).
    They are sought first, at memory speed. Unless `short`, it is SHORTEST chars long without a blank.
    """

    kind: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    back: int = 0
    short: bool = False


SHORTEST = 15  # chars of the shortest key: "xoxb-" and ten
KEY_START = r"(?<![A-Za-z0-9])"  # a key begins where a word begins: no "risk-…", no middle of a hash

# to the end of the word: a form that counts 24 chars would leave a longer key's rest
KEY_TAIL = r"[A-Za-z0-9_-]*"
REACH = 400  # chars a form with `back` may extend beyond its hint


def _form(kind: str, hints: str, pattern: str, back: int = 0, *, short: bool = False) -> Form:
    whole = re.compile(f"(?:{pattern}){KEY_TAIL}", re.DOTALL | re.ASCII)
    return Form(kind, tuple(hints.split(",")), whole, back, short)


OURS = (  # the longer prefix first: an Anthropic key would pass for an OpenAI one
    _form(
        "private key",
        "-----BEGIN ",
        r"-----BEGIN ([A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----(?:(?!-----).){16,}?-----END \1-----"
        r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{16,})+",
        short=True,
    ),
    _form("private key", "Private-Lines: ", r"Private-Lines: \d+(?:\s+[A-Za-z0-9+/=]{8,})+", short=True),
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
    _form(
        "password",
        "://",
        r"(?<=://)[^\s:/@\[\]\"'<>]*:(?P<value>[^\s/\[\]\"'<>]+)@(?=[\w\[])",
        back=-3,
        short=True,
    ),
    _form(
        "password",
        "curl ,wget ",
        r"(?:curl|wget) (?:[^\n]{0,200}? )?(?:-[a-zA-Z]{0,5}[uU]|--(?:proxy-)?user)[ =]?(?P<q>[\"'])?[^\s:\"'$]{1,80}:"
        r"(?!\$)(?P<value>(?(q)[^\n\"']|[^\s\"']){2,})",
        short=True,
    ),
    _form("password", "sshpass -p", r"sshpass -p ?[\"']?(?P<value>[^\s\"'$]{3,})", short=True),
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


def longest_word(text: str) -> int:
    """Chars of the longest run in *text* without a blank: in talk there is hardly one that could be a key."""
    return max(map(len, text.split()), default=0)


def formed_secrets(text: str, longest: int) -> Iterator[FormSpan]:
    """Secrets in *text*, whose longest word has *longest* chars, that their form gives away."""
    for hint, form in _hinted()[longest >= SHORTEST]:
        if hint in text:
            yield from _formed(form, hint, text)
    if longest >= LONG:
        yield from _unnamed_secrets(text)


@cache
def _hinted() -> tuple[tuple[tuple[str, Form], ...], ...]:
    """Each hint with its form: of the short ones, and of all."""
    every = tuple((hint, form) for form in _forms() for hint in form.hints)
    return tuple(pair for pair in every if pair[1].short), every


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


EXAMPLE = re.compile(r"@(?:localhost|127\.|[\w.-]{0,60}example\.)")


def _formed(form: Form, hint: str, text: str) -> Iterator[FormSpan]:
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


PREFIXED = re.compile(
    # not what names a thing of a service's: answers, calls, files, builds
    r"(?<![\w/+.=@#-])(?!(?i:sha\d|md5|uuid|urn|rev|diff|commit|build|img|image|data|http|chat|cmpl|resp|msg|call|tool|req|run|thread|file|asst|evt"
    r"|session|conv|trace|span|user|org|proj|batch|step|item|obj|doc|key_|task|job|pod|node|ip|vol|snap|ami|subnet|vpc|sg|eni)[a-z]{0,8}[_-])[A-Za-z]{2,10}[0-9]?[_-](?P<rest>[A-Za-z0-9][\w-]{28,250})(?![\w.-]*\.[a-z]{2,5}\b)",
)


def _unnamed_secrets(text: str) -> Iterator[FormSpan]:
    """What has a service's prefix and is drawn for the rest, as today's tokens are: `abcd_…`, `ABCD-…`."""
    for run in LONG_RUN.finditer(text):
        m = PREFIXED.match(text, run.start())
        if not m:
            continue
        rest = m["rest"]
        letters = sum(c.isalpha() for c in rest)
        digits = sum(c.isdigit() for c in rest)
        runs = re.split(r"[_-]", rest)
        longest = max(map(len, runs))
        upper, lower = any(c.isupper() for c in rest), any(c.islower() for c in rest)
        drawn = (upper and lower and digits >= 3 and entropy(rest) >= 4.0 and longest >= 10) or (
            m[0][:2].isupper() and digits >= 6 and letters >= 4 and longest >= 20 and entropy(rest) >= 3.0
        )
        if drawn and not UUID.search(rest):
            yield *m.span(), "token"
