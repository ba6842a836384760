"""Reads one YAML file of bounded size, depth and count, without aliases, tags or repeated keys.

Rule files come from users, too: a bomb must end in a sentence, never in a hang, a traceback or running code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

MAX_BYTES = 128 * 1024
MAX_DEPTH = 16
MAX_NODES = 8_000


class FileError(ValueError):
    """A file that cannot be used as a rule; the text says why."""


def read_bytes(path: Path) -> bytes:
    """The bytes of a rule file. Raises ``FileError`` if it is too large or cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_BYTES:
        raise FileError(f"is larger than {MAX_BYTES // 1024} KiB: no rule is")
    return data


def load_yaml(data: bytes) -> Any:
    """The value of a YAML document. Raises ``FileError``."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml, data, loader)
        return yaml.load(data, Loader=_strict(loader))  # noqa: S506  # a subclass of the safe loader
    except FileError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}: " if mark is not None else ""
        raise FileError(f"is no YAML: {place}{error.problem or error.context or 'cannot be read'}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        reason = str(error).split("\n", 1)[0][:200] or type(error).__name__
        raise FileError(f"is no YAML: {reason}") from None


def _check_events(yaml: Any, data: bytes, loader: Any) -> None:
    """Refuses what could grow when it is built, while nothing is built yet."""
    depth = 0
    for nodes, event in enumerate(yaml.parse(data, Loader=loader), 1):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise FileError(f"line {event.start_mark.line + 1}: anchors and aliases are not allowed in rules")
        if getattr(event, "tag", None):
            raise FileError(f"line {event.start_mark.line + 1}: the tag {event.tag!r} is not allowed in rules")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise FileError(f"is nested more than {MAX_DEPTH} levels deep")
        if nodes > MAX_NODES:
            raise FileError(f"has more than {MAX_NODES:,} parts")


def _strict(base: Any) -> Any:
    """A loader like ``base`` that refuses a key given twice and keys that are no text."""

    class StrictLoader(base):  # type: ignore[misc]  # the base is chosen at run time
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen: set[Any] = set()
            for key, _ in node.value:
                line = key.start_mark.line + 1
                if not isinstance(key.value, str) or key.tag == "tag:yaml.org,2002:merge":
                    raise FileError(f"line {line}: a key must be a plain word")
                if key.value in seen:
                    raise FileError(f"line {line}: {key.value!r} is given twice")
                seen.add(key.value)
            return dict(super().construct_mapping(node, deep))

    return StrictLoader
