"""What a user gave on SGLang's command line, where a log shows the command.

The dump of arguments shows what was resolved; the command shows what was asked for, so that a default can be told from
a choice. Names become those of the dump (``--tp 8`` is ``tp_size``), values become numbers where they are some.
"""

from __future__ import annotations

import shlex

from analyzer.units import number_or_text

ALIASES = {
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "ep": "ep_size",
    "expert_parallel_size": "ep_size",
    "model": "model_path",
    "mem_frac": "mem_fraction_static",
}
"""Other spellings of options, and the name that the dump uses."""

_MOST = 200


def parse_options(text: str) -> dict[str, str | int | float | bool]:
    """The options of a command line whose first ``--`` is already cut off; ``{}`` if it is no real command.

    ``"tp 8 --trust-remote-code"`` gives ``{"tp_size": 8, "trust_remote_code": True}``. A usage text with placeholders
    (``--model-path <model>``) is no command.
    """
    try:
        words = shlex.split("--" + text, comments=True)
    except ValueError:
        words = ("--" + text).split()
    options: dict[str, str | int | float | bool] = {}
    name = ""
    for word in words[:_MOST]:
        if word in ("&&", "|", ";", ">", "2>&1", ">>", "&", "\\"):
            break
        if word.startswith(("<", "[")):
            return {}
        if word.startswith("--"):
            key, _, value = word[2:].partition("=")
            key = key.replace("-", "_")
            name = ALIASES.get(key, key)
            options[name] = number_or_text(value) if value else True
        elif name and options[name] is True:
            options[name] = number_or_text(word)
    return options
