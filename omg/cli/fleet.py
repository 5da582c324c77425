"""Commands of a fleet: many machines on Postgres (docs/fleet.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ..errors import ConfigError, pip_install
from .terminal import JsonFlag, app, print_value

if TYPE_CHECKING:
    from ..fleet.store import FleetStore

fleet_app = typer.Typer(help="Many machines on Postgres; needs the extra `fleet`.", no_args_is_help=True)
tenant_app = typer.Typer(help="The tenants of a fleet, and their tokens.", no_args_is_help=True)
app.add_typer(fleet_app, name="fleet")
fleet_app.add_typer(tenant_app, name="tenant")

Name = Annotated[str, Argument(help="The tenant's name.")]
Folder = Annotated[Path, Argument(help="The folder.")]
CacheOption = Annotated[
    Path, Option("--cache", help="Folder for working copies of graphs; may be emptied at any time.")
]
CACHE = Path("/var/tmp")  # a disk, not the memory that /tmp may be


def open_store() -> FleetStore:
    """Open the fleet in the database that $OMG_FLEET_DATABASE names."""
    try:
        import procrastinate  # noqa: F401
        import uvicorn  # noqa: F401

        from ..fleet.store import FleetStore, database_url, opened_pool
    except ImportError as e:
        raise ConfigError(f"a fleet needs {e.name}; {pip_install('fleet')}") from e
    return FleetStore(opened_pool(database_url()))


def checked_url() -> str:
    """The address of the database. Raises an error if it does not answer."""
    pool = open_store().pool
    pool.wait()
    pool.close()
    return str(pool.conninfo)


def quiet_logs() -> None:
    """Make the log show where an exception was raised, but not its message. The message may quote what was said."""
    import logging

    from ..daemon import LogFormatter

    for handler in logging.getLogger().handlers:
        handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))


@fleet_app.command("init")
def init_command() -> None:
    """Make the tables in the database that OMG_FLEET_DATABASE names. Running it again changes nothing."""
    url = checked_url()
    from ..fleet.store import init_database

    init_database(url)
    print("the tables are there; `omg fleet tenant add NAME` makes a tenant")


@tenant_app.command("add")
def add_command(name: Name) -> None:
    """Make a tenant and print its token, which is not stored."""
    print(open_store().add_tenant(name))


@tenant_app.command("list")
def list_command(as_json: JsonFlag = False) -> None:
    """List the tenants."""
    found = open_store().tenants()
    lines = [f"{one['tenant']}  {one['graphs']} graphs, since {one['made'][:10]}" for one in found]
    print_value(found, as_json, "\n".join(lines))


@tenant_app.command("rotate")
def rotate_command(name: Name) -> None:
    """Print a new token for a tenant. The old token stops working."""
    print(open_store().rotate(name))


@tenant_app.command("remove")
def remove_command(name: Name, yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False) -> None:
    """Delete a tenant and its whole memory."""
    if not yes:
        typer.confirm(f"delete the whole memory of {name}?", abort=True)
    open_store().remove_tenant(name)
    print(f"{name} is removed; backups of the database still hold it")


@fleet_app.command("serve")
def serve_command(
    host: Annotated[
        str,
        Option(help="The address to listen on. Put a proxy with TLS in front of any address but loopback."),
    ] = "127.0.0.1",
    port: Annotated[int, Option(help="The port to listen on.")] = 8790,
    cache: CacheOption = CACHE,
) -> None:
    """Answer the plugins of gateways over HTTP, from the graphs in Postgres."""
    url = checked_url()
    from ..fleet.serve import run_server

    quiet_logs()
    run_server(url, host=host, port=port, cache=cache)


@fleet_app.command("work")
def work_command(
    parallel: Annotated[int, Option(help="How many graphs at a time.", min=1)] = 4,
    cache: CacheOption = CACHE,
    lease: Annotated[
        float, Option(help="Seconds without a sign of life, after which another worker takes over.", min=3)
    ] = 30,
    metrics_port: Annotated[int, Option(help="Port of the Prometheus metrics; 0: none.")] = 0,
) -> None:
    """Run a worker, which observes and reflects. Any number of workers may run, on any machines."""
    url = checked_url()
    from ..fleet.serve import run_worker

    if metrics_port:
        from prometheus_client import start_http_server

        start_http_server(metrics_port, addr="127.0.0.1")
    quiet_logs()
    run_worker(url, parallel=parallel, cache=cache, lease_s=lease)


@fleet_app.command("status")
def status_command(as_json: JsonFlag = False) -> None:
    """Show how many tenants, graphs and drops there are, what waits and for how long, and the workers."""
    found = open_store().status()
    lines = [f"{name:14} {value if value is not None else '-'}" for name, value in found.items()]
    print_value(found, as_json, "\n".join(lines))


@fleet_app.command("doctor")
def doctor_command() -> None:
    """Print each fault with its remedy, one a line. Exit code 1 if there is a fault."""
    found = open_store().findings()
    print("\n".join(found) or "nothing is wrong")
    raise typer.Exit(1 if found else 0)


@fleet_app.command("import-home")
def import_command(tenant: Name, folder: Folder) -> None:
    """Move the home FOLDER into a tenant that has no memory yet."""
    store = open_store()
    from ..fleet.homes import import_home

    done = import_home(store, tenant, folder)
    print(f"{done['graphs']} graphs, {done['files']} files")
    for path in done["left"]:
        print(f"not imported, because it is a link or its name is not UTF-8: {path!r}")


@fleet_app.command("export-home")
def export_command(tenant: Name, folder: Folder) -> None:
    """Write a tenant's memory into the empty FOLDER, as a home, byte for byte."""
    store = open_store()
    from ..fleet.homes import export_home

    print(f"{export_home(store, tenant, folder)} files")


@fleet_app.command("join")
def join_command(
    url: Annotated[str, Argument(help="The server's address, such as https://memory.example.org.")],
    token: Annotated[str, Argument(help="The tenant's token.")],
) -> None:
    """Let this home's plugin and `omg` ask a fleet instead of a daemon."""
    import json

    from ..client import FLEET, default_home, fleet_of
    from ..graph.state import write_private

    home = default_home()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_private(home / FLEET, json.dumps({"url": url.rstrip("/"), "token": token}))
    assert fleet_of(home)
    print(f"{home / FLEET} is written; delete it to leave the fleet")
