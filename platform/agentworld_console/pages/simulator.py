"""A simulator's page: its manifest, its evaluations, and its agents."""

from collections.abc import Mapping, Set
from typing import NamedTuple, Self

from starlette.requests import Request

from agentworld.audit.questions.dataset import data_of
from agentworld.errors import EvidenceError, NotFound
from agentworld.ledger.runs import ListedRun
from agentworld.lineage.base import Version
from agentworld.records.base import Digest
from agentworld.records.garbled import reading
from agentworld.records.report import AgentReport, Estimate, Report, read_report
from agentworld.records.simulator import SimulatorManifest
from agentworld.reports.groups import explain_baselines
from agentworld.storage.simulators import PinnedSimulator
from agentworld_console import lists, rows
from agentworld_console.answer import Answer, ListView, Page, Redirect, Sheet
from agentworld_console.formatting import page_path
from agentworld_console.scoped_view import ScopedView
from agentworld_console.table import Link

_MOST_OPEN = 25
_FOLDED = {"by_domain", "by_family", "by_kind", "by_tag", "gain", "leads"}
_TITLES = {
    "world_model": ("World model on held-out live episodes", "turns"),
    "served": ("Served simulator on fresh live episodes", "turns"),
    "agent": ("Agent on held-out tasks", "tasks"),
}
"""The title of an evaluation, and what its means are over, by kind of report."""
_DIFFERENCES = {"change", "gain", "leads", "live_gain"}


def simulator(view: ScopedView, request: Request) -> Answer:
    """Its manifest, evaluations, aliases, open runs, and the agents that it trained."""
    name = request.path_params["simulator"]
    matches = view.find_simulators(name)
    if matches != [name]:
        if len(matches) == 1:
            return Redirect(page_path("simulators", matches[0]))
        raise NotFound(f"there is no simulator {name}; search for another")
    manifest, pinned = view.manifest(name), view.pinned(name)
    versions = _world_models(view, manifest)
    open_ = view.runs(_MOST_OPEN, only_open=True, simulators=[name])
    values = {
        "digest": name,
        "manifest": manifest,
        "fields": manifest.model_dump(mode="json") if manifest else {},
        "world_models": [str(reader.ref) for reader in versions],
        "data": [rows.dataset_link(digest) for digest in _data(versions)],
        "names": view.aliases.get(name, []),
        "reports": _reports(view, pinned) if pinned else [],
        "differences": _DIFFERENCES,
        "open": [_open_run(view, run) for run in open_],
        "most_open": _MOST_OPEN,
        "aliases": ListView.of(lists.meanings(view, name)),
        "runs": ListView.of(
            lists.runs_of(view, _runs(name), [name]), request.query_params.get("from", "")
        ),
    }
    return Page("simulator.html", values)


def runs_sheet(view: ScopedView, request: Request) -> Answer:
    """All runs of the simulator."""
    name = request.path_params["simulator"]
    return Sheet(f"runs-{name[7:19]}", lists.runs_of(view, _runs(name), [name], lists.OF_A_FILE))


def aliases_sheet(view: ScopedView, request: Request) -> Answer:
    """All aliases that pointed at it."""
    name = request.path_params["simulator"]
    return Sheet(f"aliases-{name[7:19]}", lists.meanings(view, name))


def _runs(simulator: Digest) -> str:
    return page_path("simulators", simulator, "runs")


def _world_models(view: ScopedView, manifest: SimulatorManifest | None) -> list[Version]:
    """The registered versions of its weights; none for an endpoint."""
    if manifest is None or manifest.artifact is None:
        return []
    return view.library.registry.versions(kind="world-model", artifact=manifest.artifact)


def _data(versions: list[Version]) -> list[Digest]:
    """The data sets of their stages, each once."""
    return list(dict.fromkeys(data for version in versions for data in data_of(version).values()))


def _open_run(view: ScopedView, run: ListedRun) -> tuple[Link, ListedRun, int]:
    """An open run and its open episodes."""
    return rows.run_link(run.id), run, view.library.ledger.counts.num_open_episodes(run=run.id)


class _Evaluation(NamedTuple):
    """An attached report."""

    title: str
    unit: str
    digest: Digest
    figures: Mapping[str, Estimate] = {}
    folded: Mapping[str, Estimate] = {}
    """Figures by group and by baseline, which are too many for a summary."""

    @property
    def baselines(self) -> str:
        """What the baselines of its leads predict."""
        names = (name.partition("leads.")[2].partition(".")[0] for name in self.folded)
        return explain_baselines(dict.fromkeys(names))

    @classmethod
    def of(cls, report: Report, subjects: Set[Digest]) -> Self:
        """The figures of one of these subjects."""
        figures = report.figures(subjects)
        folded_figures = {
            name: figure for name, figure in figures.items() if _FOLDED & {*name.split(".")}
        }
        first = {name: figure for name, figure in figures.items() if name not in folded_figures}
        return cls(*_TITLES[report.kind], report.digest, first, folded_figures)


def _reports(view: ScopedView, pinned: PinnedSimulator) -> list[_Evaluation]:
    """The evaluations; those of agents for auditors only."""
    subjects = {pinned.digest} | ({pinned.manifest.artifact} if pinned.manifest.artifact else set())
    reports = []
    for digest in pinned.reports:
        try:
            with reading(digest):
                report = read_report(pinned.folder / "reports" / f"{digest[7:]}.json")
        except EvidenceError:  # `audit verify` reports it
            reports.append(_Evaluation("garbled report", "", digest))
        else:
            if view.is_whole or not isinstance(report, AgentReport):
                reports.append(_Evaluation.of(report, subjects))
    return reports
