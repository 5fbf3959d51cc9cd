"""What steps and the command line share and is no step: simulators, aliases, keys, registering."""
