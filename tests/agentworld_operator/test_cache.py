from hypothesis import given
from hypothesis import strategies as st

from agentworld.cluster.names import DIGEST_LABEL
from agentworld_operator.cache import Cache


def thing(name="a", version=1, uid="u1", engine=None):
    labels = {DIGEST_LABEL: engine} if engine else {}
    metadata = {"name": name, "uid": uid, "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata}


def test_what_was_told_last_is_known():
    cache = Cache()
    assert cache.put("Pod", thing(version=1))
    assert cache.put("Pod", thing(version=2))
    assert cache.get("Pod", "a") == thing(version=2)


def test_who_wrote_which_field_is_not_kept():
    cache, found = Cache(), thing()
    found["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    cache.put("Pod", found)
    assert cache.get("Pod", "a") == thing()


def test_a_watch_that_lags_behind_an_answer_tells_no_news():
    cache = Cache()
    cache.put("Pod", thing(version=5))
    assert not cache.put("Pod", thing(version=4))
    assert cache.get("Pod", "a") == thing(version=5)


def test_an_answer_that_comes_after_the_watch_told_of_a_deletion_brings_nothing_back():
    cache = Cache()
    cache.put("Pod", thing(version=1))
    cache.drop("Pod", thing(version=3))
    assert cache.put("Pod", thing(version=2)) == []
    assert cache.replace("Pod", 2, [thing(version=2)]) == []
    assert cache.get("Pod", "a") is None
    assert cache.put("Pod", thing(version=4, uid="new"))


def test_an_answer_brings_nothing_back_that_was_told_of_by_its_deletion_alone():
    cache = Cache()
    cache.drop("Pod", thing(version=2))
    assert cache.put("Pod", thing(version=1)) == []


def test_an_object_that_loses_its_label_and_has_it_again_is_known():
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


def test_an_object_that_a_list_lacked_is_deleted_at_the_version_of_the_list():
    cache = Cache()
    cache.put("Pod", thing(version=1))
    assert cache.replace("Pod", 5, []) == [thing(version=1)]
    assert cache.put("Pod", thing(version=4)) == []
    assert cache.put("Pod", thing(version=6))


def test_an_object_that_was_made_anew_is_not_forgotten_with_the_old_one():
    cache = Cache()
    cache.put("Pod", thing(version=9, uid="new"))
    cache.drop("Pod", thing(version=8, uid="old"))
    assert cache.get("Pod", "a") == thing(version=9, uid="new")


def test_pods_are_found_by_their_engine_until_they_are_gone():
    cache = Cache()
    mine = thing("mine", engine="e1")
    cache.put("Pod", mine)
    cache.put("Pod", thing("other", engine="e2"))
    assert cache.of_engine("Pod", "e1") == [mine]
    cache.drop("Pod", mine)
    assert cache.of_engine("Pod", "e1") == []


def test_a_whole_list_tells_what_a_watch_missed():
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


def test_one_of_the_same_name_tells_that_the_last_one_is_gone():
    cache, old, new = Cache(), thing(version=1, uid="old"), thing(version=5, uid="new")
    cache.put("Pod", old)
    assert cache.put("Pod", new) == [old, new]
    assert cache.put("Pod", thing(version=6, uid="new")) == [thing(version=6, uid="new")]
    assert cache.replace("Pod", 9, [thing(version=9, uid="newest")])[0]["metadata"]["uid"] == "new"


def test_what_was_given_to_another_engine_is_news_for_both():
    cache, mine, theirs = Cache(), thing(engine="e1"), thing(version=2, engine="e2")
    cache.put("Pod", mine)
    assert cache.put("Pod", theirs) == [mine, theirs]
    assert cache.of_engine("Pod", "e1") == []
    assert cache.of_engine("Pod", "e2") == [theirs]


def test_what_came_after_a_list_was_made_is_not_gone():
    cache = Cache()
    cache.put("Pod", thing("late", version=9))
    assert cache.replace("Pod", 7, []) == []
    assert cache.get("Pod", "late")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 20)), max_size=30))
def test_in_whichever_order_news_come_the_newest_stays(told):
    cache = Cache()
    for name, version in told:
        cache.put("Pod", thing(name, version))
    for name in {name for name, _ in told}:
        newest = max(version for other, version in told if other == name)
        assert cache.get("Pod", name) == thing(name, newest)
