"""How an observation or an episode is judged: the code that rewards is the code that reports."""
