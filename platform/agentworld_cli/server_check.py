"""Missing settings of a Kubeflow Pipelines server: `agentworld pipeline check`."""

from typing import Annotated

import typer

from agentworld_cli.show import Json, plain, show_json


def check(
    server: Annotated[
        str,
        typer.Option(
            metavar="URL", help="The address of Kubeflow Pipelines; else AGENTWORLD_KFP_URL."
        ),
    ] = "",
    kubeflow_namespace: Annotated[
        str, typer.Option(metavar="NAMESPACE", help="The namespace that Kubeflow is installed in.")
    ] = "kubeflow",
    as_json: Json = False,
) -> None:
    """Check that a Kubeflow Pipelines server retries failed steps, and name missing settings.

    Reads the server, and the cluster of AGENTWORLD_KUBECONFIG or of this pod.
    """
    from agentworld.errors import PipelineError
    from agentworld_pipelines.checking import missing_settings
    from agentworld_pipelines.connection import Connection
    from agentworld_pipelines.settings import ClusterSettings, ServerSettings

    settings = ServerSettings()
    connection = Connection(settings.model_copy(update={"url": server or settings.url}))
    missing = missing_settings(connection, ClusterSettings(), kubeflow_namespace)
    if as_json:
        show_json({"missing": missing})
    else:
        print("\n".join(map(plain, missing)) or "a step's pod is started again after any failure")
    if missing:
        raise PipelineError(f"settings of {connection.url} are missing: {len(missing)}; set them")
