"""Where an audit reads, and as of which moment."""
