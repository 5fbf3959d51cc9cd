"""A shop as an MCP server over a SQLite database: the domain's own server, for data and tasks."""
