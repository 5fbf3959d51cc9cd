"""The episodes of a service: pure sessions, open episodes in memory, and the durable writer."""
