"""Alembic's entry point; it uses the connection and the transaction of `migrate`."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
