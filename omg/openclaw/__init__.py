"""
OpenClaw's side: its command line and configuration, installing, the doctor.

    gateway    its state folder, configuration and command line
    install    `omg install` and `omg uninstall`, the slot for a context engine, `omg skill install`
    doctor/    `omg doctor`
"""
