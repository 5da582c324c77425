"""
Secrets that a person tells in a sentence: "the password on the pi was set to …", "log in with anna / …", "the gate's code is …".

Not here: `password: …` and "the password is …" (passwords.py). One rule: in a sentence only what looks drawn is a password, for
people speak of passwords more often than they tell them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..text.characters import UNSPACED_RUN
from .drawn import is_shuffled
from .hints import Found, rule, rules_by_line
from .looks import DIGIT, TYPED, is_random, looks_drawn
from .names import PASSWORDS

ToldSpan = tuple[int, int, str]  # start, end, kind
WITHIN = 80  # chars behind its name in which a password is told

WORD = re.compile(r"[^\s\"'`“”„<>「」『』（）()]{4,80}")
OPENS = re.compile(r"[\"'`“„「『(]\s?$")
TELLS = re.compile(
    r"(?:[:=→]|\b(?:là|ay|er|sind|are|is|was|now|to|as|be|use|with|try|it's|its|ist|war|jetzt|lautet|heißt|auf|nutze?|nimm|neu|est|es|é|è|ora|ahora|maintenant"
    r"|agora|är|er|jest|je|teraz|to|это|е|це|теперь|adalah|ialah|wordt|nu|nueva|new|nuova|nouveau|este|on|yra|ir|yw|da|është|είναι|هو|هي|היא|הוא|คือ|ni))[\s:]{0,3}$",
    re.I,
)

BELOW = re.compile(r"\s{1,40}(?:```\w{0,10}\n\s{0,20})?`?(?P<value>[^\s`]{6,64})`?[ \t]*(?:\n|\Z)")
ENDS = re.compile(
    r"[.,;:!?)…\"'`”“」』]{0,9}(?:\s{0,3}(?:\n|\Z|[|–—(]|입니다|이야|예요|です|だよ|だ|。)|[.!?;,]\s)"
)


def is_mangled(value: str) -> bool:
    """Whether *value* is as nobody writes but in a password: digits inside a word (but no "WPA2-PSK"), signs and digits."""
    return len(value) >= 8 and bool(
        INNER_DIGITS.search(value) or (SIGNS.search(value) and DIGIT.search(value))
    )


INNER_DIGITS = re.compile(r"[A-Za-z][!#$%^&*?@+=_~|]?\d{1,8}[!#$%^&*?@+=_~|]?[A-Za-z]|[a-z]-\d{2,8}-[A-Za-z]")
SIGNS = re.compile(r"[!#$%^&*?@+=~|]")


def password_told(text: str, behind: int) -> tuple[int, int] | None:
    """Where the password stands that is told in the sentence on from the name that ends at *behind*."""
    line_end = text.find("\n", behind, behind + WITHIN)
    last = line_end if line_end >= 0 else min(len(text), behind + WITHIN)
    for m in WORD.finditer(text, behind, last + 80 if line_end < 0 else last):
        if m.start() >= last:
            break
        start, end = m.span()
        if UNSPACED_RUN.search(m[0]):
            if not (typed := TYPED.search(text, start, end)):
                continue
            start, end = typed.span()
        value = text[start:end].rstrip(".,;:!?)]}…")
        told = start == behind or TELLS.search(text, behind, start) or OPENS.search(text, behind, start)
        told = told or ENDS.match(text, start + len(value)) or UNSPACED_RUN.search(text, end, end + 3)
        if looks_drawn(value) and (told or is_mangled(value)):
            return start, start + len(value)
        if re.match(r"[.!?](?:\s|$)", text[start + len(value) : end + 1]):
            return None  # the sentence ends
    below = BELOW.match(text, line_end) if line_end >= 0 and TELLS.search(text, behind, line_end) else None
    return (
        below.span("value")
        if below and (looks_drawn(below["value"]) or HEXADECIMAL.fullmatch(below["value"]))
        else None
    )


HEXADECIMAL = re.compile(r"[0-9a-f]{20,64}")
DIGIT_WORD = r"(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|null|eins|zwei|drei|vier|fünf|sechs|sieben|acht|neun)"
SAID = r"[\"')]{0,2}(?:\s(?:for|to|of|at|on|für|zum|zur|am|im|de|del|della|do|от|pour|voor)\s[^\n.:=;\d]{1,40}?)?\s{0,3}(?:[:=]|\b(?:is|was|ist|lautet|est|es|è|é|jest|är|er|это|now|jetzt|are|sind)\b[:\s]|\s(?=[A-Z]?\d)|[は是为為])[\s\"'`]{0,3}"
DOORS = (
    r"(?:door|gate|alarm|entry|entrance|access|garage|lockbox|lock|key ?box|safe|vault|building|front door|intercom|verification|security|login|log-in|sign-?in|confirmation|sms|otp|2fa|mfa|two-factor|one-time|authentication|auth|unlock|phone|sim|card"
    r"|tür|haustür|wohnungstür|tor|garagen|safe|tresor|zugangs|zutritts|schlüsselbox|schlüsselkasten|freischalt|entsperr|sperr|bestätigungs|sicherheits|einmal|alarmanlagen|eingangs|karten|deur|poort|toegangs|verificatie|beveiligings|kluis|dörr|dør|port|larm|keypad|locker|shed|gym|parking|lobby|elevator|lift|(?:hof|garten|schiebe|roll|einfahrts|keller|neben)(?:tor|tür)|fahrradschloss|zahlenschloss|schloss|spind)"
)

ONE_SAID = (
    r"(?:(?:capital|upper ?case|lower ?case|small|big|gro(?:ß|ss)es?|kleines?)\s)?(?:[A-Za-z0-9](?![\w'’])|exclamation(?: mark| point)?|question mark|dollar(?: sign)?|hash(?:tag)?|pound sign|at(?: sign)?|dot|period|dash"
    rf"|hyphen|minus|underscore|star|asterisk|plus|percent|ampersand|slash|punkt|strich|bindestrich|ausrufezeichen|raute|{DIGIT_WORD})"
)
SPELLED = rf"\b(?:password|passcode|passwort|pin|pw|code)\b[^\n.]{{0,30}}?(?:\b(?:is|ist)\b|:)[\s:]{{1,3}}(?P<value>{ONE_SAID}(?:[ ,-]{{1,2}}{ONE_SAID}){{4,30}})(?!\w)"

CODE = r"(?:pass|pin[ -]?)?(?:code|kode|pin|combination|combo|kombination|keypad)s?"
# a number that ends what is said of a code, and is no year: "the alarm code has changed, it's 9052 btw"
CODE_LATER = (
    r"\b[^\n.!?;\d]{0,40}?[\s:,=(](?P<value>(?!(?:19|20)\d\d(?!\d))[#*]?\d{4,8}[#*]?|\d{3}[ -]\d{3})(?![\w-]|[.,:/]\d)"
    r"(?=\s{0,2}(?:[.,;!?)\"']|\n|\Z)|\s(?:btw|and|und|et|y|then|dann|but|aber|please|bitte|so|or|oder|thanks|danke)\b)"
)
NO_CODE = re.compile(  # before it
    r"\b(?:error|status|exit|zip|postal|area|country|dial\w*|promo\w*|discount|coupon|gutschein|rabatt|qr|source|fehler|http|response|order|product|artik\w+|colou?r|bar)[ -]?$",
    re.I,
)

TALK = tuple(
    rule(*row)
    for row in (
        ("@ & 0-9", "password", r"[\w.+-]{1,64}@[\w-]{1,60}\.[\w.]{2,40}[\"']?(?:\s?(?:[/|,;]|->|→|–|—)\s?|:\s|\s(?:and|und|with|mit|pw|pass)\s|[ \t]{1,3}|\n)[\"'`]?(?=\S{0,30}[A-Z!#$%^&*?+=~_-])(?P<value>[^\s@\"'`]{7,64})[\"'`]?(?=[ \t]*(?:\n|\Z|[.,;]\s))", 0),
        ("pass|pin|pw", "password", r"(?<!\S)(?=\S{0,60}\d)(?P<value>[^\s,;:]{6,80})\s+(?:as|is|for|als|como|comme|ist|est|es|è|é)\s+(?:the|my|your|our|a|an|das|mein|dein|unser|la|le|mon|mi|o|a|minha)?\s{0,2}(?:new\s+|neues?\s+)?(?:[\w-]{1,12}\s+)?(?:password|passcode|passphrase|pin|passwort|kennwort|pw|contraseña|mot de passe|senha)\b", re.I),
        (
            "zugang|cred|log|identif|accesso|acces|acceso|sign|einlogg|anmeld|konto|account",
            "password",
            r"\b(?:zugangsdaten|anmeldedaten|login-?daten|credentials?|creds|logins?|log[ -]?in|identifiants|credenciales|credenziali|accesso|acceso|accès|zugang|account|konto|konta|inloggegevens)\b[^\n:=]{0,30}?(?:[:=]\s{0,3}[^\s/|,;]{1,60}\s{0,2}(?:[/|,;]|\band\b|\bund\b|\bwith\b|\bmit\b|:)|\b(?:is|are|ist|sind|est|es|è|é)\s[^\s/|:]{2,60}\s?[/|:])\s{0,2}(?=\S{0,60}\d)(?P<value>[^\s/|,;]{5,80})",
            re.I,
        ),
        (
            "log|sign|einlogg|anmeld|connect|verbind|access",
            "password",
            r"\b(?:log(?:ged)?|sign(?:ed)?|einlogg\w{0,4}|anmeld\w{0,4}|connect(?:e[rz]?)?|logg\w{0,3}|access|entra|accedi)\b[^\n.:]{0,60}?\b(?:with|mit|as|using|avec|con|com|met|med|als|by)\b[\s:]{1,3}(?:the\s|user\s)?[\"'`]?[^\s/|,;\"'`]{1,60}[\"'`]?\s{0,2}(?:[/|,:;+]|\band\b|\bund\b|\bet\b|\by\b|\be\b|\ben\b|\bor\b|&)\s{0,2}(?:password\s|passwort\s|pw\s)?[\"'`]?(?=[^\s\"'`]{0,60}[\d!#$%&*?@^+=])(?P<value>[^\s/|,;\"'`]{5,80})",
            re.I,
        ),
        ("code|kode|pin & 0-9", "code", r"\b" + DOORS + r"s?(?:[ -][a-z]{2,12})?[ -]?(?:pin[ -]?)?(?:pass)?(?:code|kode|pin|combination|combo)s?" + SAID + r"(?P<value>[#*]{0,2}\d{3,8}[#*]{0,2}|[A-Z]\d{3,6}|\d{1,3}[A-Z]\d{3,6}|\d{3}[ -]\d{3})(?![\w-]|\.\d)", re.I),
        ("code|kode|pin|combo|combination|kombination|keypad & 0-9", "code", rf"\b{DOORS}s?(?:[ -][a-z]{{2,12}})?[ -]?{CODE}" + CODE_LATER, re.I),
        ("code|kode|pin|combo|combination|kombination & 0-9", "code", rf"\b{DOORS}[^\n.!?;\d]{{0,50}}?\b{CODE}[\s:=,-]{{1,4}}(?:is\s|ist\s|lautet\s)?(?P<value>[#*]?\d{{3,8}}[#*]?)(?![\w-]|[.,:/]\d)", re.I),
        ("lock|door|gate|tor|tür|tresor|safe|alarm|garage|keypad|schloss|schlüssel & 0-9", "code", rf"(?<![\w.,:/-])(?P<value>[#*]?\d{{4,8}}[#*]?)\s(?:for|opens?|unlocks?|für|öffnet)\s(?:the|my|our|das|die|den|der|dem|mein\w{{0,2}}|unser\w{{0,2}})\s(?:[\w-]{{1,20}}\s){{0,2}}?{DOORS}", re.I),
        ("code|kode|pin & 0-9", "code", rf"\b{CODE}[\s:=]{{1,3}}(?P<value>[#*]?\d{{4,8}}[#*]?)(?![\w-]|[.,:/]\d)\s?[(,–-]\s?(?:[\w-]{{1,20}}\s){{0,3}}?{DOORS}", re.I),
        ("code|código|codice|tan|otp & 0-9", "code", r"(?:\b(?:your|ihr|dein|votre|tu|il tuo|seu)\s(?:[\w-]{1,16}\s){0,2}(?:code|código|codice|(?:m|sms-|push)?tan|otp)\s?(?:is|ist|lautet|est|es|è|é)?|\b(?:(?:m|sms-|push)?TAN|OTP))[\s:]{1,3}(?P<value>\d{4,8}|\d{3}[ -]\d{3})(?![\w-]|[.,:/]\d)", re.I),
        ("use|enter|type|gib|código|codice & 0-9", "code", r"\b(?:use|enter|type)\s(?P<value>\d{4,8}|\d{3}[ -]\d{3})\s(?:to\s(?:verify|log|sign|confirm|unlock|continue|complete|access)|as\s(?:your|the)\b[^\n.]{0,20}\b(?:code|pin|otp)\b)|(?P<other>\d{4,8})\s(?:es|è|é)\s(?:tu|su|il tuo|o seu|seu)\s(?:[\w-]{1,20}\s){0,3}?(?:código|codice)\b", re.I),
        ("senha|clave|парол|şifre|hasł|hesl & 0-9", "code", r"\b(?:senha|clave|пароль|şifresi|hasło|heslo)\b" + CODE_LATER.replace("{4,8}", "{4,6}"), re.I),
        ("wifi|wi-fi|wlan|ssid|hotspot & 0-9", "password", r"\b(?:wifi|wi-fi|wlan|ssid|hotspot)\b[^\n/|]{0,40}?\s?[/|]\s?(?P<value>[^\s/|,;\"'`]{6,64})(?=[\"'`]?[ \t]*(?:\n|\Z|[.,;]\s))", re.I),
        ("login|account|konto|zugang & 0-9", "mangled", r"\b(?:logins?|account|konto|zugang)\b:?\s[^\s:=]{3,60}[\s/|,]{1,3}(?P<value>[^\s/|,;\"'`]{8,64})(?=[ \t]*(?:\n|\Z|[.,;]\s))", re.I),
        ("pin|пин|पिन|geheimzahl|暗証|code confidentiel & 0-9", "code", r"(?:\b(?:pin|pin-?code|geheimzahl|code confidentiel)\b|пин(?:-?код)?|पिन|暗証番号)" + CODE_LATER.replace("{4,8}", "{4,5}(?!\\d)"), re.I),
        ("code|kode|pin|combo|combination|kombination & 0-9", "code", rf"\b{CODE}\s(?:for|to|of|on|at|fürs?|zum|zur|vom|von|am|im|de|del|della|do|da)\s(?:[^\s\d.!?;]{{1,20}}\s){{0,3}}?{DOORS}" + CODE_LATER, re.I),
        (
            "lock|arm|sperr|schärf|verrou|bloque|sblocc|open|öffne & with|w/|using|mit|avec|con|com|met|med|code & 0-9",
            "code",
            r"\b(?:unlock\w{0,3}|(?:dis)?arm(?:s|ed)?|entsperr\w{0,3}|(?:ent)?schärf\w{0,3}|aufsperr\w{0,3}|déverrouill\w{0,3}|désarm\w{0,4}|desbloque\w{0,3}|sblocc\w{0,4}|opens?|öffnet?)\b"
            r"[^\n.!?;\d]{0,50}?\s(?:with|w/|using|mit|avec|con|com|met|med|code)[\s:]{1,3}(?P<value>[#*]?\d{4,8}[#*]?)(?![\w-]|[.,:/]\d)(?=\s{0,2}(?:[.,;!?)]|\n|\Z)|\s(?:btw|and|und|then|dann)\b)",
            re.I,
        ),
        ("code|pin|combination|combo & 0-9", "code", r"\b(?:code|pin|combination|combo)s?\s(?:for|to|of|on|für|zum|zur)\s(?:the|my|our|a|das|die|den|dem|mein\w{0,2}|unser\w{0,2}|der)\s(?:[\w'’-]{1,20}\s){0,3}?(?:is|was|ist|lautet|:|=)?[\s:]{0,2}(?P<value>[#*]?\d{4,8}[#*]?)(?![\w-]|[.:]\d)", re.I),
        ("digicode|code|codice|código|codigo|kod|код|cod & 0-9", "code", r"\b(?:digicode|code\s(?:de\s(?:la\s|l['’])?|d['’]|du\s)?(?:porte|portail|entrée|alarme|immeuble|coffre|garage|secret|confidentiel|accès|sécurité|vérification|sms)|c[oó]digo\s(?:de\s(?:la\s)?|del\s|da\s|do\s)?(?:puerta|alarma|portal|entrada|garaje|caja fuerte|acceso|acesso|seguridad|segurança|verificaci[oó]n|verificação|porta|portão|cofre|alarme)|codice\s(?:del(?:la|l['’])?\s?|di\s)?(?:porta|cancello|allarme|ingresso|cassaforte|sicurezza|verifica|accesso|portone)|kod\s(?:do\s)?(?:domofonu|bramy|drzwi|alarmu|sejfu|weryfikacyjny|dostępu)|код\s(?:от\s|для\s|к\s)?(?:домофона|двери|сейфа|подъезда|сигнализации|подтверждения))" + SAID + r"(?P<value>[#*]?\d{3,8}[A-Za-z#*]?|\d{1,4}[A-Za-zА-я]\d{2,6})(?![\w-]|\.\d)", re.I),
        ("code|pin|otp|mot de passe|验证码|驗證碼|認証コード|인증번호 & 0-9", "code", r"(?P<value>\b(?:[A-Z]-)?\d{4,8})\s(?:is|ist|est|es|è|é)\s(?:your|the|dein|ihr|votre|su|tu|il tuo)\s(?:[\w-]{1,20}\s){0,3}?(?:code|otp|pin|passcode|bestätigungscode|código|codice)\b|(?:验证码|驗證碼|認証コード|인증번호|门禁|暗証番号)[^\d\n]{0,6}(?P<other>\d{4,8})(?!\d)", re.I),
        ("- & 0-9", "recovery key", r"(?<![\w-])(?P<value>\d{6}(?:-\d{6}){7}|(?=[A-Z-]{0,24}\d)[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5}|(?=[A-Z-]{0,24}\d)[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4})(?![\w-])", 0),
        ("app-spec|app spec|app pass|app-pass|icloud|apple", "app password", r"(?<![\w-])(?P<value>[a-z]{4}(?:-[a-z]{4}){3})(?![\w-])", 0),
        ("pass|pw", "password phrase", r"[\"“„](?P<value>[^\"“”„\n]{6,80})[\"”“][^\n\"“”„]{0,40}?\b(?:that['’]?s|is|as|was|ist|das ist|est|es)\s(?:[\w'’-]{1,12}\s){0,4}(?:password|passphrase|passcode|passwort)\b", re.I),
        ("question|frage|pregunta|domanda", "security answer", r"\b(?:security|secret|sicherheits)[ -]?(?:question|frage)s?\b[^\n]{0,80}?\b(?:answer|antwort)\b[^\n.;:]{0,24}?(?:\bis\b|:|\bist\b|=)\s{0,3}[\"'“]?(?P<value>[^\n.;,\"”]{3,60})", re.I),
        ("pass|pin|pw", "password spelled", SPELLED, re.I),
        ("combination|combo|kombination|safe|tresor|lock|schloss|caja fuerte|coffre|cassaforte|cofre & 0-9", "code", r"\b(?:combination|combo|kombination|(?:safe|tresor|(?:pad)?lock|schloss|caja fuerte|coffre|cassaforte|cofre)\b[^\n.]{0,40}?\b(?:code|nummer|number|c[oó]digo|codice))\b[^\n.]{0,40}?(?<![\w-])(?P<value>[RL]?\d{1,2}([ -])[RL]?\d{1,2}\2[RL]?\d{1,2}(?:\2[RL]?\d{1,2})?)(?![\w-])", re.I),
        ("pin|code|keypad|combo|combination|alarm|lock|tresor", "code", r"\b(?:pin|(?:pass)?code|keypad|combo|combination|alarm|lock|tresor)\b" + SAID.replace(r"|\s(?=[A-Z]?\d)", "") + rf"(?P<value>{DIGIT_WORD}(?:[ ,-]{{1,2}}{DIGIT_WORD}){{3,7}})\b", re.I),
    )
)  # fmt: skip


def told_secrets(text: str, found: Found) -> Iterator[ToldSpan]:
    """Where *text* tells a way in: a login with its password, the code of a door."""
    for talk, begin, last in rules_by_line(TALK, text, found):
        for m in talk.pattern.finditer(text, begin, last):
            start, end = m.span("value")
            if start < 0:
                start, end = m.span("other")
            end = start + len(text[start:end].rstrip(".,;:!?)]}…"))
            no_code = talk.kind == "code" and NO_CODE.search(text, max(0, m.start() - 16), m.start())
            if no_code or (talk.kind in ("password", "mangled") and not looks_drawn(text[start:end])):
                continue
            if talk.kind != "mangled":
                yield start, end, talk.kind
            elif is_mangled(text[start:end]):
                yield start, end, "password"
    if not SETUP_HINTS.isdisjoint(found.words):
        yield from setup_keys(text)


ASKED_NEAR = 160  # chars at a message's end in which it asks
ASKS_FOR_CODE = re.compile(
    rf"\b(?:pin|puk|otp|tan|(?:{DOORS})s?[ -]?{CODE}|{CODE}\s(?:for|to|für|zum|zur|de|del|do)\b[^\n?]{{0,30}}{DOORS})\b",
    re.I,
)
PIN_TOLD = re.compile(r"[#*]{0,2}\d{4,8}[#*]{0,2}|\d{3}[ -]\d{3}")


def answers_with(question: str, answer: str) -> str | None:
    """What *answer*, a whole message, gives away as one word where the message before it is *question*: "password", "code", or None."""
    asked = question[-ASKED_NEAR:].lower()
    if len(answer) > 64 or not asked:
        return None
    if PIN_TOLD.fullmatch(answer):
        return "code" if ASKS_FOR_CODE.search(asked) else None
    named = (
        " " not in answer
        and looks_drawn(answer)
        and any(name in asked for name in PASSWORDS if len(name) > 3)
    )
    return "password" if named else None


DRAWN_GROUPS = re.compile(
    r"(?<![\w-])[A-Za-z0-9]{4}(?:([ -])[A-Za-z0-9]{4})(?:\1[A-Za-z0-9]{4}){4,15}(?![\w-])"
)
SETUP_KEY = re.compile(r"(?<![\w-])[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,15}(?![\w-])")
SETUP_OF = re.compile(
    r"\b(?:set-?up|key|secret|totp|2fa|mfa|authenticator|einrichtung\w*|schlüssel|clave|clé|chiave)\b", re.I
)
SETUP_HINTS = frozenset(
    (
        "security key",
        "recovery",
        "backup",
        "restore",
        "wiederherst",
        "setup",
        "set-up",
        "secret",
        "totp",
        "2fa",
        "mfa",
        "authenticator",
        "einricht",
        "schlüssel",
        "clave",
        "clé",
        "chiave",
    )
)


def setup_keys(text: str) -> Iterator[ToldSpan]:
    """A second factor's secret in groups of four, as it is written below the picture to be scanned."""
    for m in SETUP_KEY.finditer(text):
        if SETUP_OF.search(text, max(0, m.start() - WITHIN), m.start()):
            yield *m.span(), "2FA secret"
    for m in DRAWN_GROUPS.finditer(text):
        if is_shuffled(re.sub("[ -]", "", m[0])):
            yield *m.span(), "recovery key"


GROUPED = re.compile(
    r"[^\n]{0,60}?(?<![\w-])(?P<value>[A-Za-z0-9]{4}(?:[ -][A-Za-z0-9]{4}){2,15}|[A-Za-z0-9]{5}(?:[ -][A-Za-z0-9]{5}){2,11}|[A-Za-z0-9]{6}(?:[ -][A-Za-z0-9]{6}){2,9}|[A-Za-z0-9]{3}(?:[ -][A-Za-z0-9]{3}){3,9})(?![\w-])"
)
WRITTEN_GROUPS = re.compile(r"(?:[a-z]{4} ){3}[a-z]{4}|(?:[a-z]{4}-){3}[a-z]{4}")
FOR_APPS = re.compile(r"\bapp\b|app-|application|2fa|totp|authenticator|google|gmail|icloud|apple", re.I)


def grouped_secret(text: str, behind: int) -> tuple[int, int] | None:
    """Where a secret stands in groups, "w3on 67nt b2es", behind the name that ends at *behind*."""
    m = GROUPED.match(text, behind)
    if not m:
        return None
    value = m["value"]
    groups = re.split("[ -]", value)
    drawn = sum(any(c.isdigit() for c in group) for group in groups) >= 2
    plain = (
        " " in value
        and any(group.islower() and group.isalpha() for group in groups[:1])
        and not is_random(value)
    )
    near = text[max(0, behind - 40) : m.start("value")]
    if (drawn and not plain) or (WRITTEN_GROUPS.fullmatch(value) and FOR_APPS.search(near)):
        return m.span("value")
    return None
