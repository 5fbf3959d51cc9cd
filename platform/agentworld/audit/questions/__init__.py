"""What an auditor asks, each question in its file."""
