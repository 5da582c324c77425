"""The statements of a message, and what governs each: quotation, speaker, question, condition, refusal."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omg.message.statements import statements_in, statements_of
from omg.message.turn import Message

# text → of each statement, what governs it; "." for the person's own
GOVERNED = [
    ('My ex always says: "I am a liar. I am worthless. I hate kids."', "quoted quoted quoted"),
    ('My brother says: "I am fine. I am allergic to dust. Thanks." I am not.', "quoted quoted quoted ."),
    ("Mein Ex sagt immer: „Ich bin ein Lügner. Ich hasse Kinder.“ Ich wohne in Bonn.", "quoted quoted ."),
    ("Er sagt: »Ich bin krank. Ich hasse Tee.« Ich mag Tee.", "quoted quoted ."),
    ("Ma sœur dit : « Je suis malade. Je déteste le thé. » Moi, je vais bien.", "quoted quoted ."),
    ("兄は「私は元気です。埃アレルギーです。」と言った。私は東京に住んでいます。", "quoted quoted ."),
    ("Min bror säger: ”Jag ljuger. Jag hatar barn.” Jag bor i Lund.", "quoted quoted ."),
    ("My sister said 'I am ill. I hate tea.' I like tea.", "quoted quoted ."),
    ("My ex said “I am a liar.\n\n“I am worthless.”\n\nI live in Rome.", "quoted quoted ."),
    ('My ex said "I am a liar. I am worthless.\n\nI live in Rome.', "quoted quoted ."),  # not closed
    ('"I am a liar. I am worthless." That is what my ex says.', "quoted quoted ."),
    ('"I am vegan," my brother says. I am not.', "quoted ."),
    ('My mother, last week:\n"I hate tea. I am ill."', ". quoted quoted"),
    ("My brother says: I am fine. I am allergic to dust.\nI live in Rome.", "reported reported ."),
    ("Ann wrote:\n- I hate kids\n- I like tea\n\nI live in Rome.", "reported reported reported ."),
    ("According to my boss: I am lazy. I am late.", "reported reported"),
    ("I am a liar. I hate kids. Don't remember that.", "refused refused refused"),
    ("I am a liar. Just kidding!", "refused refused"),
    ("I live in Oslo. That is not true.", "refused refused"),
    ("I live in Oslo. Is that wrong?", "refused refused"),
    ("I use Python 3.11. What is wrong with it?", ". asked"),
    ("Ich nutze Python. Was ist falsch?", ". asked"),
    ("I use Python. Anything wrong?", ". asked"),
    ("2026-11-02 09:14:04 retry\n2026-11-02 09:14:09 done\nI deploy on Mondays.", "passed on passed on ."),
    ("I live in Oslo. Was that a lie?", "refused refused"),
    ("I live in Oslo. Could that be wrong?", "refused refused"),
    ("Ik rook. Niet.", "refused refused"),
    ("Note: I don't keep meat at home.", "."),
    ("Remember that I never save receipts.", "."),
    ("That's why I never keep cash.", "."),
    ("Merk dir nicht, dass ich rauche.", "refused"),
    ("Merk dir das nicht: Ich bin faul. Ich lüge.", "refused refused"),
    ("Please don't save any of this. I drink. I smoke.", "refused refused refused"),
    ("I like tea. Don't remember that I am lazy.", ". refused"),
    ("I like tea. Note: don't save that.", "refused refused"),
    ("I like tea. Remember: never call me before nine.", ". ."),
    ("Is it ok? I like tea.", "asked ."),
    ("If I were rich, I would fly. I live in Rome.", "supposed ."),
    ("Suppose I live in Oslo. I eat fish.\n\nI live in Rome.", "supposed supposed ."),
    # the person's own
    ('My dog is called "Bruno." He is nice.', ". ."),
    ('I love the books "Dune", "Heat" and "Alien."', "."),
    ('I told her: "I do not eat meat. I hate fish." She left.', ". . ."),
    ("Ich sage immer: „Kein Fleisch. Nie.“", ". ."),
    ('Remember: "I am vegan. I like tea."', ". ."),
    ("Please remember this: I am vegan. I like tea.", ". ."),
    ("Don't forget: I am vegan. I like tea.", ". ."),
    ("I can't remember the title. I live in Rome.", ". ."),
    ("I forgot my keys. I don't like to write. I live in Rome.", ". . ."),
    ("I'm 5'10\" tall. The boys' room is blue. 'Tis 27\" wide. I like rock 'n' roll.", ". . . ."),
    ("Name: Ann\nCity: Rome\nDiet: vegan", ". . ."),
    ("- milk\n- eggs\n- call Ann", ". . ."),
    ("My brother says that he is ill. I am fine.", ". ."),
    ("He said it is fine, and I told him no. I am fine.", ". ."),
]


@pytest.mark.parametrize(("text", "governed"), GOVERNED, ids=[text[:40] for text, _ in GOVERNED])
def test_a_statement_is_marked_if_other_words_of_the_message_quote_it_or_deny_it(
    text: str, governed: str
) -> None:
    assert " ".join(said.governed or "." for said in statements_in(text)) == governed


def test_a_quotation_names_its_speaker() -> None:
    assert {s.speaker for s in statements_in('My ex always says: "I am a liar. I hate kids."')} == {
        "My ex always says"
    }
    assert [s.speaker for s in statements_in('"I am a liar. I hate kids," says my ex.')] == ["says my ex"] * 2


def test_quoted_material_and_tool_results_count_as_forwarded() -> None:
    said = statements_of(Message("m", "user", "I like tea.\n> I hate tea. Really.\nAnd milk.", 0))
    assert [s.governed for s in said] == ["", "passed on", "passed on", ""]
    assert {s.governed for s in statements_of(Message("t", "tool", "One. Two.", 0))} == {"passed on"}


@given(st.text(alphabet="ab.?:\n\"'“”„«» -") | st.text())
def test_statements_stand_in_order_and_equal_the_text_at_their_position(text: str) -> None:
    found = statements_in(text)
    assert all(text[s.start : s.end] == s.text and s.text.strip() for s in found)
    assert all(a.end <= b.start for a, b in pairwise(found))
