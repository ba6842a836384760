"""Prefixes that collectors put around an engine's line, stacked in any order.

Docker compose, docker's json-file, CRI, kubectl (``--timestamps``, ``--prefix``), stern, journald, syslog, Buildkite
and other bracketed time stamps, torchrun and srun rank labels, Markdown quotes, and prefixes that no list knows: what
stands before an engine prefix in the same shape on three lines is a prefix.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from analyzer.framing import engine
from analyzer.framing.objects import read_json, read_logfmt
from analyzer.framing.prefixes import begins, common_head, enclosing, expression, is_known, names_tasks, services, shape
from analyzer.patterns import on_demand

_MAX_LAYERS = 8
_COUNTED = 6
"""Lines in a row whose numbers go up by one, after which these are the lines' numbers."""
_NEVER = -2
"""Instead of a count of numbered lines: a number in front is no matter of its own here."""
_SIDES = "│┃║"
"""Sides of the frame that terminal programs draw around a log (k9s, lazydocker, rich)."""
_RFC3339 = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"

_PATTERNS = {
    "cri": rf"({_RFC3339}) (?:stdout|stderr) ([FP])(?: |$)",
    "time": rf"\[?({_RFC3339}|\d{{4}}[-/]\d\d[-/]\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?)\]?(?:[ \t]|$)",
    # what logging's best known formatter puts between time and message: "- name - LEVEL - "
    "dashes": rf"-(?: [\w.]{{1,60}} -)? (?:{engine.LEVELS}) - ",
    "compose": r"([A-Za-z0-9][\w.-]*)(\s*)\| ?",
    "pod": r"\[(pod/[^\]\s]+)\] ?",
    # stern: the pod of a deployment, whose name ends in two made-up parts, and its container
    "stern": r"([a-z][a-z\d-]{1,80}-[\da-f]{6,10}-[bcdf-hj-np-tv-z2456789]{5}) ([a-z][a-z\d-]{0,62})(?: |$)",
    "label": r"\[(rank\d+|default\d+|[\w.-]+:\d+)\]: ?",
    "journal": (
        r"(?:<\d{1,3}>\d? ?)?([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?) ([\w.-]+) "
        r"([A-Za-z_][\w.@\\/-]*)(?:\[(\d+)\])?: ?"
    ),
    "journal_iso": rf"({_RFC3339}) ([\w.-]+) ([A-Za-z_][\w.@\\/-]*)\[(\d+)\]: ?",
    "fraction": r"[.,](\d+)",
    "zone": r"([+-])(\d\d):?(\d\d)$",
    "short": r"(\d\d-\d\d \d\d:\d\d:\d\d[.,]\d{3,6})(?: (?=\S))?",
    "severity": rf"(?:{engine.LEVELS}|NOTICE|DEFAULT) (?={_RFC3339} )",  # Google's log export
    "logger": rf"- [A-Za-z_][\w.]* - (?:{engine.LEVELS}) - ?",  # python's logging around what a child printed
    "piped": rf"\| *(?:{engine.LEVELS}|SUCCESS|TRACE) *\| *[\w.:<>]{{1,120}} *(?:\| ?|- )",  # loguru, FastChat
    "srun": r" *(\d{1,8}): ",
    "pm2": r"(\d+\|[\w.-]+) *\| ",
    "quote": r"(?:> ?)+",
    "frame": r' *File "[^"]{1,400}", line \d',
    "bold": r"\*\*(.*?)\*\*",
    "numbered": r".*[-_]\d+$",
    "start": rf"Traceback \(|\[\d{{4}}-\d\d|\([\w.]+(?: rank=\d+)? pid=|"
    rf"(?:{engine.LEVELS}) \d\d-\d\d |(?:{engine.LEVELS}):\s{{2,}}",
}

_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_pattern = on_demand(_PATTERNS)


@dataclass(slots=True)
class Outer:
    """What the outer prefixes of one line said: the source's name, the innermost stamp, whether more of it follows."""

    stream: str = ""
    stamp: str = ""
    process: str = ""
    partial: bool = False
    fields: dict[str, Any] | None = None
    """The keys of a JSON formatter's object (``levelname``, ``processName``, …) when the line was one."""

    @property
    def time(self) -> float | None:
        """The stamp's time in seconds since the epoch; None without one."""
        return read_time(self.stamp) if self.stamp else None


class Peeler:
    """Strips outer prefixes, and learns those it has no rule for from the lines seen so far."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._quoted = False
        self._number = self._counted = 0
        """The last line's number, and how many lines in a row were numbered; -1 once the numbers are no lines'."""
        self._heads: dict[str, int] = {}
        self._learnt: list[re.Pattern[str]] = []
        self._head: re.Pattern[str] | None = None
        """What nearly all first lines begin with, taken off once; ``_tasks``: it is the number of a task."""
        self._tasks = False
        self._around = ""
        self._collected = False
        """Whether JSON objects hold lines as they were printed, whatever else they say."""

    def peel(self, text: str) -> tuple[str, Outer]:
        """``text`` without its outer prefixes, and what they said."""
        outer, head = Outer(), self._head
        if self._around:
            text = self._bare(text)
        for _ in range(_MAX_LAYERS):
            rest = self._layer(text, outer)
            if rest is None and head is not None and (match := head.match(text)):
                rest, head = text[match.end() :], None
                if self._tasks:
                    outer.process = match[0].strip(" :")
            if rest is None:
                break
            text = rest
        return text, outer

    @property
    def leaves_words(self) -> bool:
        """Whether a line of letters and figures alone passes as it is: the prefixes of all lists hold other signs."""
        return self._head is None and not self._around

    def look_ahead(self, lines: list[str]) -> None:
        """Looks at the first lines of a log before any of them is peeled."""
        if 3 * sum(map(is_known, lines)) > len(lines):
            return
        objects = [read_json(line, Outer()) for line in lines if line.startswith("{")]
        self._collected = any(begins(message) for message in objects if message)
        self._around = enclosing(lines)
        lines = [self._bare(line) for line in lines] if self._around else lines
        self._names.update(services(lines))
        scout = Peeler()
        scout._names.update(self._names)
        scout._counted = _NEVER
        texts = [scout.peel(line)[0] for line in lines]
        self._head = common_head(texts)
        if self._head is not None:
            self._tasks, self._counted = names_tasks(self._head, texts), _NEVER

    def _bare(self, text: str) -> str:
        """``text`` without the marks around it."""
        text = text.strip()
        if len(text) < 2 or not text.startswith(self._around):
            return text
        if self._around == "`":
            return text[1:-1] if text.endswith("`") else text
        import json

        try:
            return str(json.loads(text.removesuffix(",")))
        except ValueError:
            return text

    def learn(self, head: str) -> bool:
        """Tells that ``head`` stood before an engine prefix; True once its shape counts as an outer prefix."""
        if len(head) > 120 or (not head[-1:].isspace() and head[-1:] not in ":|]>-"):
            return False
        form = shape(head)
        if len(self._heads) < 1000 or form in self._heads:
            self._heads[form] = self._heads.get(form, 0) + 1
        if self._heads.get(form, 0) == 3 and len(self._learnt) < 8:
            self._learnt.append(expression(form))
        return self._heads.get(form, 0) >= 3

    def _layer(self, text: str, outer: Outer) -> str | None:
        """One layer off ``text``, or None if there is none."""
        first = text[:1]
        if first == "(" and not self._learnt:
            return None
        if first == "{":
            return read_json(text, outer, formatters=not self._collected)
        if first in _SIDES and text:
            return text[1:].removeprefix(" ").rstrip().removesuffix(first).rstrip()
        rest = None
        if first == "[":
            rest = _bracket(text, outer)
        if first.isdigit() or first == " ":
            rest = _numeric(text, outer)
            rest = self._task(text, outer) if rest is None else rest
        elif first == ">":
            rest = self._quote(text)
        elif first == "-" and outer.stamp:
            match = _pattern("logger").match(text)
            rest = text[match.end() :] if match else None
        elif first == "|" and outer.stamp:
            match = _pattern("piped").match(text)
            rest = text[match.end() :] if match else None
        elif first in "tl" and 'msg="' in text:
            rest = read_logfmt(text, outer)
        elif first == "*":
            match = _pattern("bold").match(text)
            rest = match[1] + text[match.end() :] if match and _pattern("start").match(match[1]) else None
        if rest is None and (first.isalpha() or first == "<"):
            match = _pattern("journal").match(text)
            if match and not (self._head is not None and self._head.match(text)):  # a time alone, and two words
                return _journal(text, match, outer)
            if match := _pattern("severity").match(text):
                return text[match.end() :]
            if match := _pattern("stern").match(text):
                outer.stream = _join(outer.stream, f"{match[1]}/{match[2]}")
                return text[match.end() :]
        if rest is None and "|" in text[:80] and (first.isalnum()):
            rest = self._compose(text, outer)
        if rest is None:
            for learnt in self._learnt:
                if match := learnt.match(text):
                    if len(self._learnt) > 1:  # a single one says nothing, and its first lines went without a name
                        outer.stream = outer.stream or re.sub(r"\d+", "", match[0]).strip(" |:>-[]")
                    return text[match.end() :]
        return rest

    def _task(self, text: str, outer: Outer) -> str | None:
        """``3: text``: the task's number that srun prints, or the line's number, which is one more in each line."""
        match = _pattern("srun").match(text) if self._counted != _NEVER else None
        if match is None:
            return None
        number, at = int(match[1]), match.end()
        if self._counted >= 0 and number != self._number:
            self._counted = self._counted + 1 if number == self._number + 1 else -1 if number <= self._number else 0
            self._number = number
        if self._counted >= _COUNTED:
            return text[at:]
        if _pattern("start").match(text, at) is None or number >= 10_000:
            return None
        outer.process = match[1]
        return text[at:]

    def _quote(self, text: str) -> str | None:
        match = _pattern("quote").match(text)
        assert match
        rest = text[match.end() :]
        if self._quoted or any(_pattern(name).match(rest) for name in ("start", "frame", "time")):
            self._quoted = True
            return rest
        return None

    def _compose(self, text: str, outer: Outer) -> str | None:
        """``name  | text``: believed when the name is numbered and padded, or once an engine line followed it."""
        match = _pattern("compose").match(text)
        if match is None or (text[match.start(2) :].startswith("|") and match[2] == "" and match[1] not in self._names):
            return None
        name, rest = match[1], text[match.end() :]
        if name.isdigit() or (match[2] == "" and name not in self._names):
            return None
        if name not in self._names:
            numbered = len(match[2]) > 1 and _pattern("numbered").match(name)
            if not numbered and not _pattern("start").match(rest):
                return None
            if len(self._names) < 256:
                self._names.add(name)
        outer.stream = _join(outer.stream, name)
        return rest


def _bracket(text: str, outer: Outer) -> str | None:
    if text.startswith("[pod/") and (match := _pattern("pod").match(text)):
        outer.stream = _join(outer.stream, match[1])
        return text[match.end() :]
    if match := _pattern("label").match(text):
        if "rank" in match[1] or "default" in match[1]:
            outer.process = match[1]
            return text[match.end() :]
        return None
    if text[1:2].isdigit() and text[5:6] in "-/" and (match := _pattern("time").match(text)):
        rest = text[match.end() :]
        # "[2026-11-30 02:55:49] text" is SGLang's own prefix unless an engine's prefix follows it
        if "T" in match[1] or _pattern("start").match(rest):
            outer.stamp = match[1]
            return rest
    return None


def _numeric(text: str, outer: Outer) -> str | None:
    if text[4:5] in ("-", "/") and not engine.pattern("sglang_cut").match(text):
        if match := _pattern("cri").match(text):
            outer.partial = match[2] == "P"
        elif match := _pattern("journal_iso").match(text):
            return _journal(text, match, outer)
        else:
            match = _pattern("time").match(text)
        if match is None:
            return None
        outer.stamp = match[1]
        dashes = _pattern("dashes").match(text, match.end())
        return text[(dashes or match).end() :]
    if text[2:3] == "-" and (match := _pattern("short").match(text)):
        outer.stamp = outer.stamp or match[1]
        return text[match.end() :]
    if match := _pattern("pm2").match(text):
        outer.stream = _join(outer.stream, match[1])
        return text[match.end() :]
    return None


def _journal(text: str, match: re.Match[str], outer: Outer) -> str:
    outer.stamp = match[1]
    outer.stream = _join(outer.stream, f"{match[2]} {match[3]}")
    return text[match.end() :]


def _join(outer: str, inner: str) -> str:
    return f"{outer}/{inner}" if outer else inner


def read_time(text: str) -> float | None:
    """A collector's stamp as seconds since the epoch; its zone is heeded, a missing zone is read as UTC."""
    if text[:3].isalpha():
        month = _MONTHS.find(text[:3]) // 3 + 1
        return engine.seconds_without_year(f"{month:02}-{text[4:6].strip():0>2} {text[7:15]}")
    if text[2:3] == "-":
        return engine.seconds_without_year(text[:14])
    if not engine.pattern("date").match(text):
        return None
    time = engine.seconds(f"{text[:10].replace('/', '-')} {text[11:19]}")
    if time is None:
        return None
    if fraction := _pattern("fraction").match(text, 19):
        time += float(f"0.{fraction[1][:9]}")
    if zone := _pattern("zone").search(text, 19):
        time -= (1 if zone[1] == "+" else -1) * (int(zone[2]) * 3600 + int(zone[3]) * 60)
    return time
