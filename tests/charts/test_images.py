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
# A trial's PostgreSQL as Docker names it.
WORDS = [f"--{name}={reference}" for name, reference in REFERENCES.items()][:2]
WORDS.append(f"--postgres=postgres:17@{DIGESTS['postgres']}")
BY_DIGEST = {"images": {"allowTags": False}}


def refused(values) -> str:
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
    assert expected in refused({})
    control = {"control": {"digest": DIGESTS["control"]}}
    assert "the image ghcr.io/agentworld/train:9 has no" in refused(
        {"images": {**control, "train": {"tag": "9"}}, **EXTERNAL}
    )
    ours = {**control, "train": {"digest": DIGESTS["train"]}}
    assert "the image docker.io/library/postgres:17 has no digest" in refused({"images": ours})


def test_an_unused_image_needs_no_digest():
    control = {"control": {"digest": DIGESTS["control"]}, "allowTags": False}
    own = {"mlflow": {"enabled": False}, "database": {"existingSecret": "postgres"}}
    found = set(images(make.chart.objects({**own, "images": control})))
    assert found == {f"ghcr.io/agentworld/control@{DIGESTS['control']}"}


def test_values_written_by_the_tool_pin_every_image_by_digest():
    done = image_values.run(*WORDS)
    assert (done.returncode, done.stderr) == (0, "")
    values = yaml.safe_load(done.stdout)
    values["images"]["allowTags"] = False
    assert set(images(make.chart.objects(values))) == set(REFERENCES.values())


def test_a_chart_with_digests_in_its_default_values_needs_no_others(tmp_path):
    """As in a release."""
    chart = tmp_path / "agentworld"
    shutil.copytree(CHART, chart)
    before = (chart / "values.yaml").read_text()
    done = image_values.run(*WORDS, f"--into={chart / 'values.yaml'}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert set(images(make.chart.objects(BY_DIGEST, chart=chart))) == set(REFERENCES.values())
    after = (chart / "values.yaml").read_text()
    assert re.findall("#.*", after) == re.findall("#.*", before)
    moved = {"images": {"registry": "elsewhere.example", "allowTags": False}}
    found = set(images(make.chart.objects(moved, chart=chart)))
    assert f"elsewhere.example/control@{DIGESTS['control']}" in found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--control=r.example/control:0.1.0", WORDS[1]], "'r.example/control:0.1.0' names no"),
        (["--control=r.example/control@sha256:12", WORDS[1]], "names no image by its digest"),
        ([f"--control=r.example/control@{DIGESTS['control']}", WORDS[1]], "push both into one"),
        ([WORDS[0]], "the following arguments are required: --train"),
        ([*WORDS, "--into=absent.yaml"], "cannot read or write absent.yaml: No such file"),
        ([*WORDS, f"--into={CHART / 'Chart.yaml'}"], "it has no value images.registry; name the"),
    ],
)
def test_the_tool_reports_invalid_arguments(words, said):
    done = image_values.run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_an_airgapped_cluster_pulls_only_from_its_mirror_by_digest():
    with_console = {**AIRGAP, **BY_DIGEST, "console": {"enabled": True}}
    with_console["images"] = {**AIRGAP["images"], "allowTags": False}
    found = list(images(make.chart.objects(with_console)))
    assert {re.split("[/@]", image)[-2] for image in found} == set(NAMES)
    for image in found:
        assert image.startswith("mirror.example/")
        assert "@sha256:" in image


def test_another_registry_applies_to_every_project_image():
    found = set(images(make.chart.objects({"images": {"registry": "elsewhere.example:5000/x"}})))
    found -= {"docker.io/library/postgres:17"}
    assert found == {f"elsewhere.example:5000/x/{name}:0.1.0" for name in ("control", "train")}


def test_a_digest_takes_precedence_over_a_tag():
    digest = f"sha256:{'2' * 64}"
    given = {"images": {"control": {"tag": "9", "digest": digest}, "train": {"tag": "9"}}}
    found = set(images(make.chart.objects(given)))
    assert f"ghcr.io/agentworld/control@{digest}" in found
    assert "ghcr.io/agentworld/train:9" in found
    assert not [image for image in found if "control:" in image]


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
    named = re.findall(r"run by a tag, which may name another image tomorrow: (.*?)\. Give", notes)
    assert named == ([by_tag] if by_tag else [])
