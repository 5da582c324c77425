"""
Secrets out of what is kept: found by their format, their label, their place, by looking random, or by a check digit.

    redaction     out of a text: unmasked, read by every rule, replaced by "[redacted: <kind>]"
    calls         out of a call's arguments and result, and out of an answer that is nothing but the password asked for
    formats       the keys of known services (Kingfisher), private key blocks, password hashes
    labels        `password: …`, `API_KEY=…`, "the wifi password is …", columns of tables
    credentials   in URLs, in commands, in calls
    tokens        random-looking tokens without a label
    numbers       payment cards, IBANs, social security numbers
    looks         what a value looks like by itself
"""

from .calls import answers_with, redact_arguments, redact_result
from .redaction import redact

__all__ = ["answers_with", "redact", "redact_arguments", "redact_result"]
