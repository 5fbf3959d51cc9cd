"""Images run by the digests that a tool writes into values, or the chart refuses them."""

import re
import shutil

import pytest
import yaml
from helm_python.errors import HelmRenderError

import make.chart
from make import image_values
from make.chart import AIRGAP, CHART, EXTERNAL, VALUES, images

pytestmark = pytest.mark.compute

NAMES = ("control", "train", "postgres")
DIGESTS = {name: f"sha256:{digit * 64}" for name, digit in zip(NAMES, "123", strict=True)}
REGISTRY = "mirror.example:5000/team/agentworld"
REFERENCES = {
    "control": f"{REGISTRY}/control@{DIGESTS['control']}",
    "train": f"{REGISTRY}/train@{DIGESTS['train']}",
    "postgres": f"docker.io/library/postgres@{DIGESTS['postgres']}",
}
# Docker's name of a trial's PostgreSQL.
ARGUMENTS = [f"--{name}={reference}" for name, reference in REFERENCES.items()][:2]
ARGUMENTS.append(f"--postgres=postgres:17@{DIGESTS['postgres']}")
BY_DIGEST = {"images": {"allowTags": False}}


def error_of_a_tag(values) -> str:
    """The chart's error for an image that only has a tag."""
    with pytest.raises(HelmRenderError) as error:
        make.chart.files({**values, "images": {**values.get("images", {}), "allowTags": False}})
    return str(error.value)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_every_image_has_a_version_and_none_is_latest(values):
    for image in images(make.chart.objects(values)):
        assert re.fullmatch(r"[a-z0-9./-]+(:[0-9][0-9.]*|@sha256:[0-9a-f]{64})", image), image


def test_an_image_without_a_digest_is_refused_with_a_remedy():
    yaml_values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert yaml_values["images"]["allowTags"] is False
    expected = (
        "the image ghcr.io/agentworld/control:0.1.0 has no digest; write the digests of your images"
        " into a values file with tools/image_values.py, or set images.allowTags to true"
    )
    assert expected in error_of_a_tag({})
    control = {"control": {"digest": DIGESTS["control"]}}
    assert "the image ghcr.io/agentworld/train:9 has no" in error_of_a_tag(
        {"images": {**control, "train": {"tag": "9"}}, **EXTERNAL}
    )
    image_settings = {**control, "train": {"digest": DIGESTS["train"]}}
    assert "the image docker.io/library/postgres:17 has no digest" in error_of_a_tag(
        {"images": image_settings}
    )


def test_an_unused_image_needs_no_digest():
    control = {"control": {"digest": DIGESTS["control"]}, "allowTags": False}
    values = {"mlflow": {"enabled": False}, "database": {"existingSecret": "postgres"}}
    references = set(images(make.chart.objects({**values, "images": control})))
    assert references == {f"ghcr.io/agentworld/control@{DIGESTS['control']}"}


def test_values_written_by_the_tool_pin_every_image_by_digest():
    result = image_values.run(*ARGUMENTS)
    assert (result.returncode, result.stderr) == (0, "")
    values = yaml.safe_load(result.stdout)
    values["images"]["allowTags"] = False
    assert set(images(make.chart.objects(values))) == set(REFERENCES.values())


def test_a_chart_with_digests_in_its_default_values_needs_no_others(tmp_path):
    """As in a release."""
    chart = tmp_path / "agentworld"
    shutil.copytree(CHART, chart)
    before = (chart / "values.yaml").read_text()
    result = image_values.run(*ARGUMENTS, f"--into={chart / 'values.yaml'}")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert set(images(make.chart.objects(BY_DIGEST, chart=chart))) == set(REFERENCES.values())
    after = (chart / "values.yaml").read_text()
    assert re.findall("#.*", after) == re.findall("#.*", before)
    values = {"images": {"registry": "elsewhere.example", "allowTags": False}}
    references = set(images(make.chart.objects(values, chart=chart)))
    assert f"elsewhere.example/control@{DIGESTS['control']}" in references


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--control=r.example/control:0.1.0", ARGUMENTS[1]], "'r.example/control:0.1.0' names no"),
        (["--control=r.example/control@sha256:12", ARGUMENTS[1]], "names no image by its digest"),
        ([f"--control=r.example/control@{DIGESTS['control']}", ARGUMENTS[1]], "push both into one"),
        ([ARGUMENTS[0]], "the following arguments are required: --train"),
        ([*ARGUMENTS, "--into=absent.yaml"], "cannot read or write absent.yaml: No such file"),
        (
            [*ARGUMENTS, f"--into={CHART / 'Chart.yaml'}"],
            "it has no value images.registry; name the",
        ),
    ],
)
def test_the_tool_reports_invalid_arguments(arguments, message):
    result = image_values.run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr


def test_an_airgapped_cluster_pulls_only_from_its_mirror_by_digest():
    values = {**AIRGAP, **BY_DIGEST, "console": {"enabled": True}}
    values["images"] = {**AIRGAP["images"], "allowTags": False}
    references = list(images(make.chart.objects(values)))
    assert {re.split("[/@]", image)[-2] for image in references} == set(NAMES)
    for image in references:
        assert image.startswith("mirror.example/")
        assert "@sha256:" in image


def test_another_registry_applies_to_every_project_image():
    references = set(
        images(make.chart.objects({"images": {"registry": "elsewhere.example:5000/x"}}))
    )
    references -= {"docker.io/library/postgres:17"}
    assert references == {f"elsewhere.example:5000/x/{name}:0.1.0" for name in ("control", "train")}


def test_a_digest_takes_precedence_over_a_tag():
    digest = f"sha256:{'2' * 64}"
    values = {"images": {"control": {"tag": "9", "digest": digest}, "train": {"tag": "9"}}}
    references = set(images(make.chart.objects(values)))
    assert f"ghcr.io/agentworld/control@{digest}" in references
    assert "ghcr.io/agentworld/train:9" in references
    assert not [image for image in references if "control:" in image]


@pytest.mark.parametrize(
    ("values", "by_tag"),
    [
        ({}, "control, postgres, train"),
        ({"images": {"control": {"digest": DIGESTS["control"]}}}, "postgres, train"),
        (
            {**EXTERNAL, "mlflow": {"enabled": False}, "console": {"enabled": False}},
            "control, postgres",
        ),
        (AIRGAP, None),
    ],
)
def test_the_notes_name_the_images_that_run_by_tag(values, by_tag):
    notes = make.chart.files(values)["agentworld/templates/NOTES.txt"]
    names = re.findall(r"run by a tag, which may name another image tomorrow: (.*?)\. Give", notes)
    assert names == ([by_tag] if by_tag else [])
