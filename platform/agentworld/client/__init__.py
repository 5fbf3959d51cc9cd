"""The agent's side: one protocol for simulators and live environments, with typed errors."""
