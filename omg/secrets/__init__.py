"""
Secrets out of what is kept: found by their format, their label, their place, by looking random, or by a check digit.

    redaction    out of a text, a call's arguments and result: each becomes "[redacted: <kind>]"
    labels       `password: …`, `API_KEY=…`, columns of tables; in URLs, in commands
    tokens       by themselves: keys of known services (Kingfisher), random-looking tokens, cards and other numbers
"""

from .redaction import answers_with, redact, redact_arguments, redact_result

__all__ = ["answers_with", "redact", "redact_arguments", "redact_result"]
