"""Secrets leave a text, control characters lose their effect, and nothing takes more than linear time."""

from __future__ import annotations

import time

import pytest

from analyzer.redact import MASK, clean, clean_value, is_secret_name, neutralise, redact

SECRETS = [
    ("api_key='s3cret-value', lora_modules=None", "s3cret-value"),
    ("ServerArgs(api_key='a b c', port=1)", "a b c"),
    ("--api-key hunter2 --port 8000", "hunter2"),
    ("--api-key=hunter2", "hunter2"),
    ("['vllm', 'serve', '--api-key', 'hunter2']", "hunter2"),
    ("'api_key': ['hunter2', 'hunter3'], 'port': 1", "hunter3"),
    ('{"api_key": "x\\"y", "a": 1}', 'x\\"y'),
    ("api_key='cut off in the midd", "cut"),
    ("HF_TOKEN=abcdef", "abcdef"),
    ("hf_token='short'", "short"),
    ("loading with hf_AbCdEf123456", "hf_AbCdEf123456"),
    ("key sk-proj-abcDEF0123456789", "sk-proj-abcDEF0123456789"),
    ("Authorization: Bearer abc.def-123", "abc.def-123"),
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("GET /v1 Bearer abcdefgh", "abcdefgh"),
    ("http://user:pa55word@proxy:3128/", "pa55word"),
    ("redis://:pa55word@cache/0", "pa55word"),
    ("ssl_keyfile_password='pa55word', ssl_keyfile='/k.pem'", "pa55word"),
    ("AWS_SECRET_ACCESS_KEY=AAA/BBB+ccc", "AAA/BBB+ccc"),
    ("using AKIAABCDEFGHIJKLMNOP now", "AKIAABCDEFGHIJKLMNOP"),
    ("https://b/x?X-Amz-Signature=00ff00ff&x=1", "00ff00ff"),
    ("password: hunter2", "hunter2"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----", "MIIabc"),
    ("admin_api_key='hunter2'", "hunter2"),
    ("ghp_abcdefghijklmnopqrstuv0123456789", "ghp_abcdefghijklmnopqrstuv0123456789"),
]
HARMLESS = [
    "max_total_num_tokens=3922281, chunked_prefill_size=8192",
    "Decode batch, #running-req: 1, #full token: 523, full token usage: 0.00, accept len: 1.00",
    "input throughput (token/s): 3.33",
    "eos_token='</s>', pad_token_id=0, image_token='<image>', stop_token_ids=[1, 2]",
    "tokenizer='meta-llama/Llama-3.1-8B', skip_tokenizer_init=False, hf_config_path=None, hf_overrides={}",
    "api_key=None, ssl_keyfile_password=None, hf_token=None",
    "KeyError: 'model.layers.0.mlp.gate_proj.weight'",
    "The api key is missing",
    "num_key_value_heads=8, key_cache=1.0, kv_cache_dtype='auto', ssl_keyfile='/etc/k.pem'",
    "Bearer token is required",
    "http://127.0.0.1:30000/v1/models",
    "disk-cache-directory task-1234567890",
    "--speculative-num-draft-tokens 4 --max-num-batched-tokens 8192",
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_masked_and_the_rest_stays(text: str, secret: str) -> None:
    shown = redact(text)
    assert secret not in shown
    assert MASK in shown
    assert redact(shown) == shown


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


def test_neighbours_of_a_secret_stay_readable() -> None:
    assert redact("host='x', api_key='abc', port=30000") == f"host='x', api_key='{MASK}', port=30000"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b[2Jgone", "\\x1b[2Jgone"),
        ("a\rb\x00c\x9bd", "a\\x0db\\x00c\\x9bd"),
        ("evil\u202etxt", "evil<U+202E>txt"),
        ("zero\u200bwidth", "zero<U+200B>width"),
        ("\udc80 lone", "\\x80 lone"),
        ("tab\tand\nline stay, 中文 too, 100 % █", "tab\tand\nline stay, 中文 too, 100 % █"),
    ],
)
def test_control_characters_are_spelled_out(text: str, shown: str) -> None:
    assert neutralise(text) == shown
    assert neutralise(shown).encode("utf-8")


def test_a_secret_cannot_hide_behind_a_colour_code() -> None:
    assert "hunter2" not in clean("api_\x1b[1mkey='hunter2'")


def test_the_name_of_an_argument_tells_a_secret() -> None:
    assert is_secret_name("args.api_key") and is_secret_name("args.hf_token") and is_secret_name("ssl_keyfile_password")
    assert not is_secret_name("args.max_tokens") and not is_secret_name("args.tokenizer")
    assert clean_value({"api_key": "x", "nested": [{"password": "y"}], "port": 1}) == {
        "api_key": MASK,
        "nested": [{"password": MASK}],
        "port": 1,
    }
    assert clean_value(None, "args.api_key") is None


@pytest.mark.parametrize(
    "part",
    ["a", "api_key=[ ", "api_key=' \"", "://", "token=", "Bearer ", "-----BEGIN PRIVATE KEY-----", "hf_", "\x1b["],
)
def test_time_grows_with_the_length_only(part: str) -> None:
    def seconds(size: int) -> float:
        text = part * (size // len(part))
        start = time.perf_counter()
        clean(text)
        return time.perf_counter() - start

    seconds(20_000)
    small, large = seconds(50_000), seconds(400_000)
    assert large < 8 * max(small, 0.005) * 6
