"""
Texts that make a careless pattern slow: one character, or one phrase, over and over.

A pattern is slow where it can begin at every place and read on to the end, or can split what it reads in many ways.
So: each character that patterns name in a repeat, the beginning of each thing that has an end, without its end, and
a few that nest or nearly match.
"""

from collections.abc import Iterator

# fmt: off
CHARACTERS = [
    " ", "\t", "\n", "\r", "\r\n", "\u00a0", "\u3000", "\u2028", "\u200b", "\u200d", "\ufeff", "\0", "\x1b",
    *"-_=*#.,:;|/\\~^+!?@&%$'\"`()[]{}<>",
    "a", "A", "0", "9", "f", "é", "ü", "ß", "ı", "漢", "の", "한", "я", "😀", "👨\u200d👩\u200d👧", "\u0301", "e\u0301",
]

BEGINNINGS = [
    "<!--", "<!-- omg:begin -->", "<!-- omg:end -->", "<omg-memory>", "</omg-memory>", "<omg-memory", "<a ", "<a href=\"", "</", "<br>", "&#", "&amp",
    "[[", "]]", "[[a|", "[[a]] ", "[[[a]]", "[a](", "![", "](", "[^1]: ", "[x] ", "- [ ] ", "- ", "* ", "+ ", "> ", ">> ", "# ", "###### ", "1. ", "| a ", "|---|", "---\n", "---\na: b\n", "```", "```\n", "~~~\n", "`a", "**a", "__a", "$$", "%%", "{{", "}}", "{%", "${", "$(",
    "-----BEGIN ", "-----BEGIN RSA PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----", "-----END ", "-----",
    "api_key=", "api_key: ", "password", "password ", "password:", "password: a b ", "password is ", "password: \n", "passwort ", "secret=", "token=", "token: ", "key=\"", "pw:", "pin ", "PIN: 1", "密码", "パスワード",
    "Authorization: ", "Authorization: Bearer ", "Bearer ", "Basic ", "Cookie: ", "Cookie: a=b; ", "Set-Cookie: ", "machine a login b ", "login ", "mysql -p", "curl -u ", "--password ", "--password=",
    "https://", "http://a", "https://a:", "https://a:b", "postgres://", "postgres://a:b", "a://", "://", "user:", "a:b@", "@a", "a@", "a@b.", "www.", "?a=", "&a=", "&sig=", "?token=", "%20", "%",
    "eyJ", "eyJhbGciOi.", "eyJa.eyJ", "sk-", "Ｐ", "sk_live_", "ghp_", "xoxb-", "AKIA", "AIza", "hooks.", "SG.", "glpat-", "-a", "a-", "a_", "_a", "a.", ".a", "a1", "A1b", "a/", "/a", "\\a", "\\\\", "\\\"", "\\n", "\\u00e4",
    "4111 ", "4111-", "1234567890:A", "4", "12-", "123-45-", "123-45-678", "DE89 ", "DE89", "de12 3456 ", "1 ", "1-", "1.", "1,", "1:", "12:", "2026-", "2026-03-", "2026-03-04 ", "2026-03-04T", "3. ", "+49 ", "(1) ", "1st ", "0x", "0xa",
    "[2026-03-04] ", "[2026", "[Telegram ", "[Telegram Anna +5m 2026-03-04 10:00 UTC] ", "Conversation info (untrusted metadata):\n", "Sender (untrusted metadata):\n```json\n", "System: ", "System: [", "[cron:", "[message_id: ", "[Replying to ", "[Forwarded from ", "On a, b wrote:\n", "From: a\n", "Begin forwarded message:\n", "Subject: ", "NO_REPLY ", "HEARTBEAT_OK ", "/omg ", "@bot ", "user: ", "assistant: ", "Anna: ", "Anna said: \"", "she said ", "he wrote: ",
    "{\"", "{\"a\":", "{\"a\":[", "[1,", "{\"password\":\"", "\"password\": \"", "'a': ", "a: ", "a:\n  ", "a = ", "a=b&", "a;b;", "a,b,", "a|b|", "a\tb\t",
    "tomorrow ", "next week ", "on monday ", "in two weeks ", "last last ", "every day ", "from may to ", "between may and ", "two days ago ", "the 3rd of ", "march ", "morgen ", "at 5 ", "5 pm ", "in a ", "noch ",
    "I ", "I am ", "my ", "my name is ", "I like ", "I don't ", "don't ", "not ", "because ", "and ", ", and ", "then ", "remember ", "remember that ", "always ", "never ", "please ", "let's ", "we decided to ", "I will ", "instead of ", "no longer ", "is a ", "of the ", "Mr. ", "e.g. ", "A. ", "A.B.", "Aa ", "aA", "AAA ", "Dr. A", "St. ", "...", "?!", "!?", "\". ", "\" ", "“", "”", "„a", "«", "'s ", "' ", "(a", "(a) ", "((", "() ", "[]", "{}", "<>", "a b", "a  b", "a \n", " \n", "\n\n", "\n \n", "\n- ", "\n\t", "a\n",
]

WHOLE = {
    "nested brackets": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "nested links": lambda size: "[[" * (size // 4) + "]]" * (size // 4),
    "nested braces": lambda size: "{\"a\":" * (size // 6) + "1" + "}" * (size // 6),
    "nested quotes": lambda size: "> " * (size // 2),
    "one word, then no match": lambda size: "a" * (size - 1) + "!",
    "one number, then no match": lambda size: "1" * (size - 1) + "x",
    "spaces, then a word": lambda size: " " * (size - 1) + "x",
    "spaces between two words": lambda size: "a" + " " * (size - 2) + "b",
    "many short lines": lambda size: "a: b\n" * (size // 5),
    "many empty lines, then a word": lambda size: "\n" * (size - 1) + "x",
    "a list of lists": lambda size: "".join("  " * (n % 50) + "- a\n" for n in range(size // 54)),
    "a key without an end": lambda size: "-----BEGIN PRIVATE KEY-----\n" + "QUJD\n" * (size // 5),
    "a key for a password": lambda size: "password" + " " * (size - 9) + "x",
    "an address without a host": lambda size: "https://user:" + "a" * size,
    "a mail address without a host": lambda size: "a" * (size - 1) + "@",
    "dots in a name": lambda size: "a." * (size // 2) + "@",
    "a table with one row": lambda size: "| password |\n|---|\n|" + " a |" * (size // 4),
    "a table with many rows": lambda size: "| user | password |\n|---|---|\n" + "| a | b |\n" * (size // 10),
    "base64 without an end": lambda size: "QUJDREVG" * (size // 8),
    "a token in a quote without an end": lambda size: "token='" + "x" * size,
    "a login of colons": lambda size: "curl -u a" + ":" * size,
    "hexadecimal without an end": lambda size: "deadbeef" * (size // 8),
}
# fmt: on


def shapes(size: int) -> Iterator[tuple[str, str]]:
    """Each text with its name, about *size* characters long."""
    for unit in [*CHARACTERS, *BEGINNINGS]:
        yield repr(unit), (unit * (size // len(unit) + 1))[:size]
    for name, make in WHOLE.items():
        yield name, make(size)
