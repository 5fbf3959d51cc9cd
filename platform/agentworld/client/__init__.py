"""How an agent reaches a world: typed failures, and the same words for every kind of world."""
