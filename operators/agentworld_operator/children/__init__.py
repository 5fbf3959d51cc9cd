"""What a Simulator is made of on a cluster: manifests, built by pure functions."""
