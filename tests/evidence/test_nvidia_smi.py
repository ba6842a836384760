"""The witness nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.errors import UserError
from analyzer.evidence.nvidia_smi import nvidia_smi_facts
from analyzer.units import MIB

TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.03             Driver Version: 580.159.03     CUDA Version: 13.0     |
|-----------------------------------------+------------------------+----------------------+
|   0  NVIDIA H200                    On  |   00000000:19:00.0 Off |                    0 |
| N/A   34C    P0            121W /  700W |   70345MiB / 143771MiB |      0%      Default |
|   1  NVIDIA H200                    On  |   00000000:3B:00.0 Off |                    0 |
| N/A   33C    P0            119W /  700W |       4MiB / 143771MiB |      0%      Default |
"""


def test_table(tmp_path: Path) -> None:
    path = tmp_path / "smi.txt"
    path.write_text(TABLE)
    facts = {f.name: f for f in nvidia_smi_facts(path)}
    assert facts["gpu.total"].value == 143771 * MIB
    assert facts["gpu.foreign"].value == 70345 * MIB
    assert facts["gpu.foreign"].ranks == {"0": 70345 * MIB, "1": 4 * MIB}
    assert facts["gpu.foreign"].where[0].line == 5
    assert facts["gpu.name"].value == "NVIDIA H200"


def test_query(tmp_path: Path) -> None:
    path = tmp_path / "smi.csv"
    head = "index, name, memory.used [MiB], memory.free [MiB], memory.total [MiB]"
    path.write_text(f"{head}\n0, NVIDIA L4, 5473 MiB, 17000 MiB, 23034 MiB\n")
    facts = {f.name: f.value for f in nvidia_smi_facts(path)}
    assert facts == {"gpu.total": 23034 * MIB, "gpu.foreign": 5473 * MIB, "gpu.name": "NVIDIA L4"}


def test_another_text(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("hello\n")
    with pytest.raises(UserError, match="no nvidia-smi text"):
        nvidia_smi_facts(path)
