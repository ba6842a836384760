"""SARIF and JUnit: well formed, one result a finding, hostile text contained."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from analyzer.report.junit import to_junit
from analyzer.report.model import Report
from analyzer.report.sarif import to_sarif
from tests.report.conftest import HOSTILE


def test_sarif_has_one_result_a_finding_at_its_line(report: Report) -> None:
    run = json.loads(to_sarif(report))["runs"][0]
    assert [r["ruleId"] for r in run["results"]] == ["KV010", "CC001", "SF003"]
    assert [r["level"] for r in run["results"]] == ["error", "warning", "error"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "server.log" and place["region"]["startLine"] == 30
    assert len(run["results"][0]["relatedLocations"]) == 2


def test_sarif_names_a_failure_without_a_rule(report: Report) -> None:
    failed = report.runs[1]
    assert failed.failure is not None
    failed.findings, failed.failure.rule = [], ""
    result = json.loads(to_sarif(report))["runs"][0]["results"][-1]
    assert result["ruleId"] == "fail-free-below-target" and result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 120


def test_sarif_addresses_are_addresses(report: Report) -> None:
    report.runs[0].findings[0].evidence[0].source = "my logs/a b#1.log"
    place = json.loads(to_sarif(report))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20logs/a%20b%231.log"


def test_what_could_not_be_had_is_told(report: Report) -> None:
    assert "invocations" not in json.loads(to_sarif(report))["runs"][0]
    report.notes = ["The metrics could not be had: no answer in time."]
    report.inputs[0].note = "interrupted"
    (told,) = json.loads(to_sarif(report))["runs"][0]["invocations"]
    texts = [n["message"]["text"] for n in told["toolExecutionNotifications"]]
    assert texts == [f"{report.inputs[0].source}: interrupted", *report.notes]
    said = ElementTree.fromstring(to_junit(report)).find("testsuite/system-out")
    assert said is not None and (said.text or "").endswith(report.notes[0])


def test_junit_fails_what_is_wrong_and_skips_what_is_open(report: Report) -> None:
    root = ElementTree.fromstring(to_junit(report))
    first, second = root.findall("testsuite")
    assert (first.get("tests"), first.get("failures"), first.get("skipped")) == ("3", "2", "1")
    assert second.get("failures") == "1"
    failure = first.find("testcase/failure")
    assert failure is not None and "l. 36: Memory pool end" in (failure.text or "")


def test_junit_of_a_healthy_run_passes(report: Report) -> None:
    run = report.runs[0]
    run.findings, run.undecided = [], []
    suite = ElementTree.fromstring(to_junit(report)).findall("testsuite")[0]
    assert suite.get("failures") == "0" and suite.find("testcase") is not None


def test_hostile_text_stays_inside_its_element(hostile: Report) -> None:
    hostile.runs[0].verdict += "\x01\ufffe"
    root = ElementTree.fromstring(to_junit(hostile))
    assert {e.tag for e in root.iter()} <= {"testsuites", "testsuite", "testcase", "failure", "skipped", "system-out"}
    assert any(HOSTILE in (e.get("message") or "") for e in root.iter("failure"))
    results = json.loads(to_sarif(hostile))["runs"][0]["results"]
    assert all(HOSTILE in result["message"]["text"] for result in results)
