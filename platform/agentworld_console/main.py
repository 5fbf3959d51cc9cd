"""The console's process: `python -m agentworld_console.main`, set up by environment variables."""

import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from agentworld.http.protection import Guard, Limits, most_connections
from agentworld.http.server import server
from agentworld.recipes.environment import exit_status, from_environment
from agentworld.storage.stores import Stores
from agentworld_console.access import Callers
from agentworld_console.app import create_app
from agentworld_console.library import open_library
from agentworld_console.settings import ConsoleSettings


def serve(settings: ConsoleSettings, on_start: Callable[[], None] = lambda: None) -> None:
    """Serves until a signal stops the process, and calls `on_start` first.

    Raises InputError for invalid settings, NotFound for a path that is not a store.
    """
    secret = settings.proxy_secret.get_secret_value()
    keys = Stores.keys_of(Path(settings.store))  # a bucket has no secrets
    callers = Callers.of(settings.access, secret, keys, settings.host)
    library = open_library(settings.store)
    guard = Guard(None, Limits(connections=most_connections()), lambda _kind: None)
    with closing(library.ledger), suppress(KeyboardInterrupt):
        on_start()
        server(create_app(library, callers), guard, settings.host, settings.port).run()


def main() -> int:
    """Serves until a signal stops the process."""
    return exit_status(lambda: serve(from_environment(ConsoleSettings)))


if __name__ == "__main__":
    sys.exit(main())
