"""The witness Prometheus: what a monitoring server recorded around the run, as facts in the common vocabulary."""

from __future__ import annotations

import datetime
import re
from typing import Any

from analyzer.errors import UserError
from analyzer.evidence.metrics import COUNTERS, GAUGES, USAGES
from analyzer.run.facts import Fact, Where
from analyzer.run.model import Run
from analyzer.run.vocabulary import spec_of

TIMEOUT = 10.0
"""Seconds for one answer."""
PATIENCE = 30.0
"""Seconds for all of a run's."""
HIGHEST: dict[str, tuple[str, ...]] = {
    "metrics.max_running": GAUGES["metrics.running"],
    "metrics.max_waiting": GAUGES["metrics.waiting"],
    "metrics.kv_usage": USAGES["metrics.kv_usage"],
    "metrics.state_usage": USAGES["metrics.state_usage"],
    "metrics.pool_tokens": GAUGES["metrics.pool_tokens"],
    "metrics.accept_length": GAUGES["metrics.accept_length"],
}
"""Fact -> the series whose highest value in the range it is, under the names of the versions."""


class Silent(UserError):
    """What should be a Prometheus does not answer, or not as one: another question would fare no better."""

    def __init__(self, message: str) -> None:
        super().__init__(message, status=3)


def prometheus_facts(url: str, run: Run | None = None, *, hours: float = 24.0, seconds: float = PATIENCE) -> list[Fact]:
    """Facts of the Prometheus at ``url`` for the time of ``run`` (else the last ``hours`` hours).

    Raises ``Silent`` (status 3) when it does not answer within ``seconds`` or is none, ``UserError`` (status 3) when it
    holds no series of either engine.
    """
    from analyzer.evidence.http import within

    url = url.rstrip("/")
    start, end = _range(run, hours)
    span = f"{max(60, int((end - start).total_seconds()))}s"
    try:
        facts = within(seconds, lambda: _ask(url, span, end))
    except TimeoutError:
        raise Silent(f"the Prometheus at {url} does not answer: no answer in {seconds:.0f} s") from None
    if not facts:
        raise UserError(
            f"the Prometheus at {url} holds no series of vLLM or SGLang in the {span} before {end:%Y-%m-%d %H:%M:%S}: "
            "is the server scraped?",
            status=3,
        )
    return facts


def _ask(url: str, span: str, end: datetime.datetime) -> list[Fact]:
    """The facts of the ``span`` before ``end``. Raises ``Silent``."""
    import requests
    from prometheus_api_client import PrometheusConnect
    from prometheus_api_client.exceptions import PrometheusApiClientException
    from requests.adapters import HTTPAdapter

    from analyzer.evidence.http import TOKEN_VARIABLE, headers, reason

    class Timed(HTTPAdapter):
        def send(self, *args: Any, **kwargs: Any) -> requests.Response:
            kwargs["timeout"] = TIMEOUT
            return super().send(*args, **kwargs)

    session = requests.Session()
    session.trust_env = False
    session.headers.update(headers())
    try:
        client = PrometheusConnect(url=url, session=session)
        session.mount(url, Timed(max_retries=0))  # in place of the client's own, which tries for minutes
        return _query_all(client, span, end)
    except requests.exceptions.JSONDecodeError:
        raise Silent(f"{url} is no Prometheus: its answer is no JSON") from None
    except requests.exceptions.RequestException as error:
        raise Silent(f"the Prometheus at {url} does not answer: {reason(error)}") from None
    except PrometheusApiClientException as error:
        found = re.search(r"HTTP Status Code (\d+)", str(error))
        status = int(found[1]) if found else 0
        hint = f"put the bearer token into ${TOKEN_VARIABLE}" if status in (401, 403) else "is it its address?"
        raise Silent(f"the Prometheus at {url} answers {status or 'oddly'}: {hint}") from None
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        raise Silent(f"{url} is no Prometheus: its answer is none of the query API") from None


def _range(run: Run | None, hours: float) -> tuple[datetime.datetime, datetime.datetime]:
    """The run's own time where its lines carry a date with a year; else the last hours."""
    now = datetime.datetime.now(datetime.UTC)
    times = [e.record.time for e in run.events if e.record.time is not None] if run is not None else []
    if times:
        start = datetime.datetime.fromtimestamp(min(times), datetime.UTC)
        end = datetime.datetime.fromtimestamp(max(times), datetime.UTC)
        if start.year > 2000 and start <= now:
            # The log's local time has no zone: a day on either side covers every zone.
            day = datetime.timedelta(days=1)
            return start - day, min(end + day, now)
    return now - datetime.timedelta(hours=hours), now


def _query_all(client: Any, span: str, end: datetime.datetime) -> list[Fact]:
    facts: list[Fact] = []
    when = {"time": end.timestamp()}

    def put(name: str, value: float | None, query: str) -> None:
        if value is not None and value == value:
            where = (Where("prometheus", 0, f"{query} = {value:g}"),)
            facts.append(Fact(name, value, spec_of(name).unit, where, origin="metrics"))

    def first(query: str) -> float | None:
        answer = client.custom_query(query, params=when)
        return float(answer[0]["value"][1]) if answer else None

    for name, series in HIGHEST.items():
        for metric in series:
            query = f'max(max_over_time({{__name__="{metric}"}}[{span}]))'
            if (value := first(query)) is not None:
                put(name, value, query)
                break
    values: dict[str, float] = {}
    for name, series in COUNTERS.items():
        for metric in series:
            # The difference of the ends, not increase(): that one extrapolates, and a short run has few samples.
            query = (
                f'sum(max_over_time({{__name__="{metric}"}}[{span}]) - min_over_time({{__name__="{metric}"}}[{span}]))'
            )
            if (value := first(query)) is not None:
                values[name] = value
                put(name, value, query)
                break
    if values.get("metrics.drafted"):
        accepted = values.get("metrics.accepted", 0.0)
        put("metrics.acceptance", accepted / values["metrics.drafted"], "accepted / drafted")
    for name, label in (("metrics.blocks", "num_gpu_blocks"), ("metrics.block_tokens", "block_size")):
        query = f"last_over_time(vllm:cache_config_info[{span}])"
        answer = client.custom_query(query, params=when)
        numbers = [float(a["metric"][label]) for a in answer if a["metric"].get(label, "").isdigit()]
        put(name, min(numbers, default=None), f"vllm:cache_config_info{{{label}}}")
    used = first(f"max(min_over_time(DCGM_FI_DEV_FB_USED[{span}]))")
    if used is not None:
        # dcgm-exporter counts MiB. The least used in the range is what was there before the server took its own.
        put("gpu.foreign", used * (1 << 20), "least DCGM_FI_DEV_FB_USED")
    return facts
