"""
A person at work in a vault, as a process of its own: edits in place, saves atomically as editors do, renames,
moves, deletes, writes notes without frontmatter and text around generated blocks.

    python person.py VAULT SECONDS SEED DIARY.json

Every line it writes carries a word of its own. The diary says which words must still be there, which notes were
deleted, and is written at the end.
"""

import json
import os
import random
import sys
import time
from pathlib import Path


class Person:
    def __init__(self, vault: Path, seed: int) -> None:
        self.vault, self.rng, self.n = vault, random.Random(seed), 0
        self.lines: dict[str, str] = {}  # word -> file it was written to, as the file is called now
        self.deleted: dict[str, str] = {}  # id of a note -> path where it was deleted
        self.saved: dict[str, str] = {}  # file, as it is called now -> its text as this person last saved it

    def notes(self) -> list[Path]:
        return sorted(p for p in self.vault.glob("nodes/*/*.md") if not p.name.startswith("."))

    def word(self) -> str:
        self.n += 1
        return f"word{self.n:05d}x"

    def save(self, file: Path, text: str) -> None:
        self.saved[str(file)] = text
        if self.rng.random() < 0.5:
            tmp = file.with_name(f".{file.name}.swp")
            tmp.write_text(text, encoding="utf-8")
            tmp.replace(file)
        else:
            with file.open("r+" if file.exists() else "w", encoding="utf-8") as f:
                f.seek(0)
                f.write(text)
                f.truncate()

    def act(self) -> None:
        notes = self.notes()
        deed = self.rng.choice(["edit", "edit", "edit", "map", "new", "rename", "delete"])
        word = self.word()
        try:
            if deed == "new" or not notes:
                file = self.vault / "nodes" / "fact" / f"{word}.md"
                file.parent.mkdir(parents=True, exist_ok=True)
                self.save(file, f"A note of my own, {word}.\n")
                self.lines[word] = str(file)
                return
            file = self.rng.choice(notes)
            if deed == "edit":
                self.save(file, file.read_text(encoding="utf-8") + f"\nMy remark {word}.\n")
                self.lines[word] = str(file)
            elif deed == "map":
                page = self.vault / "mocs" / "moc-facts.md"
                self.save(page, f"{page.read_text(encoding='utf-8').rstrip()}\n\nBelow the map: {word}\n")
                self.lines[word] = str(page)
            elif deed == "rename":
                target = file.with_name(f"{file.stem[:20]}-{word}.md")
                file.rename(target)
                self.lines = {w: str(target) if f == str(file) else f for w, f in self.lines.items()}
                if str(file) in self.saved:
                    self.saved[str(target)] = self.saved.pop(str(file))
            elif deed == "delete" and self.rng.random() < 0.4:
                text = file.read_text(encoding="utf-8")
                file.unlink()
                self.lines = {w: f for w, f in self.lines.items() if f != str(file) and w not in text}
                self.saved.pop(str(file), None)
                for line in text.splitlines():
                    if line.startswith("id: "):
                        self.deleted[line.removeprefix("id: ").strip()] = str(file)
        except FileNotFoundError:
            pass  # gone while we looked: as with a person, that deed did not happen


def main() -> None:
    person = Person(Path(sys.argv[1]), int(sys.argv[3]))
    until = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < until:
        person.act()
        time.sleep(person.rng.uniform(0.002, 0.05))
    Path(sys.argv[4]).write_text(
        json.dumps(
            {"lines": person.lines, "deleted": person.deleted, "saved": person.saved, "deeds": person.n}
        )
    )


if __name__ == "__main__":
    os.umask(0o077)
    main()
