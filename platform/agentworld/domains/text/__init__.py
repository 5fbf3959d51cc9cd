"""Text: the domain of any recorded log. It has no rule verifier and no environment."""
