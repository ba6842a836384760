"""Loading rules: found, cached, replaced by the user's own, and described."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from analyzer.diagnosis.describe import describe, listing
from analyzer.diagnosis.ruleset import RuleSet, load_folder
from analyzer.errors import UserError
from tests.diagnosis.support import BASE, make_run, rule


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KVAUTOPSY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(BASE.replace("KV900", name) + text)


def test_a_folder_is_compiled_once(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "own", "KV901", "when: pool.tokens < 3\n")
    first = load_folder(tmp_path / "own")
    assert [r.id for r in first.rules] == ["KV901"]
    files = list(cache.iterdir())
    assert len(files) == 1
    assert load_folder(tmp_path / "own") == first
    assert list(cache.iterdir()) == files
    write(tmp_path / "own", "KV901", "when: pool.tokens < 4\n")
    assert load_folder(tmp_path / "own").rules != first.rules


def test_a_damaged_cache_is_made_anew(tmp_path: Path, cache: Path) -> None:
    write(tmp_path / "own", "KV901", "when: 'true'\n")
    load_folder(tmp_path / "own")
    next(cache.iterdir()).write_text("{")
    assert [r.id for r in load_folder(tmp_path / "own").rules] == ["KV901"]


def test_broken_rules_of_the_user_are_told_all_at_once(tmp_path: Path) -> None:
    write(tmp_path / "own", "KV901", "when: pool.bites\n")
    write(tmp_path / "own", "KV902", "wen: x\nwhen: 'true'\n")
    with pytest.raises(UserError) as caught:
        RuleSet.load([tmp_path / "own"])
    assert "own/KV901.yaml: when: 'pool.bites'" in str(caught.value)
    assert "own/KV902.yaml: wen: there is no such field" in str(caught.value)


def test_a_user_rule_takes_the_place_of_a_shipped_one(tmp_path: Path) -> None:
    shipped = RuleSet.load()
    name = next(r.id for r in shipped.rules if not r.benign)
    write(tmp_path / "own", name, "when: 'true'\n")
    mine = RuleSet.load([tmp_path / "own"])
    assert len(mine.rules) == len(shipped.rules)
    found = mine.get(name.lower())
    assert found is not None
    assert found.plain_title == "A rule of the tests"


def test_two_user_rules_with_one_id(tmp_path: Path) -> None:
    write(tmp_path / "a", "KV901", "when: 'true'\n")
    write(tmp_path / "b", "KV901", "when: 'true'\n")
    with pytest.raises(UserError, match=r"b/KV901.yaml: id: KV901 is used by a/KV901.yaml, too"):
        RuleSet.load([tmp_path / "a", tmp_path / "b"])


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        RuleSet.load([tmp_path / "nowhere"])
    with pytest.raises(UserError, match="no rule XX001"):
        RuleSet(()).why_not("XX001", make_run())


def test_a_start_needs_neither_yaml_nor_lark_nor_pydantic() -> None:
    code = (
        "import sys; from analyzer.diagnosis import RuleSet; RuleSet.load(); RuleSet.load();"
        "from analyzer.run.model import Run; RuleSet.load().judge(Run(1, 'x', engine='sglang'))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    check = code + "; print(sorted(m for m in ('yaml', 'lark', 'pydantic', 'polars') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_description() -> None:
    text = """
    versions: {sglang: ">=0.5.14"}
    needs: [pool.tokens]
    let: {half: pool.tokens / 2}
    when: half > 3 and default(pool.bytes, 0) < 4.5 GiB
    healthy: {sizing.cell: 20480 bytes/token}
    confidence: [{if: spec.enabled, then: proved}, likely]
    says: "Half is {half:.1f}."
    why: Because.
    """
    told = describe(rule(text))
    assert (told.topic, told.versions) == ("the pool", "sglang >=0.5.14")
    assert told.when == "half > 3 and default(pool.bytes, 0) < 4.5 GiB"
    assert told.healthy == {"sizing.cell": "20480 bytes/token"}
    assert told.confidence == "proved if spec.enabled, else likely"
    assert told.says == "Half is {half:.1f}."
    json.dumps(told.to_json())
    assert listing([rule(text)])[0]["id"] == "KV900"


def test_a_folder_without_rules_is_a_mistaken_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("rules are elsewhere")
    with pytest.raises(UserError, match=r"holds no rule \(\*\.yaml\)"):
        load_folder(tmp_path)
