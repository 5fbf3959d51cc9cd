"""Operations that steps and the command line share: simulators, aliases, keys, registration."""
