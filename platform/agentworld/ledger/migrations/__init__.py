"""How a ledger's schema came to be: Alembic runs `env`, and `env` the revisions in `versions`."""
