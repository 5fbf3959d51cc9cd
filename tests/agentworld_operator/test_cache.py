from hypothesis import given
from hypothesis import strategies as st

from agentworld.cluster.names import DIGEST_LABEL
from agentworld_operator.cache import Cache


def pod(name="a", version=1, uid="u1", engine=None):
    labels = {DIGEST_LABEL: engine} if engine else {}
    metadata = {"name": name, "uid": uid, "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata}


def test_the_newest_version_is_cached():
    cache = Cache()
    assert cache.put("Pod", pod(version=1))
    assert cache.put("Pod", pod(version=2))
    assert cache.get("Pod", "a") == pod(version=2)


def test_managed_fields_are_not_cached():
    cache, managed_pod = Cache(), pod()
    managed_pod["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    cache.put("Pod", managed_pod)
    assert cache.get("Pod", "a") == pod()


def test_an_older_version_from_a_watch_is_ignored():
    cache = Cache()
    cache.put("Pod", pod(version=5))
    assert not cache.put("Pod", pod(version=4))
    assert cache.get("Pod", "a") == pod(version=5)


def test_a_late_answer_does_not_restore_a_deleted_object():
    cache = Cache()
    cache.put("Pod", pod(version=1))
    cache.drop("Pod", pod(version=3))
    assert cache.put("Pod", pod(version=2)) == []
    assert cache.replace("Pod", 2, [pod(version=2)]) == []
    assert cache.get("Pod", "a") is None
    assert cache.put("Pod", pod(version=4, uid="new"))


def test_a_late_answer_does_not_restore_an_object_known_only_by_its_deletion():
    cache = Cache()
    cache.drop("Pod", pod(version=2))
    assert cache.put("Pod", pod(version=1)) == []


def test_an_object_that_regains_its_label_is_cached_again():
    cache = Cache()
    cache.put("Pod", pod(version=1, engine="e1"))
    cache.drop("Pod", pod(version=2))  # a watch of the label reports that it is deleted
    assert cache.put("Pod", pod(version=3, engine="e1"))
    assert cache.get("Pod", "a") == pod(version=3, engine="e1")
    assert cache.of_engine("Pod", "e1") == [pod(version=3, engine="e1")]


def test_a_late_report_of_a_lost_label_does_not_remove_a_later_version():
    cache = Cache()
    cache.put("Pod", pod(version=3, engine="e1"))
    cache.drop("Pod", pod(version=2))
    assert cache.get("Pod", "a") == pod(version=3, engine="e1")


def test_an_object_missing_from_a_list_is_deleted_at_the_version_of_the_list():
    cache = Cache()
    cache.put("Pod", pod(version=1))
    assert cache.replace("Pod", 5, []) == [pod(version=1)]
    assert cache.put("Pod", pod(version=4)) == []
    assert cache.put("Pod", pod(version=6))


def test_a_recreated_object_survives_the_deletion_of_the_old_object():
    cache = Cache()
    cache.put("Pod", pod(version=9, uid="new"))
    cache.drop("Pod", pod(version=8, uid="old"))
    assert cache.get("Pod", "a") == pod(version=9, uid="new")


def test_pods_are_found_by_their_engine_until_deleted():
    cache = Cache()
    engine_pod = pod("mine", engine="e1")
    cache.put("Pod", engine_pod)
    cache.put("Pod", pod("other", engine="e2"))
    assert cache.of_engine("Pod", "e1") == [engine_pod]
    cache.drop("Pod", engine_pod)
    assert cache.of_engine("Pod", "e1") == []


def test_a_full_list_reports_changes_missed_by_a_watch():
    cache = Cache()
    for name in ("same", "changed", "gone"):
        cache.put("Pod", pod(name))
    changes = cache.replace("Pod", 7, [pod("same"), pod("changed", 2), pod("new", 3)])
    assert sorted(resource["metadata"]["name"] for resource in changes) == [
        "changed",
        "gone",
        "new",
    ]
    assert sorted(resource["metadata"]["name"] for resource in cache.all("Pod")) == [
        "changed",
        "new",
        "same",
    ]


def test_a_recreated_object_also_reports_the_old_object():
    cache, old, new = Cache(), pod(version=1, uid="old"), pod(version=5, uid="new")
    cache.put("Pod", old)
    assert cache.put("Pod", new) == [old, new]
    assert cache.put("Pod", pod(version=6, uid="new")) == [pod(version=6, uid="new")]
    assert cache.replace("Pod", 9, [pod(version=9, uid="newest")])[0]["metadata"]["uid"] == "new"


def test_a_pod_moved_to_another_engine_is_reported_for_both_engines():
    cache, before, after = Cache(), pod(engine="e1"), pod(version=2, engine="e2")
    cache.put("Pod", before)
    assert cache.put("Pod", after) == [before, after]
    assert cache.of_engine("Pod", "e1") == []
    assert cache.of_engine("Pod", "e2") == [after]


def test_an_object_newer_than_a_list_is_kept():
    cache = Cache()
    cache.put("Pod", pod("late", version=9))
    assert cache.replace("Pod", 7, []) == []
    assert cache.get("Pod", "late")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 20)), max_size=30))
def test_the_newest_version_is_kept_in_any_order_of_updates(updates):
    cache = Cache()
    for name, version in updates:
        cache.put("Pod", pod(name, version))
    for name in {name for name, _ in updates}:
        newest = max(version for other, version in updates if other == name)
        assert cache.get("Pod", name) == pod(name, newest)
