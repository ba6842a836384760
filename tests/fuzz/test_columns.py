"""Any runtime log gives one report and one list of events, whether it is read by columns or line by line."""

from __future__ import annotations

import tempfile
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.event_lines import EventLines
from analyzer.framing import frame
from analyzer.listing import all_events
from analyzer.parsing import default_catalog
from tests.bulk.disturbed import disturbed_log
from tests.bulk.test_same import differences, report_by
from tests.fuzz.test_program import budget

QUICK = budget(1) == 1
"""The same few logs each time; ``make fuzz`` takes new ones."""


@settings(max_examples=budget(4), deadline=None, derandomize=QUICK)
@given(st.integers(0, 2**32), st.sampled_from([300_000, 700_000, 1 << 20, 1 << 23]))
def test_one_report(seed: int, block: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = disturbed_log(seed, Path(folder))
        plain, _ = report_by(path, patch, 1 << 62)
        columns, _ = report_by(path, patch, 300_000, block)
    assert differences(plain, columns)[:5] == []


@settings(max_examples=budget(2), deadline=None, derandomize=QUICK)
@given(st.integers(0, 2**32))
def test_one_list_of_events(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = disturbed_log(seed, Path(folder))
        columns = "".join(all_events([str(path)])).splitlines()
        lines, catalog, engine = EventLines(), default_catalog(), ""
        plain = []
        for record in frame([path.read_bytes()], str(path)):
            event = catalog.match(record, engine)
            if event is not None:
                engine = event.engine if event.engine != "common" else engine
                plain.append(lines.line(event))
    for one, other in zip_longest(plain, columns):
        assert one == other
