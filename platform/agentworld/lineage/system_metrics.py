"""The load of this machine, measured by MLflow's monitors, under MLflow's names."""

from collections.abc import Iterable

from mlflow.system_metrics.metrics.base_metrics_monitor import BaseMetricsMonitor
from mlflow.system_metrics.metrics.cpu_monitor import CPUMonitor
from mlflow.system_metrics.metrics.disk_monitor import DiskMonitor
from mlflow.system_metrics.metrics.gpu_monitor import GPUMonitor
from mlflow.system_metrics.metrics.network_monitor import NetworkMonitor

_PREFIX = "system/"
"""The prefix that MLflow's pages require."""


class SystemMetrics:
    """Processors, memory, disk and network; GPUs if the package nvidia-ml-py is installed."""

    def __init__(self) -> None:
        self._monitors = [CPUMonitor(), DiskMonitor(), NetworkMonitor(), *_gpu_monitors()]

    def measure(self) -> dict[str, float]:
        """The metrics by name."""
        figures: dict[str, float] = {}
        for monitor in self._monitors:
            monitor.collect_metrics()
            figures |= {f"{_PREFIX}{key}": v for key, v in monitor.aggregate_metrics().items()}
            monitor.clear_metrics()
        return figures


def _gpu_monitors() -> Iterable[BaseMetricsMonitor]:
    try:
        return [GPUMonitor()]
    except (ImportError, RuntimeError):  # MLflow's for a missing package and for no driver
        return []
