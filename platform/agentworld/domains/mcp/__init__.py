"""MCP: tools of servers that speak the Model Context Protocol; a call in, its result out."""
