"""What a fleet tells of itself: Prometheus metrics of this process, the status of all, the doctor's findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .store import Store

if TYPE_CHECKING:
    from prometheus_client import Counter, Histogram


def _made() -> tuple[Counter, Counter, Counter, Histogram, Histogram]:
    from prometheus_client import Counter, Histogram

    buckets = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
    return (
        Counter("omg_jobs_done_total", "Jobs committed", ["kind"]),
        Counter("omg_jobs_failed_total", "Jobs after which their graph waits", ["kind"]),
        Counter("omg_commits_fenced_total", "Commits refused because another machine was quicker", ["kind"]),
        Histogram("omg_job_seconds", "From a job's start to its commit", ["kind"], buckets=buckets),
        Histogram("omg_request_seconds", "From a request to its answer", ["path", "status"], buckets=buckets),
    )


DONE, FAILED, FENCED, JOB_S, REQUEST_S = _made()


def job_done(kind: str, seconds: float) -> None:
    DONE.labels(kind).inc()
    JOB_S.labels(kind).observe(seconds)


def fleet_status(store: Store) -> dict[str, Any]:
    """How much there is, what waits since when, and who works."""
    with store.pool.connection() as conn:
        row = conn.execute(
            "SELECT (SELECT count(*) FROM omg_tenants), (SELECT count(*) FROM omg_graphs WHERE folder <> ''),"
            " (SELECT count(*) FROM omg_drops), (SELECT extract(epoch FROM now() - min(came_at)) FROM omg_drops),"
            " (SELECT count(*) FROM procrastinate_jobs WHERE status = 'todo' AND task_name <> 'tick'),"
            " (SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing' AND task_name <> 'tick'),"
            " (SELECT count(*) / 2 FROM procrastinate_workers WHERE last_heartbeat > now() - interval '1 minute'),"
            " (SELECT count(*) FROM omg_graphs WHERE due_at < now() - interval '5 minutes'),"
            " pg_total_relation_size('omg_files')"
        ).fetchone()
    names = (
        "tenants",
        "graphs",
        "drops",
        "oldest_drop_s",
        "waiting",
        "running",
        "workers",
        "overdue",
        "bytes",
    )
    assert row is not None
    return {name: value and round(float(value)) for name, value in zip(names, row, strict=True)}


def findings(store: Store) -> list[str]:
    """What is wrong, a line each with its remedy."""
    now, found = fleet_status(store), []
    if not now["workers"]:
        found.append("no worker shows life: start `omg fleet work` on any machine")
    if (now["oldest_drop_s"] or 0) > 300:
        found.append(f"what was said {now['oldest_drop_s']:,} s ago waits still: start more workers")
    if now["overdue"]:
        found.append(
            f"{now['overdue']} graphs wait for longer than five minutes: start more workers, or see their log"
        )
    return found
