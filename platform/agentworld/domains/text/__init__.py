"""Text: the domain of any recorded log. It has no verifier and no environment."""
