"""Recurrent state of one layer and request, by kind of linear attention.

Sources: reference vllm 3.5 (GDN, Mamba2, checked on real logs) and sglang 3.7 / 3.11 (GDN, checked to the slot);
KDA, lightning, Mamba1 and short convolutions follow the public model code's tensor shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analyzer.evidence.model_config import ModelConfig, whole


@dataclass(frozen=True, slots=True)
class StateSpec:
    """The state of one layer, of the whole model (not divided by ranks).

    ``conv_channels`` columns of ``kernel`` - 1 past inputs (vLLM keeps as many more as there are draft tokens), of
    which ``group_channels`` belong to ``groups`` (whole groups on a rank, one if they cannot be divided), and ``ssm``
    elements of the recurrent matrix, divided by ranks along ``heads``.
    """

    kind: str
    conv_channels: int
    kernel: int
    ssm: int
    heads: int = 1
    group_channels: int = 0
    groups: int = 0
    shape: tuple[int, ...] = ()
    """The recurrent matrix of one request and layer, for the reader."""

    def conv_elements(self, tp: int, extra: int = 0) -> int:
        """Elements of the convolution window on one of ``tp`` ranks, with ``extra`` more rows."""
        tp = max(1, tp)
        own = (self.conv_channels - self.group_channels) // tp
        per_rank = self.groups // tp if self.groups % tp == 0 else 1
        grouped = self.group_channels // self.groups * per_rank if self.groups else 0
        return (own + grouped) * max(0, self.kernel - 1 + extra) if self.kernel else 0

    def ssm_elements(self, tp: int) -> int:
        """Elements of the recurrent matrix on one of ``tp`` ranks."""
        return self.ssm // max(1, tp)


def state_spec(config: ModelConfig) -> StateSpec | None:
    """The state of a recurrent layer of ``config``, or None if its kind is not known."""
    for read in (_gdn, _kda, _mamba2, _mamba1, _lightning, _short_conv):
        spec = read(config.text, config)
        if spec is not None:
            return spec
    return None


def _numbers(text: dict[str, Any], *names: str) -> list[int] | None:
    values = [whole(text.get(name)) for name in names]
    return [v for v in values if v] if all(values) else None


def _gdn(text: dict[str, Any], config: ModelConfig) -> StateSpec | None:
    """Gated delta net (Qwen3-Next, Qwen3.5): conv over q, k, v; matrix value heads x Dv x Dk."""
    found = _numbers(text, "linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim",
                     "linear_value_head_dim", "linear_conv_kernel_dim")  # fmt: skip
    if not found:
        return None
    key_heads, value_heads, dk, dv, kernel = found
    channels = 2 * dk * key_heads + dv * value_heads
    return StateSpec("gdn", channels, kernel, value_heads * dv * dk, value_heads, shape=(value_heads, dv, dk))


def _kda(text: dict[str, Any], config: ModelConfig) -> StateSpec | None:
    """Kimi delta attention: three short convolutions (q, k, v), matrix heads x D x D."""
    linear = text.get("linear_attn_config")
    found = _numbers(linear, "num_heads", "head_dim", "short_conv_kernel_size") if isinstance(linear, dict) else None
    if not found:
        return None
    heads, size, kernel = found
    return StateSpec("kda", 3 * heads * size, kernel, heads * size * size, heads, shape=(heads, size, size))


def _mamba2(text: dict[str, Any], config: ModelConfig) -> StateSpec | None:
    """Mamba2 (Nemotron-H, Granite hybrid, Bamba, Falcon-H1): conv over x, B, C; matrix heads x D x state."""
    heads = _first(text, "mamba_num_heads", "mamba_n_heads", "n_mamba_heads", "num_heads")
    size = _first(text, "mamba_head_dim", "mamba_d_head", "mamba_headdim", "head_dim")
    state = _first(text, "ssm_state_size", "mamba_d_state", "state_size")
    groups = _first(text, "n_groups", "mamba_n_groups", "mamba_ngroups")
    kernel = _first(text, "conv_kernel", "mamba_d_conv", "conv_kernel_size")
    if not (heads and size and state and groups and kernel):
        return None
    grouped = 2 * groups * state
    return StateSpec("mamba2", heads * size + grouped, kernel, heads * size * state, heads, grouped, groups,
                     shape=(heads, size, state))  # fmt: skip


def _mamba1(text: dict[str, Any], config: ModelConfig) -> StateSpec | None:
    """Mamba1 (Jamba, Falcon-Mamba): conv over the inner width, matrix inner x state."""
    state = _first(text, "mamba_d_state", "state_size")
    kernel = _first(text, "mamba_d_conv", "conv_kernel")
    expand, hidden = _first(text, "mamba_expand", "expand"), config.number("hidden")
    inner = _first(text, "intermediate_size") if "expand" not in text and "mamba_expand" not in text else None
    inner = expand * hidden if expand and hidden else inner
    if not (state and kernel and inner):
        return None
    return StateSpec("mamba1", inner, kernel, inner * state, inner, shape=(inner, state))


def _lightning(text: dict[str, Any], config: ModelConfig) -> StateSpec | None:
    """Lightning attention (MiniMax, Bailing linear): matrix heads x D x D, no convolution."""
    heads, size = config.number("heads"), config.head_dim
    if not heads or not size or not ("attn_type_list" in text or "layer_group_size" in text):
        return None
    return StateSpec("lightning", 0, 0, heads * size * size, heads, shape=(heads, size, size))


def _short_conv(text: dict[str, Any], config: ModelConfig) -> StateSpec | None:
    """Short convolution (LFM2): the last inputs of the hidden width, no matrix."""
    reach, hidden = _first(text, "conv_L_cache"), config.number("hidden")
    return StateSpec("short_conv", hidden, reach, 0) if reach and hidden else None


def _first(text: dict[str, Any], *names: str) -> int | None:
    return next((v for name in names if (v := whole(text.get(name)))), None)
