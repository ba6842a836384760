"""The recount of SGLang's leak checks."""

from analyzer.run.leaks import balances, explain

HYBRID = (
    "token_to_kv_pool_allocator memory leak detected! full_available_size=6016, full_evictable_size=390685, "
    "self.token_to_kv_pool_allocator.size=396701, self.tree_cache.full_protected_size()=0\n"
    "mamba_available_size=315, mamba_evictable_size=138, self.req_to_token_pool.mamba_pool.size=454, "
    "self.tree_cache.mamba_protected_size()=0, leaked_full_pages=None, leaked_mamba_pages={191}"
)


def test_the_pool_that_leaks_need_not_be_the_one_named() -> None:
    state, tokens = balances(HYBRID)
    assert (state.pool, state.missing) == ("state pool", 1)
    assert (tokens.pool, tokens.missing) == ("token pool", 0)
    assert "lacks 1 of 454" in (explain(HYBRID) or "")


def test_more_than_the_pool_means_freed_twice() -> None:
    text = "pool memory leak detected! available_size=120, protected_size=0, self.max_total_num_tokens=100"
    (only,) = balances(text)
    assert only.missing == -20
    assert "freed twice" in (explain(text) or "")


def test_request_table_and_plain_texts() -> None:
    (table,) = balances("req_to_token_pool memory leak detected!available_size=47, session_held=0, total_size=48")
    assert (table.pool, table.missing) == ("request table", 1)
    assert explain("KV cache pool leak detected!") is None
    assert explain("available_size=3, total_size=4") is None


def test_pools_under_headings_are_counted_apart() -> None:
    text = (
        "pool memory leak detected! [full] total=9116160, available=768, evictable=9115392, protected=0, session_held=0"
        ", uncached=0\n[swa] total=911616, available=235264, evictable=676096, protected=0, session_held=0, uncached=0"
    )
    window, tokens = balances(text)
    assert (window.pool, window.missing) == ("window pool", 256)
    assert (tokens.pool, tokens.missing) == ("token pool", 0)
