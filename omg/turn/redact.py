"""
Take the secrets out of a text.

- keys by their form: what detect-secrets knows, and the model providers and services it does not
- values by their name: `password: …`, `API_KEY=…`, `Authorization: …`; entropy is asked only there
- credentials in URLs, private key blocks

Not a scanner of files, and no judge of prose: UUIDs, hashes, phone numbers and dates stay. Its one rule:
what was redacted is never changed again, so that redact(redact(x)) == redact(x).
"""

from __future__ import annotations

import importlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

Span = tuple[int, int, str]  # start, end, kind


def redact(text: str) -> tuple[str, int]:
    """*text* with every secret replaced by "[redacted: <kind>]", and how many there were."""
    total = 0
    while True:  # taking one out can uncover another; each round consumes text, so this ends
        text, found = _round(text)
        total += found
        if not found:
            return text, total


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


LEFT = r"(?<![A-Za-z0-9])"  # a key begins where a word begins: no "risk-…", no middle of a hash
TAIL = (
    r"[A-Za-z0-9_-]*"  # to the end of the word: a form that counts 24 chars would leave a longer key's rest
)
REACH = 400  # chars a form with `back` may extend beyond its hint


def _form(kind: str, hints: str, pattern: str, back: int = 0) -> Form:
    return Form(kind, tuple(hints.split(",")), re.compile(f"(?:{pattern}){TAIL}", re.DOTALL | re.ASCII), back)


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
    _form("OpenRouter key", "sk-or-", LEFT + r"sk-or-[\w-]{20,}"),
    _form("Anthropic key", "sk-ant-", LEFT + r"sk-ant-[\w-]{20,}"),
    _form("OpenAI key", "sk-", LEFT + r"sk-(?:proj|svcacct|admin|service|None)-[\w-]{20,}"),
    _form(
        "OpenAI key",
        "sk-",
        LEFT + r"sk-(?:[a-z0-9]{1,12}-){0,2}(?=[A-Za-z]{0,24}\d)[A-Za-z0-9]{18,}[\w-]*",
    ),
    _form("Google key", "AIza", LEFT + r"AIza[\w-]{35,}"),
    _form("Google key", "AQ.Ab", LEFT + r"AQ\.Ab[\w-]{30,}"),
    _form("Google token", "ya29.,GOCSPX-", LEFT + r"(?:ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,})"),
    _form("Groq key", "gsk_", LEFT + r"gsk_[A-Za-z0-9]{20,}"),
    _form("xAI key", "xai-", LEFT + r"xai-[A-Za-z0-9]{20,}[\w-]*"),
    _form("Hugging Face token", "hf_,api_org_", LEFT + r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _form("Perplexity key", "pplx-", LEFT + r"pplx-[A-Za-z0-9]{30,}"),
    _form("Replicate key", "r8_", LEFT + r"r8_[A-Za-z0-9]{30,}"),
    _form("NVIDIA key", "nvapi-", LEFT + r"nvapi-[\w-]{30,}"),
    _form("Cerebras key", "csk-", LEFT + r"csk-[a-z0-9]{30,}"),
    _form("Fireworks key", "fw_", LEFT + r"fw_[A-Za-z0-9]{20,}"),
    _form("Together key", "tgp_v1_", LEFT + r"tgp_v1_[\w-]{30,}"),
    _form("ElevenLabs key", "sk_", LEFT + r"sk_[0-9a-f]{40,}"),
    _form("Tavily key", "tvly-", LEFT + r"tvly-[\w-]{20,}"),
    _form("Firecrawl key", "fc-", LEFT + r"fc-[0-9a-f]{32}"),
    _form(
        "GitHub token",
        "ghp_,gho_,ghu_,ghs_,ghr_,github_pat_",
        LEFT + r"(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})",
    ),
    _form(
        "GitLab token",
        "glpat-,gldt-,glft-,glsoat-,glrt-,glcbt-,glptt-,gloas-",
        LEFT + r"gl[a-z]{2,4}-[\w-]{20,}",
    ),
    _form("Slack token", "xox,xapp-", LEFT + r"(?:xox[a-z]|xapp)-[\w.-]{10,}"),
    _form("Telegram bot token", ":A", r"(?<!\w)(?:bot)?\d{6,12}:A[\w-]{32,}", back=15),
    _form("Stripe key", "sk_,rk_,pk_", LEFT + r"[srp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _form("Stripe secret", "whsec_", LEFT + r"whsec_[A-Za-z0-9+/=]{20,}"),
    _form("npm token", "npm_", LEFT + r"npm_[A-Za-z0-9]{30,}"),
    _form("Notion token", "ntn_,secret_", LEFT + r"(?:ntn|secret)_[A-Za-z0-9]{40,}"),
    _form("Linear key", "lin_", LEFT + r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    _form("DigitalOcean token", "dop_v1_,doo_v1_,dor_v1_", LEFT + r"do[opr]_v1_[a-f0-9]{40,}"),
    _form("Databricks token", "dapi", LEFT + r"dapi[a-f0-9]{32}[\w-]*"),
    _form("Supabase key", "sbp_,sb_", LEFT + r"(?:sbp_[a-f0-9]{40}|sb_secret_[\w-]{20,})"),
    _form("Shopify token", "shp", LEFT + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    _form("Vault token", "hvs.,hvb.", LEFT + r"hv[sb]\.[\w-]{24,}"),
    _form("1Password token", "ops_eyJ", LEFT + r"ops_eyJ[\w=-]{40,}"),
    _form("password", "://", r"(?<=://)[^\s:/@\[\]\"'<>]*:(?P<value>[^\s/@\[\]\"'<>]+)@(?=[\w\[])", back=-3),
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
            if "aws." in pattern.pattern:  # a name and its value, not a form: `_named` does that
                continue
            whole = re.compile(f"{LEFT}(?:{pattern.pattern}){TAIL}", pattern.flags)
            theirs.append(Form(kind, tuple(hints.split(",")), whole, back))
    return OURS + tuple(theirs)


MARK = re.compile(r"\[redacted: [A-Za-z0-9 ]+\]")


def _round(text: str) -> tuple[str, int]:
    """Take out what can be seen now, and how many that were."""
    spans = [span for form in _forms() for span in _formed(form, text)]
    spans += _named(text)
    if not spans:
        return text, 0
    marks = [m.span() for m in MARK.finditer(text)]
    parts, at, count = [], 0, 0
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if any(start < closed and opened < end for opened, closed in marks):
            continue
        if start >= at:
            parts += [text[at:start], f"[redacted: {kind}]"]
            count += 1
        at = max(at, end)  # of one that overlaps the one before, the rest goes with it
    return "".join(parts) + text[at:], count


def _formed(form: Form, text: str) -> Iterator[Span]:
    for hint in form.hints:
        at = text.find(hint)
        while at >= 0:
            if form.back > 0:
                m = form.pattern.search(text, max(0, at - form.back), at + REACH)
            else:
                m = form.pattern.match(text, at - form.back)
            if m:
                start, end = m.span("value") if "value" in form.pattern.groupindex else m.span()
                yield start, end, form.kind
            at = text.find(hint, max(at + 1, m.end() if m else 0))


NAMES = (
    *(
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "passwort",
        "contraseña",
        "mot de passe",
        "pwd",
        "pw",
        "pin",
    ),
    *("key", "token", "secret", "credential", "credentials", "authorization"),
)
PASSWORDS = frozenset(NAMES[:10])
QUALIFIED = re.compile(
    r"(?:api|access|secret|private|auth|service|account|client|encryption|signing|master|storage|subscription"
    r"|webhook|deploy|app|bot|refresh|bearer|license)[ _.-]?$"
)
ASSIGNED = re.compile(
    r"""["'\])]{0,2}(?:[ ](?:for|to|of|on|at)[ ][^\n:=.,;"']{1,40}?)?\s{0,3}"""
    r"""(?P<sep>:=|=>|={1,2}|:|\b(?:is|was|lautet)\b:?)\s{0,3}(?:(?:bearer|basic)[ ]+)?"""
    r"""(?:(?P<q>["'`])(?P<quoted>(?:(?!(?P=q))[^\n]){4,400})(?P=q)|(?P<bare>[^\s"'`<>]{4,}))""",
    re.IGNORECASE,
)

# What stands where a secret would stand: something in its place, or a word about it.
STAND_IN = re.compile(
    r"\$|%\w+%|[{\[<]|\*{3,}|x{4,}$|\.{3}|[…•]|env[.(\[]|process\.env|os\.environ|getenv|your[-_ ]"
    r"|(?:my|the|some)[-_](?:api|key|token|pass|secret)"
    r"|(?:example|dummy|placeholder|null|none|nil|true|false|undefined|required|optional|string|text|secret"
    r"|passwords?|tokens?|keys?|changed|unchanged|updated|reset|protected|expired|incorrect|invalid|wrong|missing"
    r"|empty|hidden|redacted|stored|saved|correct|needed|here|there|what|that|this|something|nothing|same|still"
    r"|also|only|just|important|weak|strong|long|short|managers?|field|and|with|from|have|will|when|where|which"
    r"|they|your)$",
    re.IGNORECASE,
)
CODE = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+$|[\w.]+\(|(?=\w*_)[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD)[A-Z0-9_]*$"
    r"|[^$]*\$[{(]|https?://|[./~]|[A-Za-z]+/[A-Za-z]+$|\w:\\|\d{4}-\d\d-\d\d|\d{1,2}[:.]\d\d$"
)
HYPHENATED = re.compile(r"[A-Za-z]+(?:[-'’][A-Za-z]+)+$")


def _named(text: str) -> Iterator[Span]:
    """Values that stand behind a name such as `password:` and look like what the name says."""
    lowered = text.replace("İ", "I").lower()  # the one letter whose lower case is longer: places must agree
    for name in NAMES:
        at = lowered.find(name)
        while at >= 0:
            if (m := ASSIGNED.match(text, at + len(name))) and (span := _value(text, lowered, name, at, m)):
                yield span
            at = lowered.find(name, at + 1)


def _value(text: str, lowered: str, name: str, at: int, m: re.Match[str]) -> Span | None:
    """The secret that *m* assigns to *name*, which stands at *at*; None if it is no secret."""
    if m["quoted"]:
        start, end = m.span("quoted")
    else:
        bare = m["bare"] if name in PASSWORDS else re.split(r"[,;&|]", m["bare"])[0]
        start = m.start("bare")
        end = start + len(bare.rstrip(".,;:!?)]}…"))
    value = text[start:end]
    if STAND_IN.match(value) or CODE.match(value):
        return None
    if name in PASSWORDS:
        inside = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "-")
        if inside and len(name) <= 3:  # the "pin" in "shopping: …"
            return None
        said = m["sep"][0] in "iIwWlL"  # "is", not ":"
        alone = bool(m["quoted"]) or not text[end : end + 12].split("\n")[0].strip(" .,;:!)]}\r")
        return (start, end, "password") if _password(value, name, said=said, alone=alone) else None
    header = name == "authorization"
    qualified = header or bool(QUALIFIED.search(lowered[max(0, at - 16) : at]))
    if name == "key" and not qualified and not text.startswith("_KEY", at - 1):
        return None
    if _key(value, qualified) or (header and len(value) >= 12 and not value[1:].islower()):
        return start, end, "token" if header or name == "token" else "key"
    return None


def _password(value: str, name: str, *, said: bool, alone: bool) -> bool:
    """Does *value* look like a password? *alone*: in quotes, or the last on its line."""
    if name == "pin":
        return value.isdigit() and len(value) <= 8
    if said:
        return len(value) >= 5 and not value.isalpha() and not HYPHENATED.match(value)
    return alone or not value.isalpha()


def _key(value: str, qualified: bool) -> bool:
    """Does *value* look like a key? Less is asked where the name says what for: `api_key`, not `token`."""
    if " " in value and not value.lower().startswith(("bearer ", "basic ")):
        return False
    if any(c.isdigit() for c in value) and any(c.isalpha() for c in value):
        return len(value) >= (10 if qualified else 16) and entropy(value) >= (2.5 if qualified else 3.0)
    return len(value) >= 24 and value.isalpha() and not value.islower() and entropy(value) >= 3.5


def entropy(text: str) -> float:
    """Bits a char, after Shannon: English words 2–3, hex below 4, base64 above 4."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
