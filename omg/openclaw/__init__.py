"""OpenClaw's side: its command and configuration, installing, the doctor."""
