"""The operator: Simulator objects become pinned engines that the simulator service may ask."""
