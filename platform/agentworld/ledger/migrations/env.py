"""Where Alembic begins, with the connection and the transaction that `migrate` holds."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
