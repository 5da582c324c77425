"""
Finds secrets in a text (passwords, keys, card numbers) and redacts them.

    redaction    Redacts the secrets in a text, and in the arguments and results of tool calls.
    labels       Secrets with a label: `password: …`, `API_KEY=…`, table columns, URLs, commands.
    tokens       Secrets without a label: keys of known services, random-looking tokens, numbers with check digits.
"""

from .redaction import answers_with, redact, redact_arguments, redact_result, rules_number

__all__ = ["answers_with", "redact", "redact_arguments", "redact_result", "rules_number"]
