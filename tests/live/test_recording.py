"""docs/attach.md shows what `attach` really prints: its recordings are made again and compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support import dockerd
from tests.support.recording import PAGE, SCENES, WIDTH, Scene, place, record, shown

_TIMED = re.compile(r"^ *\d+\.\d s  (.*)")
_SAID = re.compile(r"(\w+) +(?:([A-Z]{2}\d{3}) )?(?:l\. (\d+)  )?([^:(.]*(?:: \w+$)?)")


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    if why := dockerd.missing():
        pytest.skip(why)
    with dockerd.engine() as address:
        yield address


def documented(scene: Scene) -> list[str]:
    found = place(scene).search(PAGE.read_text(encoding="utf-8"))
    assert found, f"docs/attach.md has no recording of {scene.name}"
    return found[2].split("\n")


def notices(lines: list[str]) -> list[tuple[str | None, ...]]:
    """Severity, rule and title of each notice; figures in it depend on what was read at that moment."""
    texts = [found[1] for line in lines if (found := _TIMED.match(line))]
    said = []
    for text in texts:
        found = _SAID.match(text)
        assert found, text
        said.append((found[1], found[2], found[4].strip()))
    return said


def standing(said: list[tuple[str | None, ...]]) -> list[tuple[str | None, ...]]:
    """Without what was taken back: whether that is said at all depends on where a pause falls."""
    gone = {rule for _, rule, title in said if title.startswith("no longer holds")}
    return [notice for notice in said if notice[1] not in gone or notice[1] is None]


def page(lines: list[str]) -> list[str]:
    """The lines of the page, without the seconds that reading took."""
    return [re.sub(r"\d+\.\d\d s$", "T s", line) for line in lines[1:] if not _TIMED.match(line)]


@pytest.mark.docker
@pytest.mark.xdist_group("docker")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_the_document_shows_what_is_printed(host: str, scene: Scene) -> None:
    printed, text = shown(scene, record(host, scene)), documented(scene)
    assert text[0] == printed[0]
    assert max(map(len, text)) <= WIDTH + 11
    now, then = standing(notices(printed)), standing(notices(text))
    for said in then:
        assert said in now, f"{said} is not said any more; `python -m tests.support.recording` writes it anew"
    assert [n for n in then if n[1] is None] == [n for n in now if n[1] is None], "outcomes in their order"
    assert {n for n in now if n[0] in ("critical", "warning")} <= set(then)
    whole = "\n".join(page(printed))
    at = 0
    for part in re.split(r"\n?\[\.\.\.\]\n\n?", "\n".join(page(text))):
        at = whole.find(part, at)
        assert at >= 0, f"docs/attach.md, recording of {scene.name}: no longer printed like this:\n{part}"
        at += len(part)
    assert whole.endswith(part)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_recording_is_whole(scene: Scene) -> None:
    """Without a Docker engine the document can at least be looked at."""
    text = documented(scene)
    assert text[-1].startswith("exit status ")
    assert sum(line == "[...]" for line in text) == 1
    assert any("outcome: serving" in line for line in text)
    assert any(line.startswith("PROBED") for line in text) == scene.probed
