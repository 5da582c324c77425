"""
OpenClaw: its command line and configuration, installing, the doctor.

    gateway    OpenClaw from outside: its state folder, its configuration and its command line.
    install    `omg install` and `omg uninstall` for OpenClaw: every step is named and can be repeated.
    doctor/    `omg doctor`: finds what is wrong, and says where and how to mend it.
"""
