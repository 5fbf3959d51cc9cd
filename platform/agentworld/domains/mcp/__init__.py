"""MCP: tools of servers that speak the Model Context Protocol; actions are calls of tools."""
