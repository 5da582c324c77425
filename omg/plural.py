"""How many of something there are, in words."""


def how_many(n: int, name: str) -> str:
    return f"{n} {name}{'s' * (n != 1)}"
