"""What an archive says as a whole: counts, causes with cost, pools by set-up with outliers, regressions by version."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from analyzer.errors import UserError
from analyzer.fleet.rows import NOT_A_LOG
from analyzer.fleet.versions import NO_VERSION, comparable, span_of_label

if TYPE_CHECKING:
    import polars as pl

SAME_POOL = 0.03
"""Two pools of the same set-up that differ by less are called the same."""


@dataclass(slots=True)
class Summary:
    """Tables for a reader, as data frames."""

    counts: pl.DataFrame
    causes: pl.DataFrame
    pools: pl.DataFrame
    outliers: pl.DataFrame
    regressions: pl.DataFrame
    errors: pl.DataFrame
    totals: dict[str, int] = field(default_factory=dict)


def load(folder: Path, table: str) -> pl.DataFrame:
    """A table of an audit's folder. Raises ``UserError`` (status 3) if there is none."""
    import polars as pl

    path = folder / f"{table}.parquet"
    if not path.exists():
        raise UserError(f"{folder} holds no {table}.parquet: give the folder that `kvautopsy audit -o` wrote", status=3)
    return pl.read_parquet(path)


def summarise(folder: Path) -> Summary:
    """The summary of the audit in ``folder``."""
    import polars as pl

    runs, findings, files = load(folder, "runs"), load(folder, "findings"), load(folder, "files")
    runs = runs.with_columns(version_column().alias("version"))
    counts = runs.group_by("engine", "version", "outcome").len("runs").sort("engine", "version", "outcome")
    grave = findings.filter(pl.col("severity") != "info")
    failures = runs.filter(pl.col("failure_cause").is_not_null())
    causes = (
        pl.concat(
            [
                grave.select("run", "cause", "lost_tokens"),
                failures.select(
                    "run", pl.col("failure_cause").alias("cause"), pl.lit(None, pl.Float64).alias("lost_tokens")
                ),
            ]
        )
        .group_by("cause")
        .agg(
            pl.col("run").n_unique().alias("runs"),
            # what was priced in no run has no cost here either: the sum of nothing would be 0
            pl.when(pl.col("lost_tokens").count() > 0).then(pl.col("lost_tokens").sum()).alias("lost_tokens"),
        )
        .sort(["runs", "lost_tokens", "cause"], descending=[True, True, False], nulls_last=True)
    )
    setup = ["engine", "version", "model", "gpu", "flags"]
    pooled = (
        runs.filter(pl.col("pool_tokens").is_not_null())
        .with_columns(_basename("model_path", "model_arch").alias("model"), _gpu().alias("gpu"))
        .select("run", *setup, "pool_tokens", "limit_context", "outcome")
    )
    pools = (
        pooled.group_by(setup)
        .agg(
            pl.len().alias("runs"),
            pl.col("pool_tokens").min().alias("least"),
            pl.col("pool_tokens").median().alias("median"),
            pl.col("pool_tokens").max().alias("most"),
        )
        .sort("runs", "median", *setup, descending=[True, True, *[False] * len(setup)], nulls_last=True)
    )
    medians = pooled.join(pools.filter(pl.col("runs") >= 3), on=setup, how="inner", nulls_equal=True)
    outliers = (
        medians.filter((pl.col("pool_tokens") - pl.col("median")).abs() > 0.2 * pl.col("median"))
        .select("run", "pool_tokens", "median", *setup)
        .sort("run")
    )
    other = pl.col("error") == NOT_A_LOG
    return Summary(
        counts=counts,
        causes=causes,
        pools=pools,
        outliers=outliers,
        regressions=_regressions(pools),
        errors=files.filter((pl.col("error") != "") & ~other).select("source", "error").sort("source"),
        totals={
            "files": files["path"].n_unique(),
            "runs": runs.height,
            "findings": grave.height,
            "failed": failures.height,
            "other": files.filter(other).height,
        },
    )


def _basename(*columns: str) -> pl.Expr:
    import polars as pl

    return pl.coalesce(*columns).str.strip_chars_end("/").str.extract(r"([^/]+)$", 1)


def _gpu() -> pl.Expr:
    import polars as pl

    total = pl.coalesce(pl.col("gpu_total"), pl.col("gpu_free_before_load"))
    return pl.coalesce(pl.col("gpu_name"), (total / (1 << 30)).round(0).cast(pl.Int64).cast(pl.String) + " GiB")


def version_column() -> pl.Expr:
    """The version of a run as readers see it: the one printed, or the bracket that its lines leave open."""
    import polars as pl

    low, high = (pl.col(c).fill_null("").str.strip_chars_start("<>=") for c in ("version_low", "version_high"))
    bracket = (
        pl.when((low != "") & (low == high)).then(low)
        .when((low != "") & (high != "")).then(low + "-" + high)
        .when(low != "").then(low + " or later")
        .when(high != "").then(high + " or earlier")
    )  # fmt: skip
    return pl.coalesce(pl.col("version"), bracket)


def _regressions(pools: pl.DataFrame) -> pl.DataFrame:
    """The same set-up with a smaller pool in a later version; pairs that cannot be compared are left out.

    Each version is held against the nearest earlier one: the last of those whose spans end before its own begins.
    """
    import polars as pl

    schema = {
        "engine": pl.String, "model": pl.String, "gpu": pl.String, "flags": pl.String, "from": pl.String,
        "to": pl.String, "before": pl.Float64, "after": pl.Float64, "change": pl.Float64,
    }  # fmt: skip
    rows = []
    known = pools.filter(pl.col("version").is_not_null())
    for key, group in known.group_by(["engine", "model", "gpu", "flags"], maintain_order=True):
        steps = [(span_of_label(name), name, median) for name, median in group.select("version", "median").iter_rows()]
        for newer, name, after in sorted(steps, key=lambda step: step[1]):
            earlier = [step for step in steps if step[0].before(newer)]
            if not earlier:
                continue
            older, old_name, before = max(earlier, key=lambda step: (step[0].high or NO_VERSION, step[1]))
            if after < before * (1 - SAME_POOL) and comparable(str(key[0]), older, newer):
                rows.append((*key, old_name, name, before, after, after / before - 1))
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    return frame.sort("change", "engine", "model", "flags")
