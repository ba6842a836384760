"""rules: list, describe, test, also a user's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.cli import rules, why_not
from analyzer.cli.docs_pages import PAGES, write_docs
from analyzer.diagnosis import RuleSet
from analyzer.errors import UserError
from analyzer.pipeline import Options
from analyzer.resources import data_dir

OWN = """\
id: KV901
cause: pool-low-fraction
title: A house rule
engines: [sglang, vllm]
needs: [pool.tokens]
when: pool.tokens < 1000
severity: info
confidence: proved
says: "The pool holds {pool.tokens}."
fix: Ask the platform team.
tests:
  fires: [{facts: {pool.tokens: 999}}]
  quiet: [{facts: {pool.tokens: 1000}}]
"""


def test_the_list_has_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert rules.command() == 0
    text = capsys.readouterr().out
    known = RuleSet.load().rules
    assert all(rule.id in text for rule in known)
    assert rules.command(format="json") == 0
    assert [r["id"] for r in json.loads(capsys.readouterr().out)] == [rule.id for rule in known]


def test_one_rule_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert rules.command(["kv002"]) == 0
    text = capsys.readouterr().out
    assert "KV002  The pool was sized with more bytes per token than it stores" in text
    assert "fires when" in text
    assert "fix" in text


def test_an_unknown_rule_suggests(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"did you mean KV0\d2 or"):
        rules.command(["KV0O2"])


def test_a_users_own_rules_are_tested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "KV901.yaml").write_text(OWN)
    assert rules.command(["test", str(tmp_path)]) == 0
    assert "1 rule: 2 passed, 0 failed" in capsys.readouterr().out
    (tmp_path / "KV901.yaml").write_text(OWN.replace("pool.tokens: 1000", "pool.tokens: 500"))
    assert rules.command(["test", str(tmp_path)]) == 1
    assert "1 failed" in capsys.readouterr().out


def test_why_not_shows_values(capsys: pytest.CaptureFixture[str]) -> None:
    log = str(data_dir("samples") / "sglang" / "wrapper_nextn_draftcfg1.log")
    assert why_not.explain_decision([log], Options(), "KV002") == 0
    text = capsys.readouterr().out
    assert "sizing.charged_ratio" in text
    assert "false" in text


def test_docs_describe_what_is_there(tmp_path: Path) -> None:
    written = {path.name: path.read_text() for path in write_docs(tmp_path)}
    assert set(written) == {"index.html", *(name for name, _ in PAGES)}
    assert 'id="KV002"' in written["rules.html"]
    assert "kv_cache_allocated" in written["lines.html"]
    assert "sizing.charged_ratio" in written["facts.html"]
    assert "pool-cell-inflation" in written["causes.html"]
