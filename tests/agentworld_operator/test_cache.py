from hypothesis import given
from hypothesis import strategies as st

from agentworld.cluster.names import DIGEST_LABEL
from agentworld_operator.cache import Cache


def thing(name="a", version=1, uid="u1", engine=None):
    labels = {DIGEST_LABEL: engine} if engine else {}
    metadata = {"name": name, "uid": uid, "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata}


def test_the_newest_version_is_cached():
    cache = Cache()
    assert cache.put("Pod", thing(version=1))
    assert cache.put("Pod", thing(version=2))
    assert cache.get("Pod", "a") == thing(version=2)


def test_managed_fields_are_not_cached():
    cache, found = Cache(), thing()
    found["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    cache.put("Pod", found)
    assert cache.get("Pod", "a") == thing()


def test_an_older_version_from_a_watch_is_ignored():
    cache = Cache()
    cache.put("Pod", thing(version=5))
    assert not cache.put("Pod", thing(version=4))
    assert cache.get("Pod", "a") == thing(version=5)


def test_a_late_answer_does_not_restore_a_deleted_object():
    cache = Cache()
    cache.put("Pod", thing(version=1))
    cache.drop("Pod", thing(version=3))
    assert cache.put("Pod", thing(version=2)) == []
    assert cache.replace("Pod", 2, [thing(version=2)]) == []
    assert cache.get("Pod", "a") is None
    assert cache.put("Pod", thing(version=4, uid="new"))


def test_a_late_answer_does_not_restore_an_object_known_only_by_its_deletion():
    cache = Cache()
    cache.drop("Pod", thing(version=2))
    assert cache.put("Pod", thing(version=1)) == []


def test_an_object_that_regains_its_label_is_cached_again():
    cache = Cache()
    cache.put("Pod", thing(version=1, engine="e1"))
    cache.drop("Pod", thing(version=2))  # a watch of the label reports that it is deleted
    assert cache.put("Pod", thing(version=3, engine="e1"))
    assert cache.get("Pod", "a") == thing(version=3, engine="e1")
    assert cache.of_engine("Pod", "e1") == [thing(version=3, engine="e1")]


def test_a_late_report_of_a_lost_label_does_not_remove_a_later_version():
    cache = Cache()
    cache.put("Pod", thing(version=3, engine="e1"))
    cache.drop("Pod", thing(version=2))
    assert cache.get("Pod", "a") == thing(version=3, engine="e1")


def test_an_object_missing_from_a_list_is_deleted_at_the_version_of_the_list():
    cache = Cache()
    cache.put("Pod", thing(version=1))
    assert cache.replace("Pod", 5, []) == [thing(version=1)]
    assert cache.put("Pod", thing(version=4)) == []
    assert cache.put("Pod", thing(version=6))


def test_a_recreated_object_survives_the_deletion_of_the_old_object():
    cache = Cache()
    cache.put("Pod", thing(version=9, uid="new"))
    cache.drop("Pod", thing(version=8, uid="old"))
    assert cache.get("Pod", "a") == thing(version=9, uid="new")


def test_pods_are_found_by_their_engine_until_deleted():
    cache = Cache()
    mine = thing("mine", engine="e1")
    cache.put("Pod", mine)
    cache.put("Pod", thing("other", engine="e2"))
    assert cache.of_engine("Pod", "e1") == [mine]
    cache.drop("Pod", mine)
    assert cache.of_engine("Pod", "e1") == []


def test_a_full_list_reports_changes_missed_by_a_watch():
    cache = Cache()
    for name in ("same", "changed", "gone"):
        cache.put("Pod", thing(name))
    told = cache.replace("Pod", 7, [thing("same"), thing("changed", 2), thing("new", 3)])
    assert sorted(each["metadata"]["name"] for each in told) == ["changed", "gone", "new"]
    assert sorted(each["metadata"]["name"] for each in cache.all("Pod")) == [
        "changed",
        "new",
        "same",
    ]


def test_a_recreated_object_also_reports_the_old_object():
    cache, old, new = Cache(), thing(version=1, uid="old"), thing(version=5, uid="new")
    cache.put("Pod", old)
    assert cache.put("Pod", new) == [old, new]
    assert cache.put("Pod", thing(version=6, uid="new")) == [thing(version=6, uid="new")]
    assert cache.replace("Pod", 9, [thing(version=9, uid="newest")])[0]["metadata"]["uid"] == "new"


def test_a_pod_moved_to_another_engine_is_reported_for_both_engines():
    cache, mine, theirs = Cache(), thing(engine="e1"), thing(version=2, engine="e2")
    cache.put("Pod", mine)
    assert cache.put("Pod", theirs) == [mine, theirs]
    assert cache.of_engine("Pod", "e1") == []
    assert cache.of_engine("Pod", "e2") == [theirs]


def test_an_object_newer_than_a_list_is_kept():
    cache = Cache()
    cache.put("Pod", thing("late", version=9))
    assert cache.replace("Pod", 7, []) == []
    assert cache.get("Pod", "late")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 20)), max_size=30))
def test_the_newest_version_is_kept_in_any_order_of_updates(told):
    cache = Cache()
    for name, version in told:
        cache.put("Pod", thing(name, version))
    for name in {name for name, _ in told}:
        newest = max(version for other, version in told if other == name)
        assert cache.get("Pod", name) == thing(name, newest)
