"""
`omg doctor`: what is wrong, where, and how to mend it.

    run       all checks in turn, and `--fix`
    finding   what is said of one thing
    home      the daemon's files, the spool, the model
    gateway   the plugin, its permissions, who shares a memory
    engine    the context engine, where it was asked for
    graph     notes, links, maps, what waits
    secrets   what older versions kept that today's rules (secrets/) take out
"""
