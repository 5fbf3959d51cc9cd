"""The episodes of a service: pure sessions, what is open in memory, and the durable writer."""
