"""From what was seen to what should be: pure functions, in which the clock is an argument."""
