from math import inf, nan

import pytest

from agentworld.reports.curves import HEIGHT, WIDTH, CurvePlot, not_finite, plots_of, thinned


def plot(title: str, figures: dict[int, dict[str, float]]) -> CurvePlot:
    (match,) = (plot for plot in plots_of(figures) if plot.title == title)
    return match


def coordinates(points: str) -> list[tuple[float, ...]]:
    return [tuple(map(float, point.split(","))) for point in points.split()]


def test_a_curve_spans_all_steps_and_plots_higher_values_nearer_the_top() -> None:
    (loss,) = plot("Loss", {0: {"loss": 4.0}, 5: {"loss": 3.0}, 20: {"loss": 2.0}}).curves
    assert coordinates(loss.points) == [(0, 0), (WIDTH / 4, HEIGHT / 2), (WIDTH, HEIGHT)]
    assert loss.last == "2"


def test_curves_of_a_plot_share_one_scale_and_differ_in_style() -> None:
    losses = plot("Loss", {0: {"validation_loss": 5.0}, 10: {"validation_loss": 3.0, "loss": 1.0}})
    assert (losses.low, losses.high, losses.first_step, losses.last_step) == ("1", "5", 0, 10)
    by_name = {curve.name: curve for curve in losses.curves}
    assert coordinates(by_name["validation_loss"].points) == [(0, 0), (WIDTH, HEIGHT / 2)]
    assert set(coordinates(by_name["loss"].points)) == {(WIDTH, HEIGHT)}
    assert by_name["loss"].kind != by_name["validation_loss"].kind
    assert losses.label == (
        "Loss: loss 1 at step 10, 1 at step 10; validation_loss 5 at step 0, 3 at step 10"
    )


def test_each_domain_gets_a_curve_and_an_ungrouped_figure_its_own_plot() -> None:
    figures = {3: {"loss": 1.0, "validation_loss/shell": 2.0, "validation_loss/mcp": 3.0, "new": 4}}
    assert [plot.title for plot in plots_of(figures)] == [
        *("Loss", "Validation loss by domain", "new")
    ]
    domain_plot = plot("Validation loss by domain", figures)
    assert [curve.name for curve in domain_plot.curves] == ["mcp", "shell"]
    assert plots_of({}) == []


def test_a_non_finite_value_is_reported_and_excluded_from_the_scale() -> None:
    figures = {1: {"loss": 2.0}, 2: {"loss": nan}, 3: {"loss": 1.0, "gradient_norm": inf}}
    assert not_finite(figures) == "loss is nan at step 2"
    assert [plot.title for plot in plots_of(figures)] == ["Loss"]
    (loss,) = plot("Loss", figures).curves
    assert coordinates(loss.points) == [(0, 0), (WIDTH, HEIGHT)]
    assert not_finite({1: {"loss": 2.0}}) == ""


@pytest.mark.parametrize("num", [10, 400, 401, 30_000])
def test_thinning_many_points_keeps_the_highest_and_the_lowest(num: int) -> None:
    points = [(step, 1.0) for step in range(num)]
    points[num // 2] = (num // 2, 9.0)
    points[num // 3] = (num // 3, 0.5)
    thinned_points = thinned(points)
    assert len(thinned_points) <= 400
    assert thinned_points == sorted(thinned_points)
    assert {points[num // 2], points[num // 3]} <= set(thinned_points)
    assert (thinned_points == points) == (num <= 400)
