"""Writes a count with its noun: "1 note", "2 notes"."""


def how_many(n: int, name: str) -> str:
    return f"{n} {name}{'s' * (n != 1)}"
