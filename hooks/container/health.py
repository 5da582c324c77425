"""Exit 0 if what runs in this container answers: the daemon of $OMG_HOME, or the fleet's server that $OMG_HEALTH_URL names."""

import os
import sys
import urllib.request
from pathlib import Path

from omg.client import ask_daemon

if url := os.environ.get("OMG_HEALTH_URL"):
    with urllib.request.urlopen(url, timeout=5) as answer:
        sys.exit(answer.status != 200)
sys.exit(ask_daemon(Path(os.environ["OMG_HOME"]), "/health", {}, timeout_s=5) is None)
