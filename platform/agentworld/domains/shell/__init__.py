"""The shell: a bash in a sandbox, its grammar, its explorers and its tasks."""
