"""The size of each job's runner, as lines for Kubernetes and as a runner of GitHub."""

import json

from .render import plain

# The runs from which on a size is proposed: the largest of fewer runs says little about the next one.
LEAST = 10
MIB = 1 << 20
# GitHub's Linux runners of x86-64: their CPUs, and their memory in GiB.
GITHUB = [(2, 8), (4, 16), (8, 32), (16, 64), (32, 128), (64, 256), (96, 384)]


def quantity(count):
    """A number of bytes in Kubernetes' notation."""
    mib = count // MIB
    return f"{mib // 1024}Gi" if mib % 1024 == 0 else f"{mib}Mi"


def share(part, whole):
    return f"{100 * part / whole:.0f} %" if part else "none"


def github(row):
    """The smallest runner that has the job's CPUs and its limit of memory."""
    fitting = (it for it in GITHUB if it[0] >= row["request_cpus"] and it[1] << 30 >= row["limit_bytes"])
    return next(fitting, None)


def about(row):
    """What is known of a job, in lines of a comment."""
    job = f"{row['repo']} {row['job'] or '(no job)'}"
    yield f"# {plain(job).replace(chr(10), ' ')}"
    yield f"# {row['runs']} runs: memory at most {row['most_bytes'] // MIB} MiB, {row['most_cpus']} of {row['cpus']} CPUs"
    if row["runs"] < LEAST:
        yield f"# no size is proposed of fewer than {LEAST} runs"
        return
    memory, cpus = share(row["over_request_memory"], row["runs"]), share(row["over_request_cpus"], row["runs"])
    yield f"# runs above the request: {memory} by memory, {cpus} by CPUs"
    runner = github(row)
    if runner:
        yield f"# GitHub: a runner with {runner[0]} CPUs and {runner[1]} GB"


def text(rows):
    """The resources of each job's container in YAML."""
    parts = []
    for row in rows:
        lines = list(about(row))
        if row["runs"] >= LEAST:
            request = {"cpu": str(row["request_cpus"]), "memory": quantity(row["request_bytes"])}
            limits = {"memory": quantity(row["limit_bytes"])}
            lines += ["resources:", f"  requests: {json.dumps(request)}", f"  limits: {json.dumps(limits)}"]
        parts.append("\n".join(lines))
    if not parts:
        return "# no run has the memory of all its processes\n"
    return "\n---\n".join(parts) + "\n"
