"""
Secrets that are known by where they stand: in commands, files of credentials, addresses, headers, tables, lists.

Not here: what a key looks like by itself (redaction.py), and what stands behind a name (passwords.py). One rule: each
place has an expression with an end, so that no text is read twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .commands import COMMANDS, SECRET_VALUE
from .drawn import LONG, drawn_secrets
from .hints import rule, rules_for
from .looks import is_random, is_stand_in
from .printed import SHOWN_HINTS, key_bytes, shown_secrets

PlacedSpan = tuple[int, int, str]  # start, end, kind
SECRET_PLACES = COMMANDS + tuple(
    rule(*row)
    for row in (
        # commands and their options
        ("echo|printf", "password", r"\b(?:echo|printf)\s+(?:-\w+\s+)?(?P<q>[\"'])?(?P<value>(?(q)[^\n\"'\\|]{3,200}|[^\s\"'\\|;&<>$(){}]{3,200}))(?:\\n)?[\"']?\s*\|\s*(?:sudo\s+)?"
         r"(?:sudo\s(?:[^\n|]{0,30}\s)?-\w{0,3}S|su\b|passwd|cryptsetup|docker|podman|helm|gh\s|glab\s|gpg|kinit|ssh-add|npx\s|wrangler|vercel|flyctl|fly\s|heroku|firebase|kubeseal|vncpasswd|smbpasswd|pass\s|secret-tool|keyctl|ecryptfs|systemd-ask|zfs|bw\s|op\s)", 0),
        ("=", "key", r"(?m)(?:^|[\s;])(?![A-Z0-9_]*(?:SHA|HASH|COMMIT|REV|DIGEST|MD5|ID|VERSION|TAG|REF|SUM|BUILD|IMAGE|HEAD|TRACE|SPAN|REQUEST|UUID|CACHE|PUB)[A-Z0-9_]*=)[A-Z][A-Z0-9_]{2,40}=[\"']?(?P<value>[0-9a-f]{32,64})[\"']?(?![\w-])", 0),
        # what is written into a file that is named after a secret, or said to be one
        ("echo|printf & >", "password", r"\b(?:echo|printf)\s+(?:-\w+\s+)?(?:[\"']?%s(?:\\n)?[\"']?\s+)?(?P<q>[\"'])?(?=[^\s]{0,80}[\d!#%&*@^+_.-])(?P<value>(?(q)[^\n\"'$\\]{5,200}|[^\s\"'|;&<>$(){}\\]{5,200}))(?:\\n)?[\"']?\s*>{1,2}\s*[\"']?[^\s\"'|;&]{0,100}(?:pass(?:wd|word|phrase|code)?|secrets?|tokens?|cred\w{0,10}|api[_-]?key|private[_-]?key|master\.key|unlock)(?![a-z])", 0),
        ("add-mask|setsecret", "secret", r"(?:::add-mask::|\btask\.setsecret[^\]\n]{0,40}\]|\bsetSecret\([\"'])(?P<value>[^\s\"']{4,400})", 0),
        ("passcmd|passwordeval|password_command|_cmd", "password", r"\b(?:PassCmd|passwordeval|pass(?:word)?_?c(?:omman|m)d)\b[\s=:]{1,4}[\"']?(?:/bin/)?(?:echo|printf)\s+[\"'\\]{0,2}(?P<value>[^\s\"'|;$\\]{4,100})", re.I),
        ("chpasswd", "password", r"(?m)\bchpasswd:[ \t]*\n(?:[ \t][^\n]{0,200}\n){0,20}?[ \t]+(?:- )?[\w.-]{1,40}:(?P<value>[^\s\[|>&*]\S{2,100})[ \t]*$", 0),
        ("<<<", "password", r"\b(?:passwd|sudo\s(?:[^\n|]{0,30}\s)?-\w{0,3}S|cryptsetup|login|gpg|kinit|vncpasswd|chpasswd)\b[^\n|;]{0,100}<<<\s{0,3}(?:\$')?(?:[\"']?[\w.-]{1,40}:(?=\S))?" + SECRET_VALUE, 0),
        ("chpasswd", "password", r"[\"']?[\w.-]{1,40}:(?P<value>[^\s\"':]{3,100})[\"']?\s*\|\s*(?:sudo\s+)?chpasswd", 0),
        ("pass:", "password", r"\s-?-pass(?:in|out)?[ =]pass:" + SECRET_VALUE, 0),
        ("--", "password", r"--(?<!\S--)(?:[a-z0-9]{1,12}-){0,3}(?:password|passwd|passphrase|pass|passcode|pw|pwd|pin|token|secret|api-?key|auth-?key|private-?key|access-?key|secret-?key|key-?secret|authtoken|credentials?)(?:=|\s{1,3})(?!-)" + SECRET_VALUE, 0),
        ("pass|pwd|token|secret|key & -", "password", r"-(?<!\S-)(?:[a-z]{0,8}(?:storepass|keypass|passwd|password|passphrase|apikey|api-key|token|secret)|pass|pwd|AccessToken|Password|ApiKey)(?:=|:|\s{1,3})(?!-)" + SECRET_VALUE, 0),
        ("secret", "secret", r"\bsecrets?[\s:]+(?:set|put|add|create|import|versions\s+add|variable)\b[^\n|;]{0,120}?(?:\s(?:--body|-b|--value|--data|--secret-string|--plaintext-value)[ =]+|\s[A-Z][A-Z0-9_]{2,60}=)" + SECRET_VALUE, 0),
        ("from-literal", "secret", r"--from-literal[ =][\w.-]{1,60}=" + SECRET_VALUE, 0),
        ("securestring", "password", r"\bConvertTo-SecureString\s+(?:-String\s+)?[\"'](?P<value>[^\"'\n$]{3,200})", re.I),
        ("identified", "password", r"\bidentified\s+(?:with\s+\S{1,40}\s+)?by\s+(?:password\s+)?[\"'](?P<value>[^\"'\n]{3,200})", re.I),
        ("password & '", "password", r"\bpassword\s{1,3}(?:=\s{0,3})?'(?P<value>[^'\n]{3,200})'", re.I),
        ("requirepass|masterauth", "password", r"(?m)^\s{0,4}(?:requirepass|masterauth)\s+" + SECRET_VALUE, 0),
        ("sqlplus|thin:|sqlldr|expdp|impdp|rman", "password", r"(?:\b(?:sqlplus|sqlldr|expdp|impdp|rman)\s+(?:-\w{1,3}\s+){0,2}|thin:)(?:userid=)?[\"']?\w{1,40}/(?P<value>[^\s@/\"']{3,100})@", re.I),
        ("send", "password", r"\bsend\s+(?:--\s+)?\"(?P<value>[^\"\n\\$]{4,100})\\[rn]\"", 0),
        (" login| auth|token", "token", r"\b[\w-]{2,20}\s+(?:login|auth|authtoken|set-token|add-authtoken|authenticate|authorize(?:-account)?)\s+(?:-{1,2}[\w-]{1,20}[ =])?(?:[\w.@-]{3,60}\s+)?(?P<value>(?=\S{0,60}\d)[\w.+/=-]{16,200})(?![\w.]*[@:/])", 0),
        ("push|publish|deploy|upload", "key", r"\b(?:push|publish|deploy|upload)\b[^\n|;]{0,200}?\s-[kKtT][ =](?P<value>(?=\S{0,60}\d)[\w-]{24,200})", 0),
        ("securestring", "secret", r"SecureString\\{0,7}\"[^\n]{0,60}?Value\\{0,7}\"\s{0,3}:\s{0,3}\\{0,7}\"(?P<value>[^\"\\\n]{4,400})", 0),
        # calls with a name and a password
        (
            "auth|login|credential|signin|connect",
            "password",
            r"\b(?:log_?in|sign_?in|authenticate|auth|\w{0,10}basic_?auth|\w{0,12}Credentials?|PasswordAuthentication)\(\s{0,3}(?:\w{1,20}\s?[=:]\s?)?\\?[\"'][^\"'\n\\]{1,80}\\?[\"']\s{0,3},\s{0,3}(?:\w{1,20}\s?[=:]\s?)?\\?(?P<q>[\"'])(?P<value>[^\"'\n\\]{3,200})\\?[\"']\s{0,3}[,)]",
            re.I,
        ),
        ("auth", "password", r"\bauth[\"']?\s{0,3}[=:]\s{0,3}[(\[]\s{0,3}[\"'][^\"'\n]{1,80}[\"']\s{0,3},\s{0,3}[\"'](?P<value>[^\"'\n]{3,200})[\"']", 0),
        # files of credentials
        ("pass|pw|contraseña|senha|mdp", "password", r"\b(?:user(?:name)?|login|account|admin|benutzer(?:name)?|usuario|utilisateur|utente|e-?mail|konto|nutzer)[ \t:=]{1,3}(?![^\s,]{0,60}[;{}])[^\s,]{1,60}[\s,;/]{1,9}(?:and\s|und\s|mit\s|with\s)?(?:pass(?:word|wd|wort)?|pw|pwd|contraseña|mot de passe|senha|mdp)[ \t:=]{1,3}(?![A-Z]\w{2,30}(?:String|Str|Type|Field)\b)(?P<value>[^\s,]{4,200})", re.I),
        ("$", "password hash", r"\$(?:apr1|[156y7]|2[abxy]?|P|H|S|argon2\w{1,2}|scrypt|pbkdf2[\w-]{0,10}|sha1|md5)\$[./\w$=,+-]{20,300}", 0),
        ("{s|{p|{c", "password hash", r"\{(?:SSHA|SHA|PBKDF2|CRYPT)\d{0,3}\}[A-Za-z0-9+/$.]{24,200}={0,2}", 0),
        (":", "password", r"(?m)(?:^|(?<=[\"']))[^\s:#\"']{1,100}:(?:\d{4,5}|\*):[^\s:]{1,60}:[^\s:]{1,60}:(?P<value>[^\s:\"']{4,200})(?=$|[\"'])", 0),
        ("*", "password", r"(?m)^[ \t]{0,4}[\"']?[\w.@*-]{1,60}[\"']?[ \t]+\*[ \t]+[\"']?(?P<value>[^\s\"'*#|-][^\s\"'*]{4,100})[\"']?[ \t]+\*[ \t]*$", 0),
        ("psk|xauth|eap", "password", r":\s{0,3}(?:PSK|XAUTH|EAP|NTLM)\s{1,3}[\"'](?P<value>[^\"'\n]{4,200})[\"']", 0),
        ("secret |password |-key |-string ", "password", r"(?m)^\s{0,8}(?:[\w-]{1,30}\s){0,6}?(?:secret|password|key-string|key|pre-shared-key)\s[05789]\s(?P<value>[^\s]{6,200})", 0),
        ("snmp-server community", "password", r"\bsnmp-server\s+community\s+(?P<value>\S{4,80})", 0),
        ('"auth', "token", r'\\?"auth\\?"\s{0,3}:\s{0,3}\\?"(?P<value>[A-Za-z0-9+/=]{12,400})\\?"', 0),
        ("_auth", "token", r"\b_auth\s{0,3}=\s{0,3}[\"']?(?P<value>[A-Za-z0-9+/=]{8,400})", 0),
        ("wifi:", "password", r"\bWIFI:[^\n]{0,100}?[:;]P:(?P<value>(?:\\.|[^;\\\n]){4,64});", re.I),
        ("-key-data|client-key", "private key", r"\b(?:client-key-data|tls\.key|private[_-]key[\w-]{0,12})[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<value>[A-Za-z0-9+/=_-]{40,8000})", re.I),
        (
            "sid|sess|csrf|xsrf|remember|auth",
            "cookie",
            r"(?<![\w.-])(?:sid|sessionid|session_token|connect\.sid|phpsessid|jsessionid|asp\.net_sessionid|laravel_session|xsrf-token|csrftoken|_csrf|remember_\w{1,20}|auth|auth_token|session|__[\w.-]{3,40}|\w{1,20}_sess(?:ion)?|li_at|_gh_sess|user_session)"
            r"\\?[\"']?(?:\s{0,3}[:=]\s{0,3}|\\?[\"'\s,]{1,8}\\?[\"']?value\\?[\"']?\s{0,3}[:=]\s{0,3})\\?[\"']?(?P<value>(?=[\w%.+/=-]{0,100}\d)(?![0-9a-f]{8}-)[\w%.+/=-]{20,3000})",
            re.I,
        ),
        ("true\t|false\t", "cookie", r"\t(?:TRUE|FALSE)\t\d{1,12}\t[\w.$%-]{1,80}\t(?P<value>(?=\S{0,100}\d)\S{12,3000})", 0),
        ("samlresponse|client_assertion|id_token_hint|code_verifier|assertion=", "token", r"\b(?:SAMLResponse|client_assertion|id_token_hint|code_verifier|assertion)(?:=|\"?\s{0,3}[:=]\s{0,3}\"|\"\s+value=\")(?P<value>[\w+/=%.~-]{30,20000})", re.I),
        # keys in JSON that their neighbours tell
        ('"kty"', "private key", r'"(?:d|p|q|dp|dq|qi|k)"\s{0,3}:\s{0,3}"(?P<value>[\w-]{20,800})"', 0),
        ('jwt|signing|hmac|crypt|auth & "key"', "key", r'\b(?:jwt|signing|hmac|encryption|crypto?|auth\w{0,10})[\w-]{0,20}["\']?\s{0,3}[:=]\s{0,3}\{[^{}]{0,300}?["\']key["\']\s{0,3}:\s{0,3}["\'](?P<value>[\w+/=.-]{16,400})["\']', re.I),
        ('"username"', "token", r'"username"\s{0,3}:\s{0,3}"(?P<value>(?=[^"]{0,200}\d)(?=[^"]{0,200}[A-Z])(?=[^"]{0,200}[a-z])[\w-]{32,128})"', 0),
        ("accounts|privatekey", "private key", r"\b(?:accounts|privateKeys?)\b[\"']?\s{0,3}[:=]\s{0,3}\[[^\]]{0,400}?[\"'](?:0x)?(?P<value>[0-9a-fA-F]{64})[\"']", re.I),
        # addresses
        ("hooks/catch|hook/catch", "webhook", r"/hooks?/catch/(?:v\d/)?\d{3,}/(?P<value>[\w/-]{5,60})", 0),
        (
            "=",
            "token",
            r"[?&;](?:amp;)?(?:[\w.-]{0,30}[_.-])?(?:sig|signature|token|key|apikey|secret|password|passwd|pwd|pass|auth|code|ticket|hmac|jwt|session|sid|credential|pw|otp|hash|h|t|access|invite|appid|appkey|app_key|authkey|userkey|access_key|client_secret|accesskey|api)="
            r"(?=[^\s&#\"'<>]{0,60}\d)(?P<value>[^\s&#\"'<>\\)\]]{10,1000})",
            re.I,
        ),
        ("pass=|pw=|pwd=|password=|passwd=|passwort=", "password", r"[?&\"'](?:[\w.-]{0,30}[_.-])?(?:password|passwd|passwort|pwd|pass|pw)=(?P<value>[^\s&#\"'<>\\)\]$]{4,200})", re.I),
        ("infura|alchemy|quiknode|ankr|moralis|getblock|chainstack", "key", r"https?://[^\s/]{0,60}(?:infura|alchemy|quiknode|ankr|moralis|getblock|chainstack)[^\s\"'<>]{0,80}?/(?P<value>(?=[A-Za-z_-]{0,40}\d)[\w-]{24,80})", re.I),
        ("otpauth", "key", r"otpauth(?:-migration)?://[^\s\"'<>]{1,300}?[?&](?:secret|data)=(?P<value>[\w%+/=-]{8,2000})", re.I),
        ("http & /key/|token|secret|api|reset|magic|verify|activate|confirm|invite|join|login|signin|auth|private|feed|ical", "token", r"https?://[^\s\"'`<>]{3,120}?/(?:key|apikey|api_key|token|secret|access_token|reset(?:[_-]?password)?|password[_-]?reset|magic(?:[_-]?link)?|verify(?:[_-]?email)?|activate|confirm|invite|join|login|signin|auth|private|feed|ical)[/-](?P<value>(?=[A-Za-z_-]{0,60}\d)(?![0-9a-f]{8}-)[\w.~-]{16,300})", re.I),
        ("://", "token", r"(?<=://)(?=[A-Za-z_-]{0,40}\d)(?P<value>[\w-]{20,200}(?::[\w-]{0,200})?)@", 0),
        (
            "@",
            "password",
            r"(?<![\w:/.@=-])(?!mailto|to:|from:|cc:|bcc:|sip|xmpp|acct|e?-?mail)[\w.-]{2,40}:(?=[^\s:@/]{0,60}[^A-Za-z\s])(?P<value>[^\s:@/\"'<>]{5,60})@(?!sha\d)[\w-]{2,60}(?:\.[\w.-]{2,60}|:\d{2,5})",
            re.I,
        ),
    )
)  # fmt: skip


def placed_secrets(text: str, present: set[str], longest: int) -> Iterator[PlacedSpan]:
    """Where secrets stand in *text* by their place; of the hints these are *present*, its longest word has *longest* chars."""
    for place in rules_for(SECRET_PLACES, present):
        for m in place.pattern.finditer(text):
            named = "value" in place.pattern.groupindex
            start, end = m.span("value") if named else m.span()
            if named:
                end = start + len(text[start:end].rstrip(".,;)"))
            if not (named and is_stand_in(text[start:end])):
                yield start, end, place.kind
    if "hook" in present:
        yield from hook_secrets(text)
    if "cookie" in present:
        yield from cookie_secrets(text)
    if "-----END " in text:
        yield from key_ends(text)
    if longest >= LONG:
        yield from drawn_secrets(text)
    if not SHOWN_HINTS.isdisjoint(present) and "\n" in text:
        yield from shown_secrets(text)
    if text.count(",") > 62:
        yield from key_bytes(text)


# --- addresses and headers

HOOK = re.compile(r"https?://[^\s\"'`<>/]{1,200}/[^\s\"'`<>\\]{1,1000}", re.I)


def hook_secrets(text: str) -> Iterator[PlacedSpan]:
    """In an address with a hook in it, all from the first part on that was drawn."""
    for m in HOOK.finditer(text):
        if "hook" not in m[0].lower():
            continue
        at = m.start() + 8
        for part in re.finditer(r"[\w.%@-]+", m[0][8:], re.ASCII):
            if len(part[0]) >= 16 and part.start() > 0 and is_random(part[0]):
                address = re.match(r"[!-~]+", m[0])
                end = len(address[0].rstrip(".,;:!?)]}\\")) if address else 0
                yield at + part.start(), max(at + part.end(), m.start() + end), "webhook"
                break


COOKIE = re.compile(r"\b(?:set-)?cookie[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<pairs>[^\n]{1,4000})", re.I)
PAIR = re.compile(r"(?<![^\s;\"'])(?P<name>[\w.$-]{1,60})=(?P<value>[^\s;,\"']{8,3000})")


def cookie_secrets(text: str) -> Iterator[PlacedSpan]:
    for m in COOKIE.finditer(text):
        for pair in PAIR.finditer(text, m.start("pairs"), m.end("pairs")):
            if is_random(pair["value"]):
                yield *pair.span("value"), "cookie"


# --- what is left of keys

KEY_LINE = re.compile(r"[>\s]*[A-Za-z0-9+/=]{8,100}\\?\s*")


def key_ends(text: str) -> Iterator[PlacedSpan]:
    """The lines of a private key above its end, where its beginning is missing."""
    at = text.find("-----END ")
    while at >= 0:
        end = text.find("PRIVATE KEY", at, at + 40)
        if end >= 0:
            start = at
            while start > 0:
                begin = text.rfind("\n", 0, start - 1) + 1
                if start - begin > 200 or not KEY_LINE.fullmatch(text, begin, start):
                    break
                start = begin
            if start < at:
                yield start, at, "private key"
        at = text.find("-----END ", at + 9)
