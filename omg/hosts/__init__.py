"""
OMG in other assistants: Claude Code, Codex, OpenCode, Gemini CLI.

    declared      one declaration for each client; installer, hook and readers all use it
    hook          `omg hook HOST EVENT`: what a client runs; standard library alone
    projects      whose memory a folder has: the person's, and its project's
    transcripts   a client's transcript as the entries of a drop
    sessions      what is kept of each session: how far it was read, when it was last served
    capture       marks that hooks leave in the spool → drops
    serve         what a prompt is given, within the client's limit
    plugin        the plugin folder of each client, as text
    install       `omg install HOST` and out again
    mcp           `omg mcp`: tools and resources for any MCP client
    answers       what those tools answer, in the daemon
    proposals     what an assistant asks to have remembered, until the person confirms it

The daemon does the work: a hook only asks it, or leaves a mark for it. A client never waits longer than the hook's
deadline, and goes on without memory where the daemon does not answer.
"""
