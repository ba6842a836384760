"""Object stores through fsspec: which objects an address names, and how one is opened and recognised again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analyzer.errors import UserError

_MARKS = ("ETag", "etag", "md5Hash", "content_md5", "md5", "version_id", "VersionId")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")
"""Where the stores that fsspec knows keep what changes with an object's bytes, and when it was written."""


@dataclass(frozen=True, slots=True)
class Object:
    """One object. ``named_by_user``: it is the address itself, not one of those below it."""

    name: str
    open: Callable[[], Any]
    named_by_user: bool


def is_remote(name: str) -> bool:
    """Whether ``name`` is an address and no path."""
    return "://" in name


def objects(name: str) -> list[Object]:
    """The objects that an address names: itself, those below it or those its pattern matches, sorted.

    Raises ``UserError`` (status 3) if there is none or the store cannot be asked.
    """
    system, place = _system(name)
    try:
        if any(mark in place for mark in "*?[") and not system.isfile(place):
            files = sorted(system.glob(place))
        else:
            files = sorted(system.find(place)) if system.isdir(place) else [place]
    except Exception as error:  # each store has its own kinds of errors
        raise unreachable(name, error) from error
    if not files:
        raise UserError(f"{name}: no such object", status=3)
    scheme = name.partition("://")[0]
    return [_object(system, file, place, name, scheme) for file in files]


def _object(system: Any, file: Any, place: Any, name: str, scheme: str) -> Object:
    shown = name if file == place else f"{scheme}://{str(file).lstrip('/')}"

    def opened() -> Any:
        try:
            return system.open(file, "rb")
        except Exception as error:
            raise unreachable(shown, error) from error

    return Object(shown, opened, file == place)


def identity(name: str) -> tuple[int, str]:
    """Size of the object at ``name``, and what the store says of its bytes: a hash, a version, or when it was written.

    The text is empty where the store says nothing of the kind, or cannot be asked.
    """
    try:
        system, place = _system(name)
        about = system.info(place)
    except Exception:
        return 0, ""
    if about.get("type") == "directory":
        return 0, ""
    said = next((about[key] for key in (*_MARKS, *_TIMES) if about.get(key)), "")
    return int(about.get("size") or 0), str(said).strip('"')


def _system(name: str) -> tuple[Any, Any]:
    try:
        import fsspec
    except ImportError:
        raise UserError(f"{name}: reading from an object store needs fsspec: pip install 'kvautopsy[s3]'") from None
    try:
        return fsspec.core.url_to_fs(name)  # type: ignore[no-any-return]
    except ImportError as error:
        raise UserError(f"{name}: reading from this store needs one more package: {error}") from error
    except Exception as error:
        raise unreachable(name, error) from error


def unreachable(name: str, error: Exception) -> UserError:
    """The sentence on an object that could not be read."""
    if isinstance(error, FileNotFoundError):
        return UserError(f"{name}: no such object", status=3)
    return UserError(f"{name}: cannot be read ({type(error).__name__}: {error})", status=3)
