"""
`omg doctor`: what is wrong, where, and how to mend it.

    run        all checks in turn, and `--fix`
    finding    what is said of one thing
    gateway    the plugin, its permissions, who shares a memory, the context engine, other hosts
    graph      the home's files, notes, links, maps, what waits; what older versions kept and today's secrets/ takes out
"""
