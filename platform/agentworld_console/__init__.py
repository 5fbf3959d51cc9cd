"""The console: what an audit reads, as pages for a browser. It reads, and changes nothing."""
