"""The schema's migrations: Alembic runs `env`, and `env` runs the revisions in `versions`."""
