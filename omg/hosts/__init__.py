"""
OMG in other assistants: Claude Code, Codex, OpenCode, Gemini CLI.

    hook        The declaration of each client, and `omg hook HOST EVENT`, which a client runs at its events.
    install     `omg install HOST` and `omg uninstall HOST`: our plugin for each client, added and removed by the
                client's own command.
    sessions    Records the sessions of clients, and checks whether each client's turns are captured.
    serve       Gives memory to the sessions of clients, captures what was said, and answers the tools of `omg mcp`.
    mcp         `omg mcp`: the memory as tools and resources of the Model Context Protocol, over stdio or loopback
                HTTP.
    timers      Lets the operating system start the nightly run, and the daemon at login, if no gateway starts them.

The daemon does the work: a hook only asks it, or leaves a mark for it. A client never waits longer than the hook's
deadline; if the daemon does not answer, the client continues without memory.
"""
