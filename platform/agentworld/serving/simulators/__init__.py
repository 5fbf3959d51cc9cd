"""The simulators of a service: one in a folder, or all of a cluster, connected on demand."""
