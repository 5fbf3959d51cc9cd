"""The shell: a real bash in a sandbox, its grammar, its explorers and its tasks."""
