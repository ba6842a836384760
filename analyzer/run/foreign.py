"""Whose failure a traceback shows: another program's, which is nothing to SGLang or vLLM in the same log."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.run.model import Failure, Frame

OTHER_ENGINES: dict[str, str] = {
    "tensorrt_llm": "TensorRT-LLM",
    "lmdeploy": "LMDeploy",
    "text_generation_server": "Text Generation Inference",
    "text_embeddings_server": "Text Embeddings Inference",
    "llama_cpp": "llama.cpp",
    "mlc_llm": "MLC LLM",
    "exllamav2": "ExLlamaV2",
    "ctranslate2": "CTranslate2",
    "aphrodite": "Aphrodite",
    "mlx_lm": "MLX LM",
    "lightllm": "LightLLM",
}
"""Packages of other programs that serve models, and their names."""


def other_engine(failures: Iterable[Failure]) -> str | None:
    """The other program whose files a traceback passes through, if it does."""
    return next((name for failure in failures if (name := _program(failure.frames)) is not None), None)


def is_foreign(frames: Iterable[Frame]) -> bool:
    """Whether a traceback is another program's: through its files, and not through those of SGLang or vLLM."""
    frames = list(frames)
    return _program(frames) is not None and not any("/sglang/" in f.file or "/vllm/" in f.file for f in frames)


def _program(frames: Iterable[Frame]) -> str | None:
    for frame in frames:
        for package, name in OTHER_ENGINES.items():
            if f"/{package}/" in frame.file:
                return name
    return None
