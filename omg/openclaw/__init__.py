"""
OpenClaw: its command line and configuration, installing, the doctor.

    install         Installs OMG in OpenClaw (`omg install`), uninstalls it, and runs OpenClaw's commands.
    doctor          `omg doctor`: checks the gateway and each graph, says what is wrong, where, and how to mend it.
    graph_checks    The doctor's checks of OMG's folder, and of each graph: notes, links, maps and unfinished work.
"""
