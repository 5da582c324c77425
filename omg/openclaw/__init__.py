"""
OpenClaw: its command line and configuration, installing, the doctor.

    install         `omg install` and `omg uninstall` for OpenClaw, and OpenClaw from outside: its folder,
                    configuration and command line.
    doctor          `omg doctor`: checks the gateway and each graph, says what is wrong, where, and how to mend it.
    graph_checks    The doctor's checks of the home and of each graph: its notes, links and maps, and what waits.
"""
