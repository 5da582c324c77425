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

from .looks import is_stand_in

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


# also "OpenVPN Static key V1", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"; no public key, no certificate
KEY_BLOCK = r"(?:[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?|[\w -]{0,40}(?:[Ss]tatic|[Ss]ecret|SECRET|client|server) (?:key|KEY)[\w ]{0,8})"

OURS = (  # the longer prefix first: an Anthropic key would pass for an OpenAI one
    _form(
        "private key",
        "-----BEGIN ",
        rf"-----BEGIN ({KEY_BLOCK})-----(?:(?!-----).){{16,}}?-----END \1-----"
        rf"|-----BEGIN {KEY_BLOCK}-----(?:(?:\s|\\[nr])*[A-Za-z0-9+/=]{{16,}})+",
        short=True,
    ),
    _form("private key", "Private-Lines: ", r"Private-Lines: \d+(?:\s+[A-Za-z0-9+/=]{8,})+", short=True),
    _form("private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    _form("JSON web token", "eyJ", r"(?<![\w.-])eyJ[\w-]{8,}\.(?:eyJ[\w-]{8,}(?:\.[\w-]*)?|[\w-]*(?:\.[\w-]*){0,2}\.[\w-]{16,})"),
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
    _form("Stripe key", "sk_,rk_", KEY_START + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
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
    _form("Brave key", "BSA", KEY_START + r"BSA(?=[A-Za-z_-]{0,24}\d)[\w-]{24,}"),
    _form("crates.io token", "cio", KEY_START + r"cio(?=[A-Za-z]{0,24}\d)[A-Za-z0-9]{32}"),
    _form("NuGet key", "oy2", KEY_START + r"oy2[a-z0-9]{43}"),
    _form("Intercom token", "dG9rO", KEY_START + r"dG9rO[\w+/=]{30,}"),
    _form("token", "SSWS ,GenieKey ,ApiKey ", r"(?:SSWS|GenieKey|ApiKey) (?P<value>(?=[A-Za-z_-]{0,60}\d)[\w+/=.-]{16,})"),
    _form("Mailgun key", "key-,pubkey-", KEY_START + r"(?:pub)?key-[0-9a-f]{32}"),
    _form("Terraform token", ".atlasv1.", r"(?<![\w.])\w{10,20}\.atlasv1\.[\w=-]{40,}", back=21),
    _form("Fly token", "fm1r_,fm1a_,fm2_,fo1_", KEY_START + r"(?:fm1r|fm1a|fm2|fo1)_[\w+/=-]{30,}(?:,fm\d\w?_[\w+/=-]{30,}){0,4}"),
    _form("New Relic key", "NRAK-,NRII-,NRAA-,NRRA-,NRSP-", KEY_START + r"NR(?:AK|II|AA|RA|SP)-[\w-]{24,}"),
    _form("Atlassian token", "ATATT,ATCTT,ATSTT,ATBB,ATOA", KEY_START + r"AT(?:[ACS]TT|BB|OA)[\w=-]{24,}"),
    _form("Airtable token", "pat", KEY_START + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}"),
    _form("Google token", "1//0", r"(?<![\w/:])1//0[\w-]{40,}"),
    _form("Facebook token", "EAA", KEY_START + r"EAA[A-Za-z0-9]{40,}"),
    _form("Dropbox token", "sl.", KEY_START + r"sl\.(?:u\.)?[\w-]{60,}"),
    _form("PlanetScale token", "pscale_", KEY_START + r"pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}"),
    _form("Doppler token", "dp.", KEY_START + r"dp\.(?:ct|pt|st|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{36,}"),
    _form("Grafana token", "glc_,glsa_", KEY_START + r"(?:glc_eyJ[\w+/=-]{30,}|glsa_[A-Za-z0-9]{30,}_[0-9a-f]{8})"),
    _form("Sentry token", "sntrys_,sntryu_,sntrya_", KEY_START + r"sntry[a-z]_[\w+/=-]{30,}"),
    _form("Mapbox token", "sk.eyJ", KEY_START + r"sk\.eyJ[\w-]{20,}\.[\w-]{10,}"),
    _form("HubSpot token", "pat-na,pat-eu", KEY_START + r"pat-[a-z]{2}\d-[0-9a-f-]{30,}"),
    _form("Brevo key", "xkeysib-,xsmtpsib-", KEY_START + r"x(?:key|smtp)sib-[0-9a-f]{40,}[\w-]*"),
    _form("Plaid token", "access-", KEY_START + r"access-(?:sandbox|development|production)-[0-9a-f-]{30,}"),
    _form("Square token", "EAAA,sq0", KEY_START + r"(?:EAAA[\w-]{50,}|sq0[a-z]{3}-[\w-]{20,})"),
    _form("Twitch token", "oauth:", r"(?<!\w)oauth:[a-z0-9]{28,}"),
    _form("Docker token", "dckr_pat_,dckr_oat_", KEY_START + r"dckr_[po]at_[\w-]{20,}"),
    _form("Dynatrace token", "dt0c01.,dt0s", KEY_START + r"dt0[a-z]\d\d\.[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    _form("Azure secret", "8Q~", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{30,40}", back=3),
    _form("Discord token", "mfa.", KEY_START + r"mfa\.[\w-]{60,}"),
    _form("Matrix token", "syt_", KEY_START + r"syt_[\w=+/-]{4,60}_[A-Za-z0-9]{16,}_\w{4,}"),
    _form("Tailscale key", "tskey-", KEY_START + r"tskey-[a-z]{2,12}-[A-Za-z0-9-]{14,}"),
    _form("Pulumi token", "pul-", KEY_START + r"pul-[0-9a-f]{32,}"),
    _form("Postman key", "PMAK-", KEY_START + r"PMAK-[0-9a-f]{20,}-[0-9a-f]{30,}"),
    _form("Figma token", "figd_,figu_,figdr_", KEY_START + r"fig(?:d|u|dr)_[\w-]{30,}"),
    _form("Contentful token", "CFPAT-", KEY_START + r"CFPAT-[\w-]{40,}"),
    _form("LaunchDarkly key", "sdk-,mob-,api-", KEY_START + r"(?:sdk|mob|api)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    _form("Artifactory key", "AKCp,cmVmdGtu", KEY_START + r"(?:AKCp|cmVmdGtu)[A-Za-z0-9]{50,}"),
    _form("Alibaba key", "LTAI", KEY_START + r"LTAI[A-Za-z0-9]{16,}"),
    _form("Tencent key", "AKID", KEY_START + r"AKID[A-Za-z0-9]{32,}"),
    _form("Yandex token", "AQVN,t1.,y0_", KEY_START + r"(?:AQVN[\w-]{35,}|t1\.[\w=-]{80,}|y0_[\w-]{50,})"),
    _form("Resend key", "re_", KEY_START + r"re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{16,}"),
    _form("Razorpay key", "rzp_", KEY_START + r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    _form("Mollie key", "live_,test_", KEY_START + r"(?:live|test)_(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{26,}"),
    _form("Asana token", "1/", r"(?<![\w/.])[012]/\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32}"),
    _form("PayPal token", "access_token$,A21AA", KEY_START + r"(?:access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}|A21AA[\w-]{60,})"),
    _form("extended private key", "xprv,yprv,zprv,tprv", KEY_START + r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{80,}"),
    _form("Nostr key", "nsec1,ncryptsec1", KEY_START + r"n(?:crypt)?sec1[02-9ac-hj-np-z]{50,}"),
    _form("Bitcoin key", "5H,5J,5K,Kw,Kx,Ky,Kz,L1,L2,L3,L4,L5", r"(?<![\w/+=.-])(?:5[HJK][1-9A-HJ-NP-Za-km-z]{49}|[KL][1-9A-HJ-NP-Za-km-z]{51})(?![\w/+=-])"),
    _form("webhook", "/services/,/webhook,/hook", r"/(?:services/T\w{6,12}/B\w{6,12}|webhooks?/\d{15,20})/[\w-]{20,}"),
    _form("password", "://",
        r"(?<=://)[^\s:/\[\]\"'<>]*:(?P<value>[^\s/\[\]\"'<>]+)@(?=[\w\[])",
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
)  # fmt: skip

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


def formed_secrets(text: str, present: set[str], longest: int) -> Iterator[FormSpan]:
    """Secrets in *text*, whose longest word has *longest* chars, that their form gives away."""
    for hint, form in _hinted()[longest >= SHORTEST]:
        if hint.lower() in present:
            yield from _formed(form, hint, text)


def form_hints() -> set[str]:
    return {hint.lower() for hint, _ in _hinted()[True]}


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


EXAMPLE = re.compile(r"@(?:[A-Z]{3,}\b|localhost|127\.|[\w.-]{0,60}example\.)")


def _formed(form: Form, hint: str, text: str) -> Iterator[FormSpan]:
    at = text.find(hint)
    while at >= 0:
        if form.back > 0:
            m = form.pattern.search(text, max(0, at - form.back), at + REACH)
        else:
            m = form.pattern.match(text, at - form.back)
        if m:
            start, end = m.span("value") if "value" in form.pattern.groupindex else m.span()
            if not (is_stand_in(text[start:end]) and EXAMPLE.match(text, end)) and not PLACED_THERE.search(
                text, start, end
            ):
                yield start, end, form.kind
        at = text.find(hint, max(at + 1, m.end() if m else 0))


PLACED_THERE = re.compile(r"[-_]?your[-_]|[-_]here\b|placeholder|x{6,}", re.I)  # sk-your-key-here
