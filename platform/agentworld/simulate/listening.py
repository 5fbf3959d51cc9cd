"""How the service's process listens: the settings that a step's cost depends on."""

import gc

import uvicorn
from starlette.types import ASGIApp

# Episodes in memory are many small objects that live long. By its default the collector walks all
# of them after every 700 new ones, which took a seventh of the processor's time.
_NEW_OBJECTS = 100_000


def listen(app: ASGIApp, host: str, port: int) -> None:
    """Answers until the process is told to stop."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 20, 100)
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_level="warning",
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # costs more than a loopback or a cluster's network does
    )
