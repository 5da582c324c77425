"""
OMG in other assistants: Claude Code, Codex, OpenCode, Gemini CLI.

    declared       One declaration for each client: its events, fields and limits.
    hook           `omg hook HOST EVENT`: what a client runs at its events.
    projects       Whose memory a session of a client has: the person's, and in a git repository the project's.
    transcripts    Reads a client's transcript from an offset on, as entries of a drop.
    sessions       What is kept of each session of a client: how far it was read, and when it was last served, as
                   `hosts/<host>/<session>.json` in the home.
    capture        Turns the marks that hooks left in the spool into drops.
    serve          What a session of a client is given: the standing text once for each context, and what fits each
                   prompt.
    plugin         The plugin folder of each client, as text: its hooks, its MCP server, and where it is offered.
    install        `omg install HOST` and `omg uninstall HOST`: by the client's own command line.
    mcp            `omg mcp`: the memory as tools and resources of the Model Context Protocol, over stdio or loopback
                   HTTP.
    answers        Answers the tools of `omg mcp`, in the daemon.
    proposals      What an assistant asks to remember without the person's words behind it, and `omg confirm`.

The daemon does the work: a hook only asks it, or leaves a mark for it. A client never waits longer than the hook's
deadline, and goes on without memory where the daemon does not answer.
"""
