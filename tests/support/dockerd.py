"""A real Docker engine of the tests' own, with one tiny image made of busybox."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
IMAGE = "kvautopsy-test:1"


def missing() -> str:
    """Why no engine can be started here; empty if one can."""
    if os.geteuid() != 0:
        return "a Docker engine needs root"
    for program in ("dockerd", "containerd", "runc", "docker"):
        if shutil.which(program, path=PATH) is None:
            return f"{program} is not installed (.ci/services installs it)"
    if busybox() is None:
        return "no static busybox (package busybox-static)"
    return ""


def busybox() -> Path | None:
    """The static busybox."""
    for place in ("/bin/busybox", "/usr/bin/busybox"):
        if Path(place).exists():
            return Path(place)
    return None


@contextmanager
def engine() -> Iterator[str]:
    """The address of a running engine that holds ``IMAGE``."""
    folder = Path(tempfile.mkdtemp(prefix="kvautopsy-docker-"))
    host = f"unix://{folder}/docker.sock"
    command = [
        "dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "-H", host, "-p", f"{folder}/pid",
        "--iptables=false", "--bridge=none", "--storage-driver", "vfs",
    ]  # fmt: skip
    daemon = Daemon(folder, command)
    daemons[host] = daemon
    try:
        daemon.start()
        _image(folder, host)
        yield host
    finally:
        del daemons[host]
        daemon.stop()
        shutil.rmtree(folder, ignore_errors=True)


daemons: dict[str, Daemon] = {}
"""The running engines by their addresses, for tests that restart one."""


class Daemon:
    """The process of one engine."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self._log, self._command, self._starts = folder / "dockerd.log", command, 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the engine and waits until it answers."""
        with self._log.open("ab") as out:
            self._process = subprocess.Popen(self._command, stdout=out, stderr=subprocess.STDOUT)
        self._starts += 1
        end = time.monotonic() + 60
        while self._log.read_text(errors="replace").count("API listen on") < self._starts:
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"dockerd did not start:\n{self._log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Stops the engine, and with it its containers."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process = None


def _image(folder: Path, host: str) -> None:
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    source = busybox()
    assert source is not None
    shutil.copy(source, root / "bin" / "busybox")
    (root / "bin" / "sh").symlink_to("busybox")
    archive = folder / "image.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, arcname=".")
    subprocess.run(["docker", "-H", host, "import", str(archive), IMAGE], check=True, capture_output=True)


def docker(host: str, *arguments: str) -> str:
    """Runs the docker client; its output."""
    done = subprocess.run(["docker", "-H", host, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()
