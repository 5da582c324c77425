"""
The Observer without a model: rules that keep, near-verbatim, what people assert, decide, prefer and plan.

    observer      messages and known notes → a reply in the form a model gives (prompts/observe.md)
    assertions    the sentences of a message, and what each asserts; words/*.toml has the words of each language
    wording       a note's type and priority, its title, its words
    drafts        whether a statement repeats, changes or ends a note, told by the words they share
"""
