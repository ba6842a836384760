"""Rule files: what is checked when they are loaded, and hostile ones."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from analyzer.diagnosis.compiler import compile_file
from analyzer.diagnosis.yamlfile import MAX_BYTES, FileError, load_yaml
from tests.diagnosis.support import compiled, problems, rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("when: 'true'\nwenn: x", "wenn: there is no such field"),
        ("when: 'true'\nid: kv1", "id: 'kv1' is not two capital letters and three digits"),
        ("when: 'true'\nid: ZZ001", "'ZZ' is no topic"),
        ("when: 'true'\ncause: pool-wights-dominate", "near: pool-weights-dominate"),
        ("title: no condition", "when: is missing"),
        ("when: pool.bytes > pool.tokens", "when: pool.bytes > pool.tokens: compares bytes and tokens"),
        ("when: pool.bytes +", "when: 'pool.bytes +' ends too early"),
        ("when: pool.bites > 1", "when: 'pool.bites' is neither a fact"),
        ("when: 'true'\nneeds: [pool.bites]", "needs: 'pool.bites'"),
        ("when: 'true'\nhow: {pool.bites: x}", "how: 'pool.bites'"),
        ("when: 'true'\nproof: [pool.bites]", "proof: 'pool.bites'"),
        ("when: 'true'\nlet: {a: b + 1}", "let.a: 'b' is neither a fact"),
        ("when: 'true'\nlet: {Version: '1'}", "let: 'Version' cannot be a name"),
        ("when: 'true'\nhealthy: {sizing.cell: pool.bytes}", "healthy.sizing.cell: sets sizing.cell (bytes_per_token)"),
        ("when: 'true'\nhealthy: {sizing.sell: '1'}", "healthy: 'sizing.sell'"),
        ("when: 'true'\nseverity: grave", "severity: 'grave' is none of"),
        ("when: 'true'\nconfidence: [{if: 'true', then: sure}]", "confidence: 'sure' is none of"),
        ("when: 'true'\nconfidence: [{if: default(x, 1), then: likely}]", "put an expression with a comma in quotes"),
        ("when: 'true'\nlet: {a: default(pool.tokens, 1)}", "an expression with a comma inside {…} must be in quotes"),
        ("when: 'true'\nengines: [tgi]", "engines.0: 'tgi' is none of"),
        ("when: 'true'\nversions: 0.5", "versions"),
        ("when: 'true'\nversions: newer", "versions: 'newer' is no version constraint"),
        ("when: 'true'\nsays: 'a {pool.bites}'", "says: 'pool.bites' is neither"),
        ("when: 'true'\nsays: 'a {pool.bytes'", "opens or closes nothing"),
        ("when: 'true'\nsays: 'a {}'", "opens or closes nothing"),
        ("when: 'true'\nsays: 'a {pool.bytes:999999999d}'", "says"),
        ("when: 'true'\nfailure: true", "is not the cause of a failure"),
        ("when: 'true'\nbenign: {events: [x]}", "a benign rule names a benign-… cause"),
        ("cause: benign-other\nbenign: {events: [x]}", "why: a benign rule must say why"),
        ("cause: benign-other\nbenign: {}\nwhy: x", "benign: names neither events nor lines"),
        ("cause: benign-other\nbenign: {lines: ['(a+)+']}\nwhy: x", "benign.lines: the pattern '(a+)+'"),
        ("when: 'true'\ntests: {fires: [{fact: {}}]}", "there is no such field"),
        ("when: event.code == 3", "'event.code' is neither a fact"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(text: str, words: str) -> None:
    assert words in problems(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("when: 'true'\ntests: {}", "tests.fires: has no case"),
        ("when: 'true'\nfix: ''", "fix: is missing"),
        ("when: pool.bytes > 1 GiB\nneeds: [pool.tokens]", "needs: forgets pool.bytes"),
        ("when: a > 1 GiB\nlet: {a: pool.bytes}\nneeds: [pool.tokens]", "needs: forgets pool.bytes"),
    ],
)
def test_what_a_careful_author_mends(text: str, words: str) -> None:
    result = compiled(text)
    assert result["problems"] == []
    assert words in "\n".join(result["lint"])


@pytest.mark.parametrize(
    "text",
    [
        "when: default(pool.bytes, 0) > 1 GiB\nneeds: [pool.tokens]",
        "when: pool.bytes is known and pool.tokens > 1\nneeds: [pool.tokens]",
        "when: pool.bytes > 1 GiB",
        "when: failure.message ~ 'x' and outcome == 'serving' and pool.tokens > 1\nneeds: [pool.tokens]",
    ],
)
def test_needs_may_leave_out_what_is_guarded(text: str) -> None:
    assert compiled(text)["lint"] == []


def test_proof_defaults_to_needs_and_what_when_uses() -> None:
    made = rule(
        "when: seen(kv_full) and pool.tokens > 1 and x > 1 GiB\nlet: {x: pool.bytes}\nneeds: [pool.tokens, pool.bytes]"
    )
    assert made.proof == ["pool.tokens", "pool.bytes"]
    assert made.proof_kinds == ["kv_full"]
    assert rule("when: 'true'\nproof: [gpu.total, seen(a), 'field(b, c)']").proof_kinds == ["a", "b"]


def test_the_file_is_called_like_the_rule(tmp_path: Path) -> None:
    path = tmp_path / "KV001.yaml"
    path.write_text("id: KV002\ncause: pool-left-unused\ntitle: abc\nwhen: 'true'\nsays: x\n")
    assert "id: the file must be called KV002.yaml" in compile_file(path, "KV001.yaml")["problems"][0]


HOSTILE = {
    "aliases": "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n",
    "deep flow": "a: " + "[" * 60_000,
    "deep block": "".join(" " * n + "a:\n" for n in range(400)),
    "deep closed": "a: " + "[" * 3_000 + "]" * 3_000,
    "many": "a: [" + "x," * 20_000 + "]",
    "tag": "a: !!python/object/apply:os.system ['true']",
    "merge": "a: {<<: {b: 1}}",
    "twice": "a: 1\na: 2",
    "no mapping": "- a\n- b",
    "scalar": "hello",
    "empty": "",
    "control": "a: \x00",
    "not utf-8": "a: ",
    "huge number": "id: " + "9" * 100_000,
    "complex key": "? [a, b]\n: c",
    "documents": "a: 1\n---\nb: 2\n",
    "date": "id: 2026-99-99",
    "unclosed": "a: {b: 1",
    "expression": "id: KV001\ncause: pool-left-unused\ntitle: abc\nsays: x\nwhen: '" + "(" * 3_900 + "'",
    "not": "id: KV001\ncause: pool-left-unused\ntitle: abc\nsays: x\nwhen: '" + "not " * 950 + "true'",
    "number": "id: KV001\ncause: pool-left-unused\ntitle: abc\nsays: x\nwhen: 1e99 * 1e99 > 1e99 * 9e99 * 9e99 * 9e99",
    "regex": "id: KV001\ncause: pool-left-unused\ntitle: abc\nsays: x\nwhen: failure.message ~ '(x+x+)+y'",
    "rank": "id: KV001\ncause: pool-left-unused\ntitle: abc\nsays: x\nwhen: 'true'\nrank: 99999999999999999999",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_end_in_sentences(name: str, tmp_path: Path) -> None:
    path = tmp_path / "KV001.yaml"
    path.write_bytes(HOSTILE[name].encode() + (b"\xff\xfe\xfa" if name == "not utf-8" else b""))
    started = time.perf_counter()
    result = compile_file(path, "KV001.yaml")
    assert time.perf_counter() - started < 5
    if name == "number":
        assert result["rule"] is not None  # it is a number out of range when it is evaluated: unknown, not a crash
        return
    assert result["rule"] is None
    assert result["problems"]
    for sentence in result["problems"]:
        assert sentence.startswith("KV001.yaml: ")
        assert len(sentence) < 600


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "KV001.yaml"
    path.write_bytes(b"#" * (MAX_BYTES + 1))
    assert "is larger than 128 KiB" in compile_file(path, "x")["problems"][0]


def test_a_folder_called_like_a_rule(tmp_path: Path) -> None:
    (tmp_path / "KV001.yaml").mkdir()
    assert "cannot be read" in compile_file(tmp_path / "KV001.yaml", "x")["problems"][0]


def test_plain_yaml_is_read() -> None:
    assert load_yaml(b"a: {b: [1, 0.5, true, null, 'x']}") == {"a": {"b": [1, 0.5, True, None, "x"]}}
    with pytest.raises(FileError, match="line 2"):
        load_yaml(b"a: 1\nb: &x 2")


def test_a_wrong_call_is_told_once() -> None:
    for text in (
        "when: default() > 1",
        "when: a > 1\nlet: {a: 'default(pool.tokens)'}",
        "when: seen()",
        "when: a\nlet: {a: known()}",
    ):
        assert len(problems(text + "\nneeds: [pool.tokens]").splitlines()) == 1
