"""The command that starts the console."""

from typing import Annotated, Any

import typer

from agentworld_cli.show import DEFAULT_STORE, AnyStore


def console(
    store: AnyStore = DEFAULT_STORE,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8090,
    access: Annotated[
        str,
        typer.Option(
            metavar="local|FILE",
            help="Who may call: `local` for every user of this machine, or an access file.",
        ),
    ] = "",
) -> None:
    """Show in a browser which simulator trained which agent, until interrupted."""
    from agentworld.engine.process import check_free
    from agentworld_cli.show import console as terminal
    from agentworld_console.main import serve
    from agentworld_console.settings import ConsoleSettings

    overrides: dict[str, Any] = {"access": access} if access else {}
    settings = ConsoleSettings(store=store, host=host, port=port, **overrides)
    check_free(settings.port)
    message = f"the console answers at http://{host}:{port}"
    serve(settings, lambda: terminal.print(message, soft_wrap=True))
