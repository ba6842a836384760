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
    log = folder / "dockerd.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 60
        while "API listen on" not in log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"dockerd did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        _image(folder, host)
        yield host
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


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
