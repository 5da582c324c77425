"""The doctor at the other assistants: whether what OMG gave them is there, trusted, and alive."""

from __future__ import annotations

from collections.abc import Iterator

from ...hosts.declared import HOSTS
from ...hosts.install import is_added, our_command, same_files, unreviewed_hooks
from ...hosts.plugin import plugin_folder
from ...hosts.sessions import heartbeats
from ...memory import Memory
from .finding import Finding


def check_hosts(memory: Memory) -> Iterator[Finding]:
    home = memory.folder
    for beat in heartbeats(home):
        host = HOSTS[beat.host]
        again = f"omg install {host.name}"
        if not is_added(host):
            yield Finding("fail", f"{host.title} does not have the plugin any more", mend=again)
        elif not same_files(home / "plugins" / host.name, plugin_folder(host, our_command(), home)):
            yield Finding("warn", f"{host.title} has the plugin of another version", mend=again)
        elif waiting := unreviewed_hooks(host, home):
            what = f"{host.title} runs none of our hooks that you have not reviewed: {', '.join(waiting)}"
            yield Finding("fail", what, mend=f"start `{host.program}` and trust them when it asks")
        elif beat.silent:
            what = f"{host.title} is used, and nothing of it has been kept lately"
            mend = f"is a daemon up? (`omg up`); does it run hooks? (`{host.program} {host.ask_list}`)"
            yield Finding("warn", what, str(home / "hosts" / host.name), mend)
        else:
            yield Finding(
                "ok", f"{host.title} serves {beat.identity}" + (", projects alone" if beat.only else "")
            )
