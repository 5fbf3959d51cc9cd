"""The simulators that a service has: one of a folder, many on demand, those of a cluster."""
