"""From a live environment or logs to samples in disjoint pools: collect, then prepare."""
