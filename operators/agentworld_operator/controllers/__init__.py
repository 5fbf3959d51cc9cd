"""One controller for each kind of resource of ours: rounds by name, then one write of a status."""
