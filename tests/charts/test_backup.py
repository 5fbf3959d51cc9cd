"""The CronJobs of backups and restores as the chart renders them."""

import re
import subprocess

import pytest
import yaml
from helm_python.errors import HelmRenderError

import make.chart
from machines import prometheus
from make.chart import CHART, EVERYTHING, EXTERNAL, ROOT

GUIDE = (ROOT / "docs/operate/backup.md").read_text()
BACKUP = {"enabled": True}


def render(values=None, **backup):
    return make.chart.objects({**(values or {}), "backup": {**BACKUP, **backup}})


def spec_of(objects, component="backup"):
    return make.chart.pods(objects)[component]["spec"]


def container(spec, name):
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    (match,) = [item for item in containers if item["name"] == name]
    return match


def secrets_of(container):
    references = [
        variable["valueFrom"]["secretKeyRef"]
        for variable in container["env"]
        if "valueFrom" in variable
    ]
    return {(reference["name"], reference["key"]) for reference in references}


def test_a_backup_copies_texts_then_dumps_databases_then_copies_the_rest():
    spec = spec_of(render())
    names = [item["name"] for item in (*spec["initContainers"], *spec["containers"])]
    assert names == ["begin", "dump", "finish"]
    script = container(spec, "dump")["command"][-1]
    assert script.index('dump ledger "$LEDGER_URL"') < script.index('dump mlflow "$MLFLOW_URL"')


def test_one_backup_runs_at_a_time_on_a_utc_schedule_with_a_deadline():
    cron = make.chart.only(render(EVERYTHING, deadlineSeconds=60), "CronJob", "agentworld-backup")
    job = cron["spec"]["jobTemplate"]["spec"]
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"
    assert (cron["spec"]["schedule"], cron["spec"]["timeZone"]) == ("17 2 * * *", "Etc/UTC")
    assert (job["activeDeadlineSeconds"], job["backoffLimit"]) == (60, 2)
    assert job["template"]["spec"]["restartPolicy"] == "Never"


def test_a_backup_mounts_stores_read_only_and_mounts_no_secret():
    for values in ({}, EVERYTHING):
        spec = spec_of(render(values))
        assert not [volume for volume in spec["volumes"] if "secret" in volume]
        for item in (*spec["initContainers"], *spec["containers"]):
            mounts = {mount["name"]: mount for mount in item["volumeMounts"]}
            assert mounts.get("stores", {"readOnly": True})["readOnly"] is True
            if item["name"] != "dump":
                assert secrets_of(item) == set()


def test_the_dump_folder_has_a_size_limit():
    volumes = {volume["name"]: volume for volume in spec_of(render(dumpSize="7Gi"))["volumes"]}
    assert volumes["work"]["emptyDir"] == {"sizeLimit": "7Gi"}


def test_a_read_only_database_user_dumps_and_the_owner_restores():
    objects = make.chart.objects(EVERYTHING)
    databases = {"agentworld-url", "mlflow-url"}
    dump = container(spec_of(objects), "dump")
    assert secrets_of(dump) == {("reader", key) for key in databases}
    restore = container(spec_of(objects, "restore"), "postgres")
    assert secrets_of(restore) == {("agentworld-database", key) for key in databases}
    assert dump["image"] == restore["image"]
    assert dump["image"] == make.chart.pods(objects)["database"]["spec"]["containers"][0]["image"]


@pytest.mark.parametrize("values", [{"mlflow": {"enabled": False}}, {"backup": {"mlflow": False}}])
def test_backups_omit_the_mlflow_database_where_disabled(values):
    for component, name in (("backup", "dump"), ("restore", "postgres")):
        spec = spec_of(render(values, **values.get("backup", {})), component)
        assert "MLFLOW_URL" not in str(spec)
        assert secrets_of(container(spec, name)) == {("agentworld-database", "agentworld-url")}


def test_backups_in_a_bucket_need_no_claim_and_use_configured_credentials():
    objects = make.chart.objects(EXTERNAL)
    for component in ("backup", "restore"):
        spec = spec_of(objects, component)
        assert not [volume for volume in spec["volumes"] if "persistentVolumeClaim" in volume]
    begin = container(spec_of(objects), "begin")
    assert begin["command"][-2:] == ["s3://backups/agentworld", "/work"]
    assert begin["envFrom"] == [{"secretRef": {"name": "cloud"}}]
    finish = container(spec_of(make.chart.objects(EVERYTHING)), "finish")
    assert finish["envFrom"] == [{"secretRef": {"name": "cloud-backup"}}]


def test_backups_use_an_existing_claim_instead_of_a_new_claim():
    objects = render(claim={"existing": "nas"})
    claims = [
        claim["metadata"]["name"] for claim in make.chart.of_kind(objects, "PersistentVolumeClaim")
    ]
    assert "agentworld-backup" not in claims
    for component in ("backup", "restore"):
        volumes = {volume["name"]: volume for volume in spec_of(objects, component)["volumes"]}
        assert volumes["backups"]["persistentVolumeClaim"] == {"claimName": "nas"}


def test_a_restore_waits_for_commands_and_never_starts_by_itself():
    objects = render({"service": {"stepKeysConfigMap": "step-keys"}})
    cron = make.chart.only(objects, "CronJob", "agentworld-restore")["spec"]
    assert cron["suspend"] is True
    spec = spec_of(objects, "restore")
    assert {tuple(item["command"]) for item in spec["containers"]} == {("sleep", "infinity")}
    program = container(spec, "agentworld")
    writable = {mount["name"] for mount in program["volumeMounts"] if "readOnly" not in mount}
    assert writable == {"stores", "tmp", "work"}
    assert ("agentworld-database", "agentworld-url") in secrets_of(program)
    mount_paths = {mount["name"]: mount["mountPath"] for mount in program["volumeMounts"]}
    assert mount_paths["keys"] == "/keys/simulator"
    assert mount_paths["step-keys"] == "/keys/steps/trusted"


def test_backup_and_restore_pods_are_placed_on_the_node_of_the_claim():
    affinity = spec_of(render(), "service")["affinity"]
    assert spec_of(render())["affinity"] == affinity
    (preferred,) = spec_of(render(), "restore")["affinity"]["podAffinity"].values()
    (required,) = affinity["podAffinity"].values()
    assert [term["podAffinityTerm"] for term in preferred] == required
    assert "affinity" not in spec_of(make.chart.objects(EVERYTHING), "restore")
    assert "affinity" not in spec_of(make.chart.objects(EVERYTHING))
    values = {"stores": {"claim": {"accessMode": "ReadWriteOncePod"}}}
    with pytest.raises(HelmRenderError, match=r"accessMode is ReadWriteOncePod, .* no backup"):
        render(values)


@pytest.mark.parametrize("url", ["/stores", "/stores/backups", "/work", "/keys"])
def test_a_backup_url_inside_another_mounted_folder_is_refused(url):
    with pytest.raises(HelmRenderError, match=f"backup.url is {url}, which is another folder"):
        render(url=url)
    assert render(url="/storestoo")


def test_the_notes_show_the_backup_schedule():
    def notes(values):
        return make.chart.files(values)["agentworld/templates/NOTES.txt"]

    assert "no backups" in notes({})
    with_backups = notes({"backup": BACKUP})
    assert "no backups" not in with_backups
    assert "`17 2 * * *` (UTC)" in with_backups


def test_objects_and_pods_named_in_the_guide_exist():
    objects = make.chart.objects(EVERYTHING)
    components = make.chart.pods(objects)
    lines = re.findall(r"^kubectl --namespace worlds .*", GUIDE, re.M)
    names = {
        match
        for line in lines
        for match in re.findall(r"(cronjob|deployment)[ /](agentworld-\w+)", line)
    }
    assert {kind for kind, _ in names} == {"cronjob", "deployment"}
    for kind, name in names:
        assert make.chart.only(objects, {"cronjob": "CronJob"}.get(kind, "Deployment"), name)
    for group in re.findall(r"component(?:=| in \()([\w, ]+)", "\n".join(lines)):
        assert set(group.split(", ")) <= components.keys()
    jobs = [
        cron["spec"]["jobTemplate"]["metadata"]["labels"]["app.kubernetes.io/component"]
        for cron in make.chart.of_kind(objects, "CronJob")
    ]
    assert sorted(jobs) == ["backup", "restore"]


CRON = {"namespace": "worlds", "cronjob": "agentworld-backup"}
DAY = 24 * 3600
"""The period; a backup was due at the end of the first day."""


def alert_case(*, hours, fires, spec_suspend=0, **metrics):
    """A promtool test of whether the alert fires after these hours of constant metrics."""
    metrics_by_name = {
        "spec_suspend": spec_suspend,
        "status_last_schedule_time": DAY,
        "next_schedule_time": 2 * DAY,
        **metrics,
    }
    labels = ", ".join(f"{name}='{value}'" for name, value in CRON.items())
    alert = {
        "exp_labels": {**CRON, "severity": "warning"},
        "exp_annotations": {
            "summary": "No backup was completed (worlds)",
            "description": "The CronJob agentworld-backup has completed no backup for twice its"
            " period, or is suspended.",
        },
    }
    return {
        "interval": "10m",
        "input_series": [
            {"series": f"kube_cronjob_{name}{{{labels}}}", "values": f"{value}+0x{6 * hours}"}
            for name, value in metrics_by_name.items()
        ],
        "alert_rule_test": [
            {
                "alertname": "AgentworldBackupMissing",
                "eval_time": f"{hours}h",
                "exp_alerts": [alert] if fires else [],
            }
        ],
    }


@pytest.mark.waits
def test_an_alert_fires_after_two_periods_without_a_backup_or_on_suspension(tmp_path):
    cases = [
        alert_case(hours=48, fires=False, status_last_successful_time=0),
        alert_case(hours=50, fires=True, status_last_successful_time=0),
        alert_case(hours=50, fires=False, status_last_successful_time=DAY),
        alert_case(hours=48, fires=False, created=0),
        alert_case(hours=50, fires=True, created=0),
        alert_case(hours=2, fires=False, status_last_successful_time=0),
        alert_case(hours=2, fires=True, status_last_successful_time=0, spec_suspend=1),
    ]
    rules = {"rule_files": [str(CHART / "alerts.yaml")], "evaluation_interval": "10m"}
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({**rules, "tests": cases}))
    command = [prometheus.program("promtool"), "test", "rules", file]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
