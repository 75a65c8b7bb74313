"""Which GPU this machine has, and whether it is the one that will serve."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from .errors import ConversionError

#: Compute capability by accelerator type of Google Cloud (developer.nvidia.com/cuda-gpus). An engine runs only on the
#: capability that it was built on.
COMPUTE_CAPABILITY = {
    "nvidia-tesla-t4": "7.5",
    "nvidia-tesla-v100": "7.0",
    "nvidia-tesla-p4": "6.1",
    "nvidia-tesla-p100": "6.0",
    "nvidia-tesla-a100": "8.0",
    "nvidia-a100-80gb": "8.0",
    "nvidia-l4": "8.9",
    "nvidia-h100-80gb": "9.0",
}


@dataclass(frozen=True)
class Gpu:
    name: str
    compute_capability: str
    driver: str

    def as_json(self) -> dict[str, str]:
        return {"name": self.name, "computeCapability": self.compute_capability, "driver": self.driver}


Query = Callable[[], Gpu | None]


def query_gpu() -> Gpu | None:
    """The first GPU as nvidia-smi describes it; None without one."""
    command = ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    fields = [field.strip() for field in done.stdout.splitlines()[0].split(",")] if done.stdout.strip() else []
    return Gpu(*fields) if done.returncode == 0 and len(fields) == 3 else None


def check_gpu(gpu: Gpu | None, gpu_type: str) -> None:
    """Raises ConversionError (`gpu`) if engines built here could not be served there."""
    wanted = COMPUTE_CAPABILITY.get(gpu_type)
    if gpu is None:
        raise ConversionError(
            "gpu",
            "there is no GPU that nvidia-smi knows",
            "Start the container with --gpus all on a machine with a driver",
        )
    if wanted is not None and gpu.compute_capability != wanted:
        raise ConversionError(
            "gpu",
            f"this machine's {gpu.name} has compute capability {gpu.compute_capability}, but {gpu_type} "
            f"({wanted}) will serve: its TensorRT refuses engines of another GPU",
            "Give converter and serving nodes the same gpuType",
        )
