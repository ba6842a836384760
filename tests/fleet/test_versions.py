"""Versions as spans: their order, their labels, and where token counts cannot be compared."""

from __future__ import annotations

import pytest

from analyzer.fleet.versions import NO_VERSION, comparable, span_of, span_of_label, version_key


def test_keys_sort_as_versions_do() -> None:
    names = ["", "0.5.9", "0.5.10rc1", "0.5.10", "0.5.10.post2", "0.6.0.dev3+g1a2b", "0.6"]
    keys = [version_key(name) for name in names]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
    assert version_key("0.5.9-custom build") == version_key("0.5.9")
    assert version_key("nightly") == NO_VERSION


@pytest.mark.parametrize(
    ("label", "span"),
    [
        ("0.5.17", span_of("0.5.17")),
        ("0.5.13-0.5.15", span_of(None, ">=0.5.13", "<=0.5.15")),
        ("0.5.13 or later", span_of(None, ">=0.5.13", "")),
        ("0.5.13 or earlier", span_of(None, "", "<=0.5.13")),
        ("0.8.0rc3.dev5+g5eeabc2a", span_of("0.8.0rc3.dev5+g5eeabc2a")),
        ("0.5.9-custom", span_of("0.5.9")),
    ],
)
def test_labels(label: str, span: object) -> None:
    assert span_of_label(label) == span


def test_order_of_spans() -> None:
    early, middle, late = (span_of_label(x) for x in ("0.5.13-0.5.15", "0.5.14-0.5.17", "0.5.16-0.5.18"))
    assert early.before(late) and not late.before(early)
    assert not early.before(middle) and not middle.before(late) and not early.before(early)
    assert span_of_label("0.5.3 or earlier").before(early)
    assert not span_of_label("0.5.3 or later").before(late)
    assert not span_of(None).before(late) and not early.before(span_of(None))


def test_what_can_be_compared() -> None:
    def both(one: str, other: str) -> bool:
        sides = {comparable("vllm", a, b) for a, b in ((span_of(one), span_of(other)), (span_of(other), span_of(one)))}
        assert len(sides) == 1
        return sides.pop()

    assert both("0.18.1", "0.20.0")
    assert not both("0.20.0", "0.20.1")
    assert both("0.20.1", "0.33.0")
    assert not comparable("vllm", span_of(None), span_of("0.20.1"))
    assert not comparable("vllm", span_of_label("0.19.0-0.20.1"), span_of("0.21.0"))
    assert comparable("sglang", span_of("0.5.13"), span_of(None))
