"""
OpenClaw's side: its command line and configuration, installing, the skill, the doctor.

    gateway   its state folder, configuration and command line
    install   `omg install` and `omg uninstall`
    engine    `omg install --context-engine`: the slot for a context engine, and back
    skill     `omg skill install`, for an agent without the plugin
    doctor/   `omg doctor`
"""
