"""compare in every form: A against B and C, what cannot be compared, hostile names, secrets, a real browser."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from analyzer.fleet.compare import Comparison, Difference, Share, compare
from analyzer.fleet.compare_view import arrow, steps_of, verdict_of
from analyzer.fleet.compare_write import render
from analyzer.pipeline import read_runs
from analyzer.resources import data_dir
from analyzer.run.model import Run
from tests.report.browser import chromium
from tests.security.run_cli import quiet, run

SAMPLES = data_dir("samples")
A, B, C = (SAMPLES / "sglang" / f"wrapper_{name}.log" for name in ("nospec", "nextn", "nextn_draftcfg1"))
FORMS = ("text", "json", "markdown", "html")
VLLM = """\
INFO 08-19 09:12:00 [utils.py:294] vLLM API server version {version}
INFO 08-19 09:12:01 [utils.py:233] non-default args: {{'model': '/models/m', 'max_model_len': {length}}}
INFO 08-19 09:12:02 [model.py:1510] Using max model len {length}
INFO 08-19 09:13:00 [gpu_worker.py:298] Available KV cache memory: 60.00 GiB
INFO 08-19 09:13:01 [kv_cache_utils.py:1087] GPU KV cache size: {tokens:,} tokens
INFO 08-19 09:13:01 [kv_cache_utils.py:1091] Maximum concurrency for {length:,} tokens per request: {fits:.2f}x
"""


def one(path: Path) -> Run:
    return read_runs([str(path)])[-1]


def vllm(folder: Path, version: str, length: int = 32768, tokens: int = 400_000) -> Run:
    path = folder / f"{version}-{length}-{tokens}.log"
    path.write_text(VLLM.format(version=version, length=length, tokens=tokens, fits=tokens / length))
    found = one(path)
    assert (found.version, found.facts.value("pool.tokens")) == (version, tokens)
    assert found.facts.value("limit.context") == length
    return found


@pytest.fixture(scope="module")
def both() -> list[Comparison]:
    first = one(A)
    return [compare(first, one(B)), compare(first, one(C))]


def test_the_command_takes_three_logs_and_writes_every_form(tmp_path: Path) -> None:
    files = [tmp_path / f"c.{ending}" for ending in ("html", "md", "json", "txt")]
    done = run("compare", A, B, C, *[part for file in files for part in ("-o", file)])
    assert done.returncode == 0, quiet(done)
    assert done.stdout.decode().count("POOL ") == 2
    told = json.loads(files[2].read_text())
    assert [Path(row["after"]["source"]).name for row in told] == [B.name, C.name]
    assert {Path(row["before"]["source"]).name for row in told} == {A.name}
    assert [round(row["change"]) for row in told] == [774081 - 3281428, 3096324 - 3281428]
    for file in files:
        for name in (A.name, B.name, C.name):
            assert name in file.read_text().replace("\\", ""), (file, name)
    assert sorted(tmp_path.iterdir()) == sorted(files)


def test_wrong_endings_and_missing_runs_are_sentences(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("no log\n")
    for args, status, words in (
        (("compare", A), 2, "needs two logs"),
        (("compare", A, B, "-o", tmp_path / "c.pdf"), 2, "use one of .html .md .json .txt"),
        (("compare", A, tmp_path / "x.txt"), 3, "holds no run"),
        (("compare", A, B, "-o", tmp_path / "none" / "c.html"), 2, "cannot be written"),
    ):
        done = run(*args)
        assert done.returncode == status, args
        assert words in quiet(done)
    assert [path.name for path in tmp_path.iterdir()] == ["x.txt"]


def test_every_form_says_the_same_figures(both: list[Comparison]) -> None:
    for form in FORMS:
        text = render(both, form).replace(",", "").replace("\\", "").replace("\u2212", "-")
        for result in both:
            assert f"{result.change:+.0f}" in text or str(result.change) in text, form
            assert f"{result.shares[0].tokens:+.0f}" in text or str(result.shares[0].tokens) in text, form


def test_the_steps_lead_from_one_pool_to_the_other(both: list[Comparison]) -> None:
    for result in both:
        steps = steps_of(result)
        assert steps[0].start == result.pool_before
        assert steps[-1].end == pytest.approx(result.pool_after, abs=1)
        assert all(a.end == b.start for a, b in itertools.pairwise(steps))


def test_the_verdict(both: list[Comparison]) -> None:
    assert verdict_of(both[0]) == (
        "This pool is 2,507,347 tokens smaller than the first run's. First of all: sizing.cell, bytes per token that "
        "the sizing charged (16,387 bytes -> 81,979 bytes), -2,624,732 tokens."
    )
    assert verdict_of(compare(one(A), one(A))) == "Both pools hold the same number of tokens."
    assert "larger" in verdict_of(compare(one(B), one(A)))


# What cannot be compared.


def test_the_meaning_of_tokens_changed_at_0_20_1(tmp_path: Path) -> None:
    def said(first: str, second: str) -> bool:
        result = compare(vllm(tmp_path, first), vllm(tmp_path, second, tokens=100_000))
        return any("changed its meaning at 0.20.1" in warning for warning in result.warnings)

    assert said("0.20.0", "0.20.1") and said("0.20.1", "0.18.1")
    assert not said("0.18.1", "0.20.0") and not said("0.20.1", "0.24.0")


def test_a_bracket_on_both_sides_of_it(tmp_path: Path) -> None:
    first, second = vllm(tmp_path, "0.20.0"), vllm(tmp_path, "0.21.0", tokens=100_000)
    first.version, first.version_range = None, (">=0.19.0", "<=0.21.0")
    assert any("not surely on the same side" in warning for warning in compare(first, second).warnings)
    first.version_range = (">=0.21.0", "<=0.22.0")
    assert not any("changed its meaning" in warning for warning in compare(first, second).warnings)


def test_another_context_length(tmp_path: Path) -> None:
    first = vllm(tmp_path, "0.24.0")
    warnings = compare(first, vllm(tmp_path, "0.24.0", length=65536)).warnings
    assert any("max_model_len differs (32,768 and 65,536)" in warning for warning in warnings)
    assert not any("max_model_len" in warning for warning in compare(first, vllm(tmp_path, "0.24.1")).warnings)


def test_another_number_of_ranks(both: list[Comparison]) -> None:
    first, second = one(A), one(B)
    assert not any("ranks" in warning for warning in both[0].warnings)
    second.facts.add("args.tensor_parallel_size", 4)
    second.facts.add("args.pipeline_parallel_size", 2)
    warnings = compare(first, second).warnings
    assert any("split over 1 and 8 ranks" in warning for warning in warnings)


def test_a_run_without_a_pool(tmp_path: Path) -> None:
    failed = one(SAMPLES / "failures" / "sglang_0.5.17_dense_too_small_mf.log")
    result = compare(one(A), failed)
    assert result.change is None
    for form in FORMS:
        assert ("prints no pool" in render([result], form)) == (form != "json")


# What a log may do to a page.


class Seen(HTMLParser):
    """Tags of a page, and whether it asks for anything from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [str(v) for k, v in attrs if k in ("src", "href", "action") or k.startswith("on")]


HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e|x"


def hostile() -> Comparison:
    first, second = one(A), one(B)
    first.source = second.source = f"a{HOSTILE}.log"
    first.facts.add("args.model_path", HOSTILE)
    second.facts.add("args.model_path", HOSTILE * 2)
    first.facts.add("args.api_key", "the-old-secret")
    second.facts.add("args.api_key", "the-new-secret")
    result = compare(first, second)
    result.arguments.append(Difference(f"args.{HOSTILE}", 1, 2, "any"))
    result.shares.append(Share(f"inputs: {HOSTILE}", None, None, 1.0))
    result.warnings.append(HOSTILE)
    return result


@pytest.mark.parametrize("form", FORMS)
def test_hostile_text_and_secrets(form: str) -> None:
    text = render([hostile()], form)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\x9b\u202a-\u202e\u2066-\u2069]", text)
    assert "the-old-secret" not in text and "the-new-secret" not in text
    assert "redacted" in text
    if form == "html":
        page = Seen(text)
        assert "script" not in page.tags
        assert page.links == ["data:,"]
    if form == "markdown":
        assert not re.search(r"(?<!\\)<(?!/?sub>)", text)
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert rows and all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)
    if form == "json":
        assert json.loads(text)[0]["schema"] == "kvautopsy.comparison/1"


@pytest.mark.browser
def test_the_page_in_a_browser(both: list[Comparison], tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    page.write_text(render([*both, hostile()], "html"))
    dom, console = chromium(page, "--dump-dom", profile=tmp_path / "profile")
    assert console == []
    assert dom.count('class="whole"') == 6
    assert "<article" in dom and "not explained" in dom


def test_the_heading_of_the_tokens_stands_over_them() -> None:
    page = render([compare(one(A), one(B))], "text").splitlines()
    head = next(number for number, line in enumerate(page) if line.startswith("WHY"))
    assert len(page[head]) == len(page[head + 1]) and page[head].endswith("tokens")


def test_values_that_look_alike_are_shown_to_the_last_byte() -> None:
    assert arrow(Share("state.slot_bytes", 38485000.0, 38485250.0, 198, "bytes")) == "38,485,000 -> 38,485,250 bytes"
    assert arrow(Share("x", 2.0 * 2**30, 3.0 * 2**30, 1, "bytes")) == "2.00 GiB -> 3.00 GiB"
