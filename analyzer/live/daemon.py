"""Finding the Docker daemon, and saying in one sentence why it cannot be spoken to."""

from __future__ import annotations

import os
import re
from typing import Any

from analyzer.errors import UserError

TIMEOUT = 10
"""Seconds that the daemon may take for an answer; following a stream has no limit."""
_NOT_THERE = "the Docker daemon is not reachable: is it running? DOCKER_HOST or `docker context` names its socket"


def connect() -> Any:
    """A client for the daemon that ``DOCKER_HOST`` or the current Docker context names.

    Raises ``UserError`` (status 3) with what to do when there is none.
    """
    import docker
    from docker.errors import DockerException

    try:
        client = _of_context() if not os.environ.get("DOCKER_HOST") else docker.from_env(timeout=TIMEOUT)
        client.ping()
    except DockerException as error:
        raise UserError(why(error), status=3) from None
    except OSError as error:
        raise UserError(f"the Docker daemon is not reachable: {error.strerror or error}", status=3) from None
    return client


def _of_context() -> Any:
    """A client for the context that ``DOCKER_CONTEXT`` or Docker's own settings name."""
    import docker
    from docker.context import ContextAPI

    name = os.environ.get("DOCKER_CONTEXT", "")
    context = ContextAPI.get_context(name) if name else ContextAPI.get_current_context()
    if context is None and name:
        raise UserError(f"there is no Docker context named {name}: `docker context ls` lists them", status=3)
    if context is None or context.name == "default" or not context.Host:
        return docker.from_env(timeout=TIMEOUT)
    tls = getattr(context, "TLSConfig", None)
    return docker.DockerClient(base_url=context.Host, tls=tls or False, timeout=TIMEOUT)


def why(error: Exception) -> str:
    """What ``error`` of the Docker library means, in a sentence with what to do."""
    text = str(error)
    host = os.environ.get("DOCKER_HOST", "")
    given = f"DOCKER_HOST={host}" if host else "its address"
    if "Permission denied" in text or "PermissionError" in text:
        return "no permission for the Docker socket: run as a member of the docker group, or set DOCKER_HOST"
    if "No such file" in text or "FileNotFoundError" in text or "Connection refused" in text:
        return _NOT_THERE
    if "NameResolutionError" in text or "Name or service not known" in text:
        return f"the Docker daemon is not reachable: no host has the name in {given}"
    if "No route to host" in text or "Network is unreachable" in text:
        return f"the Docker daemon is not reachable: no way leads to {given}"
    if "timed out" in text or "timeout" in text.lower():
        return f"the Docker daemon does not answer: nothing came from {given} in {TIMEOUT} s"
    if "paramiko" in text:
        return f"{given} needs SSH: install the package paramiko, or forward the socket (ssh -L) and name that"
    if "bind address" in text or "Invalid" in text[:12]:
        return f"{given} is no address of a Docker daemon: write it like unix:///var/run/docker.sock"
    if "certificate" in text.lower() or "SSL" in text or "TLS" in text:
        return (
            f"the Docker daemon's TLS is not set up: DOCKER_CERT_PATH must hold ca.pem, cert.pem and key.pem ({given})"
        )
    if "BadStatusLine" in text or re.search(r"\b(?:404|405|501) Client Error", text) or "Not Found" in text:
        return f"what answers is no Docker daemon: look at {given}"
    first = text.splitlines()[0][:200] if text else type(error).__name__
    return f"the Docker daemon does not answer: {first}"
