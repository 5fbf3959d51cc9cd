"""Domains: the kinds of world that are installed."""

import typer

from agentworld_cli.show import Json, console, show_json

app = typer.Typer(help="List the domains: kinds of world that are installed.", no_args_is_help=True)


@app.command("list")
def list_domains(as_json: Json = False) -> None:
    """List the installed domains, and which have environments to record and to validate in."""
    from agentworld.domains.live import domain_summaries

    summaries = domain_summaries()
    if as_json:
        show_json([summary.model_dump(mode="json") for summary in summaries])
        return
    for summary in summaries:
        live = "environments" if summary.has_environments else "recorded logs only"
        tools = ", ".join(summary.tools) or "none"
        text = summary.problem or f"{summary.version}, {live}, tools: {tools}"
        console.print(f"{summary.name:<12} {text}", soft_wrap=True, markup=False)
