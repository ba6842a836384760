"""Whose failure a traceback shows, in a log that holds nothing of SGLang or vLLM."""

from __future__ import annotations

from collections.abc import Iterable

from analyzer.run.model import Failure

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
    for failure in failures:
        for frame in failure.frames:
            for package, name in OTHER_ENGINES.items():
                if f"/{package}/" in frame.file:
                    return name
    return None
