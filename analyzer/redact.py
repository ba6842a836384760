"""Makes text from a log fit to be shown and sent on: secrets out, control characters visible.

Reports are pasted into issue trackers and opened in browsers, and a log is written by whoever can send the server a
request. So every text that comes from a log passes `clean` before it reaches a report: secrets become
``[redacted]``, escape sequences lose their effect, and characters that reorder or hide text are spelled out.

Everything here is linear in the length of the text: a long run that could begin a match is never scanned twice,
since each expression starts at a literal and the open-ended parts before it are looked at from the match, bounded.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

MASK = "[redacted]"

_NAME_HINTS = (
    "api_key", "api-key", "apikey", "access_key", "access-key", "accesskey", "private_key", "private-key",
    "key=", "key'", 'key"', "key:",
    "secret", "passw", "passphrase", "pwd", "credential", "signature", "sig=",
    "token=", "token'", 'token"', "token:", "token =", "_token", "-token ", "security-token",
)  # fmt: skip
_PREFIX_HINTS = (
    "hf_", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "_pat_", "glpat-", "xox", "akia", "asia", "aiza", "eyj",
    "nvapi-",
)  # fmt: skip
"""Lower-case texts of which one must occur for an expression to match. Each of them holds one of the shorter texts that
`redact` looks for first: most lines are done after these few searches."""

# Expressions are kept as text: `re` compiles and remembers one when it is first needed, and most never are.
_PEM = r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----)[^-]*(-----END [A-Z ]{0,40}PRIVATE KEY-----)?"
_URL = r"(://[^\s/@:'\"<>]{0,256}:)[^\s/@'\"<>]{1,512}(?=@)"
_SCHEME = (
    r"(?i)\b(Bearer\s{1,4}|Authorization['\"]?\s{0,4}[:=]\s{0,4}['\"]?(?:[A-Za-z]{3,12}\s{1,4})?)([^\s'\",;)\]}]{4,})"
)
_NOT_BEARER = frozenset(("token", "tokens", "auth", "authentication", "authorization", "scheme", "header"))
_PREFIXED = (
    r"(?<![A-Za-z0-9_])(?:hf_[A-Za-z0-9]{6,}|sk-[A-Za-z0-9_-]{8,}|gh[pousr]_[A-Za-z0-9]{10,}|"
    r"github_pat_[A-Za-z0-9_]{10,}|glpat-[A-Za-z0-9_-]{8,}|xox[abeprs]-[A-Za-z0-9-]{8,}|nvapi-[A-Za-z0-9_-]{10,}|"
    r"(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"
)
_NAMED = (
    r"(?i)(?P<name>api[_-]?keys?|access[_-]?key(?:[_-]?id)?|secret[_-]?(?:access[_-]?)?key|secrets?|"
    r"(?:private|encryption|account|storage|shared|license)[_-]?key|passw(?:or)?d|passphrase|pwd|credentials?|"
    r"x-amz-(?:signature|credential|security-token)|"
    r"signature|(?<=[?&])sig|(?<=[?&])key|token)"
    r"(?P<sep>['\"]?\s{0,4}(?:=>|[:=])\s{0,4}|['\"],\s{0,4}(?=['\"])|\s{1,4})"
    r"(?P<value>\[[^\]\n]{0,1024}\]|[bru]?'(?:[^'\\\n]|\\.){0,1024}(?:'|(?=\n)|\Z)|"
    r"[bru]?\"(?:[^\"\\\n]|\\.){0,1024}(?:\"|(?=\n)|\Z)|"
    r"[^\s,;)\]}&]+)"
)
_BEFORE = r"[\w.-]*$"
_KEPT_VALUES = frozenset(
    ("none", "null", "true", "false", "''", '""', "[]", "", "'none'", "unset", "notset", "...", "***", "'***'", MASK)
)
_NAME_BEFORE = (
    r"(?i)(?:^|[_.-])(?:hf|hub|hugging_?face|auth|access|refresh|session|security|id|bearer|api|bot|admin|"
    r"read|write|user|login|secret|service|wandb|github|gitlab|ray|jwt)[_-]?$"
)

_SGR = r"\x1b\[[0-9;:]{0,40}m"
_UNSAFE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u115f\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def redact(text: str) -> str:
    """``text`` with every secret that can be told apart from other text as ``[redacted]``."""
    lower = text.lower()
    if "private key-----" in lower:
        text = re.sub(_PEM, rf"\1 {MASK} \2", text)
    if "://" in lower:
        text = re.sub(_URL, rf"\1{MASK}", text)
    if "bearer" in lower or "authorization" in lower:
        text = re.sub(_SCHEME, _mask_scheme, text)
    if (
        "-" in lower or "_" in lower or "akia" in lower or "asia" in lower or "aiza" in lower or "eyj" in lower
    ) and any(hint in lower for hint in _PREFIX_HINTS):
        text = re.sub(_PREFIXED, _mask_prefixed, text)
    if (
        "key" in lower or "token" in lower or "pass" in lower or "pwd" in lower or "sig" in lower
        or "secret" in lower or "credential" in lower
    ) and any(hint in lower for hint in _NAME_HINTS):  # fmt: skip
        text = re.sub(_NAMED, _mask_named, text)
    return text


def neutralise(text: str) -> str:
    """``text`` without any character that moves a cursor, changes a screen, or reorders or hides other text.

    Line feed and tab stay. Colour codes are dropped; every other control character is spelled ``\\x1b``, bidirectional
    and invisible ones ``<U+202E>``, so that a reader sees that they were there.
    """
    if (text.isascii() and text.isprintable()) or not re.search(_UNSAFE, text):
        return text
    return re.sub(_UNSAFE, _spell, re.sub(_SGR, "", text))


def clean(text: str) -> str:
    """``text`` fit for a report: `neutralise`, then `redact`."""
    return redact(neutralise(text))


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Whether a launch argument or field called ``name`` holds a secret, whatever its value looks like."""
    last = name.rsplit(".", 1)[-1]
    return re.fullmatch(_NAMED, f"{last}=x") is not None or any(
        _is_secret(found["name"], last[: found.start()], "=", "x" * 8)
        for found in re.finditer(_NAMED, f"{last}={'x' * 8}")
        if found.end("name") == len(last)
    )


def clean_value(value: Any, name: str = "") -> Any:
    """A JSON-like ``value`` with all its texts cleaned; what stands under a secret's name is masked whole."""
    if isinstance(value, str):
        if name and value.lower() not in _KEPT_VALUES and is_secret_name(name):
            return MASK
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): clean_value(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_value(item, name) for item in value]
    return value


def _mask_scheme(found: re.Match[str]) -> str:
    if found[2].lower() in _NOT_BEARER or MASK.startswith(found[2]):
        return found[0]
    return found[1] + MASK


def _mask_prefixed(found: re.Match[str]) -> str:
    """Masks a token by its well-known prefix, unless it is a plain name such as ``hf_overrides``."""
    body = found[0].split("_" if "_" in found[0][:4] else "-", 1)[-1]
    looks_random = len(body) >= 20 or any(c.isdigit() for c in body) or (body != body.lower() and body != body.upper())
    return MASK if looks_random else found[0]


def _mask_named(found: re.Match[str]) -> str:
    before = re.search(_BEFORE, found.string[max(0, found.start() - 60) : found.start()])
    if not _is_secret(found["name"], before[0] if before else "", found["sep"], found["value"]):
        return found[0]
    value = found["value"]
    opening = value[: 2 if value[:1] in "bru" and value[1:2] in "'\"" else 1]
    quote = opening[-1:] if opening[-1:] in "'\"" else ""
    if value.startswith("["):
        return found["name"] + found["sep"] + "[" + MASK[1:]
    closing = quote if quote and len(value) > 1 and value.endswith(quote) else ""
    return found["name"] + found["sep"] + quote + MASK + closing


def _is_secret(name: str, before: str, separator: str, value: str) -> bool:
    """Whether ``value`` after ``before + name + separator`` is a secret and not a count, a path or prose."""
    bare = value.strip("'\"")
    if value.lower() in _KEPT_VALUES or bare.startswith(MASK) or bare.lower() in _KEPT_VALUES:
        return False
    flag = before.startswith("-")
    if separator.isspace() and not (flag or (before + name).isupper()):
        return False  # "the api key is missing"
    if separator.isspace() and (value.startswith("-") or not flag):
        return False
    if name.lower() == "token":
        upper = bool(before) and (before + name).isupper()
        plain = before in ("", "-", "--")
        if not (upper or re.search(_NAME_BEFORE, before) or (plain and len(bare) >= 8)):
            return False  # eos_token='</s>', "#new-token: 6"
        return not bare.replace(".", "").replace(",", "").isdigit()
    if name.lower() in ("signature", "secret", "secrets", "credential", "credentials") and ":" in separator:
        return value[:1] in "'\"" or len(bare) >= 16
    return True


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    if 0xD800 <= code <= 0xDFFF:
        return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
    return f"<U+{code:04X}>"
