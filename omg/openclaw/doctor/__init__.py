"""
`omg doctor`: finds what is wrong, and says where and how to mend it.

    run        Runs all checks in turn, and `--fix`.
    gateway    Checks of the gateway: the plugin, its permissions, who shares a memory, where vaults lie.
    graph      Checks of one graph: its notes, links and maps, and what waits.
"""
