"""Recordings of `attach` on real containers, as docs/attach.md shows them.

``python -m tests.support.recording`` writes them into the document anew; a test in tests/live compares the document
with what the program prints today.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.evidence.test_probes import healthy
from tests.support import dockerd
from tests.support.server import serve

SAMPLES = Path(__file__).parents[2] / "samples"
PAGE = Path(__file__).parents[2] / "docs" / "attach.md"
WIDTH = 100
_NOTICE = re.compile(r"(?:critical|warning|info) ")
ADDRESS = "http://127.0.0.1:8000"
"""What stands in a recording for the address at which the tests' own server listened."""


@dataclass(frozen=True)
class Scene:
    """A container that prints the first ``lines`` of a sample, pauses before some of them, and then does ``last``.

    At the first of its ``pauses`` it waits until somebody reads along: what is before it is history.
    """

    name: str
    sample: str
    lines: int
    pauses: Sequence[int]
    last: str
    left_out: tuple[str, str]
    """Beginnings of the first line of the page that the document leaves out, and of the first one after these."""
    probed: bool = False
    until: str = ""
    """Ctrl-C is pressed a second after a line that holds this; without it the container ends by itself."""

    @property
    def script(self) -> str:
        """What the container runs."""
        first, *others = self.pauses
        stops = "|".join(map(str, others))
        wait = "while [ ! -e /go ]; do busybox sleep 0.05; done"
        return (
            f"n=0; busybox head -n {self.lines} /samples/{self.sample} | while IFS= read -r line; do n=$((n+1)); "
            f'case $n in {first}) {wait};; {stops}) busybox sleep 0.7;; esac; echo "$line"; done; {self.last}'
        )


SCENES = (
    Scene("sglang-1", "sglang/wrapper_nextn.log", 81, (33, 37, 58, 70), "exit 3", ("ALSO", "NOISE")),
    Scene("vllm-1", "vllm/cpu_0.32.0_ngram_spec_greedy.log", 107, (22, 50, 55, 60, 90), "busybox sleep 60",
          ("WHY", "PROBED"), probed=True, until="outcome: serving"),
)  # fmt: skip


def record(host: str, scene: Scene) -> list[tuple[float, str]]:
    """Runs ``scene`` on the engine at ``host``: what `attach` prints, each line with the seconds since its start."""
    dockerd.docker(host, "run", "-d", "--network", "none", "--name", scene.name, "-v", f"{SAMPLES}:/samples:ro",
                   dockerd.IMAGE, "sh", "-c", scene.script)  # fmt: skip
    try:
        if not scene.probed:
            return _attach(host, scene)
        with serve(healthy()) as url:
            return [(at, line.replace(url, ADDRESS)) for at, line in _attach(host, scene, "--url", url)]
    finally:
        dockerd.docker(host, "rm", "-f", scene.name)


def _attach(host: str, scene: Scene, *options: str) -> list[tuple[float, str]]:
    environment = {**os.environ, "DOCKER_HOST": host, "NO_COLOR": "1", "COLUMNS": str(WIDTH)}
    command = [sys.executable, "-m", "analyzer", "attach", scene.name, "--plain", *options]
    started = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            if not lines:
                dockerd.docker(host, "exec", scene.name, "busybox", "touch", "/go")
            lines.append((time.monotonic() - started, line.rstrip("\n")))
            if scene.until and scene.until in line:
                time.sleep(1)
                process.send_signal(signal.SIGINT)
        lines.append((time.monotonic() - started, f"exit status {process.wait(30)}"))
    return lines


def shown(scene: Scene, lines: Sequence[tuple[float, str]]) -> list[str]:
    """A recording as the document has it: what is said while it runs with its time and clipped, then the page."""
    address = f" --url {ADDRESS}" if scene.probed else ""
    out = [f"$ kvautopsy attach {scene.name} --plain{address}"]
    page = False
    for at, line in lines:
        if page or not _NOTICE.match(line):
            if not page and scene.until:
                out.append("^C")
            page = True
            out.append(line)
        else:
            text = line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."
            out.append(f"{at:5.1f} s  {text}")
    return out


def shortened(scene: Scene, lines: Sequence[str]) -> list[str]:
    """``lines`` without the part of the page that the document leaves out."""
    first, next_ = (next(i for i, line in enumerate(lines) if line.startswith(head)) for head in scene.left_out)
    return [*lines[:first], "[...]", "", *lines[next_:]]


def place(scene: Scene) -> re.Pattern[str]:
    """Where a recording stands in the document: its second group."""
    return re.compile(rf"(<!-- recording: {scene.name} -->\n```\n)(.*?)(\n```)", re.DOTALL)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    with dockerd.engine() as engine:
        for one in SCENES:
            recorded = "\n".join(shortened(one, shown(one, record(engine, one))))
            text = place(one).sub(lambda found, new=recorded: found[1] + new + found[3], text)
    PAGE.write_text(text, encoding="utf-8")
