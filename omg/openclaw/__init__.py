"""
OpenClaw's side: its command line and configuration, installing, the skill, the doctor.

    gateway   its state folder, configuration and command line
    install   `omg install` and `omg uninstall`
    skill     `omg skill install`, for an agent without the plugin
    doctor/   `omg doctor`
"""
