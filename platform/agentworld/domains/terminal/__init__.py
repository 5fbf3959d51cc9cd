"""The terminal: a real bash shell, its grammar, its explorers and its tasks."""
