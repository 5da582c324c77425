"""
The Observer without a model: rules that keep, near-verbatim, what people assert, decide, prefer and plan.

    observer                 messages and known notes → a reply in the form a model gives (prompts/observe.md)
    quoted → sentences       what of a message is its sender's own → sentence by sentence
    assertions               a sentence → what it asserts, or None
    kinds, titles, wording   the note's type and priority, its title, its words
    drafts                   whether it repeats, changes or ends a note, told by the words they share
    conversation             who speaks, and which task is open at the end (for the Now note)
    cues, words/*.toml       the words and patterns of each language
"""
