"""The identity of a simulator: no field of its manifest can change without its digest."""

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentworld.errors import InputError
from agentworld.records.simulator import (
    ConfidencePolicy,
    Endpoint,
    EnginePin,
    RetryPolicy,
    Sampling,
    SimulatorManifest,
)
from make import records
from make.examples import examples

TEXTS = st.text(max_size=20)
DIGESTS = st.integers(0, 2**16).map(lambda number: records.digest(str(number)))
COUNTS = st.integers(1, 2**31 - 1)
SHARES = st.floats(0, 1)
POSITIVE_SHARES = st.floats(0, 1, exclude_min=True)

VALUES: dict[str, st.SearchStrategy[object]] = {
    "artifact": DIGESTS,
    "files": st.dictionaries(TEXTS, DIGESTS, max_size=3),
    "control_text": TEXTS,
    "sampling.temperature": st.floats(0, allow_infinity=False),
    "sampling.top_p": POSITIVE_SHARES,
    "sampling.top_k": st.integers(0, 2**31 - 1),
    "sampling.max_tokens": COUNTS,
    "sampling.stop": st.lists(TEXTS, max_size=3),
    "sampling.thinking": st.booleans(),
    "sampling.seed_policy": st.sampled_from(["refuse", "seeded"]),
    "context_tokens": COUNTS,
    "engine.kind": st.sampled_from(["transformers-serve", "vllm"]),
    "engine.version": TEXTS,
    "engine.lock": DIGESTS,
    "engine.dtype": TEXTS,
    "engine.quantisation": st.none() | TEXTS,
    "engine.parallelism": COUNTS,
    "engine.arguments": st.lists(TEXTS, max_size=3),
    "engine.environment": st.dictionaries(
        st.from_regex("VLLM_[A-Z]{1,8}_[0-9]", fullmatch=True),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9),
        max_size=3,
    ),
    "renderer": TEXTS,
    "request": TEXTS,
    "parser": TEXTS,
    "retry.attempts": st.integers(1, 10),
    "retry.retry_on": st.lists(st.sampled_from(["slow", "cut-off"]), max_size=2),
    "confidence.num_samples": st.integers(2, 16),
    "confidence.min_logprob": st.none() | st.floats(allow_nan=False, allow_infinity=False),
    "confidence.min_agreement": st.none() | SHARES,
    "confidence.below": st.sampled_from(["mark", "refuse"]),
    "domains": st.dictionaries(
        st.from_regex("[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True),
        st.fixed_dictionaries({"version": TEXTS, "system_prompt": TEXTS}),
        min_size=1,
        max_size=3,
    ),
}
SINGLE_VALUE_FIELDS = {"schema", "on_context_overflow"}
ALTERNATIVE_FIELDS = {"engine.image"}
MANIFESTS = st.fixed_dictionaries(VALUES).map(lambda values: SimulatorManifest(**tree(values)))


def tree(values: dict[str, object]) -> dict[str, object]:
    """Values by their paths as nested fields."""
    fields: dict[str, object] = {}
    for path, value in values.items():
        part, _, name = path.rpartition(".")
        inner = fields.setdefault(part, {}) if part else fields
        inner[name] = value
    return fields


def paths(record: type[BaseModel], start: str = "") -> Iterator[str]:
    """The path of every field, including those of nested records."""
    inner = {"sampling": Sampling, "engine": EnginePin, "retry": RetryPolicy}
    inner["confidence"] = ConfidencePolicy
    for name, field in record.model_fields.items():
        if name in inner and not start:
            yield from paths(inner[name], f"{name}.")
        else:
            yield start + (field.alias or name)


def test_the_tests_cover_every_field_of_a_manifest():
    covered = VALUES.keys() | SINGLE_VALUE_FIELDS | ALTERNATIVE_FIELDS
    assert set(paths(SimulatorManifest)) == covered


@examples(10)
@given(MANIFESTS, st.data())
def test_a_changed_value_of_any_field_changes_the_digest(manifest, data):
    for path, values in VALUES.items():
        part, _, name = path.rpartition(".")
        fields = manifest.model_dump(mode="json")
        (fields[part] if part else fields)[name] = data.draw(values, path)
        other = SimulatorManifest.model_validate(fields)
        assert (other.digest == manifest.digest) == (other == manifest), path


@pytest.mark.compute
@given(MANIFESTS, st.randoms())
def test_field_order_and_json_format_do_not_change_the_digest(manifest, chance):
    text = json.dumps(shuffle_keys(manifest.model_dump(mode="json"), chance), indent=3)
    assert SimulatorManifest.model_validate_json(text).digest == manifest.digest


def shuffle_keys(value: object, chance: random.Random) -> object:
    """The same JSON with the keys of every object in another order."""
    if not isinstance(value, dict):
        return value
    keys = list(value)
    chance.shuffle(keys)
    return {key: shuffle_keys(value[key], chance) for key in keys}


@pytest.mark.compute
@given(MANIFESTS)
def test_canonical_bytes_restore_the_manifest_and_hash_to_its_digest(manifest):
    assert SimulatorManifest.model_validate_json(manifest.canonical) == manifest
    assert "sha256:" + hashlib.sha256(manifest.canonical).hexdigest() == manifest.digest


def test_a_manifest_of_an_earlier_release_keeps_its_digest():
    path = Path(__file__).with_name("manifest-v2.json")
    digest = "sha256:076c66c46455cc38ba4e6c0b95077e5ff8f0cb46106f04d5c8c6a914faf5e17f"
    assert SimulatorManifest.read(path).digest == digest


def test_the_sha256_of_a_manifest_file_is_its_digest(tmp_path):
    manifest, path = records.manifest(), tmp_path / "manifest.json"
    manifest.write(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == manifest.digest.removeprefix("sha256:")
    assert SimulatorManifest.read(path) == manifest


def test_a_reformatted_manifest_file_is_refused(tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(records.manifest().model_dump_json(indent=2))
    with pytest.raises(InputError, match=r"manifest\.json was rewritten in another form"):
        SimulatorManifest.read(path)


def test_a_manifest_of_another_schema_is_refused(tmp_path):
    path = tmp_path / "manifest.json"
    records.manifest().write(path)
    path.write_text(path.read_text().replace('"v2"', '"v1"', 1))
    with pytest.raises(InputError, match="schema: Input should be 'v2'"):
        SimulatorManifest.read(path)


def test_a_manifest_with_invalid_unicode_has_no_digest():
    domains = records.pinned_domains(system_prompt="a broken argument: \udcff")
    with pytest.raises(InputError, match="has no canonical JSON"):
        _ = records.manifest(domains=domains).digest


def test_an_engine_pin_has_either_an_image_or_a_lock():
    image, lock = records.digest("image"), records.digest("lock")
    fields = {"kind": "vllm", "version": "vllm 1"}
    image_manifest = records.manifest(engine={**fields, "image": image})
    assert image_manifest.digest != records.manifest(engine={**fields, "lock": image}).digest
    for invalid_fields in ({}, {"image": image, "lock": lock}):
        with pytest.raises(ValueError, match="in an image or in an environment"):
            EnginePin(**fields, **invalid_fields)


ENDPOINT = {"kind": "openai", "url": "http://127.0.0.1:8000", "model": "somebody/model"}


def pin_endpoint(**fields: object) -> SimulatorManifest:
    return records.manifest(artifact=None, files={}, engine=ENDPOINT, **fields)


@pytest.mark.parametrize("field", ["url", "model"])
def test_another_endpoint_url_or_model_changes_the_digest(field):
    engine = ENDPOINT | {field: ENDPOINT[field] + "/2"}
    assert records.manifest(artifact=None, files={}, engine=engine).digest != pin_endpoint().digest


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"artifact": records.digest("weights"), "files": {}, "engine": ENDPOINT},
            "neither an artifact",
        ),
        (
            {"artifact": None, "files": {"a": records.digest("a")}, "engine": ENDPOINT},
            "neither an artifact",
        ),
        ({"artifact": None, "files": {}}, "an engine of ours serves an artifact"),
    ],
    ids=["an endpoint's weights", "an endpoint's files", "no weights"],
)
def test_a_manifest_has_either_weights_or_an_endpoint(fields, message):
    with pytest.raises(ValueError, match=message):
        records.manifest(**fields)


@pytest.mark.parametrize(
    "url",
    ["https://me:secret@there/v1", "https://there/v1?key=secret", "https://there#x", "ftp://there"],
)
def test_an_endpoint_url_with_a_secret_or_another_scheme_is_refused(url):
    with pytest.raises(ValueError, match="String should match"):
        Endpoint(url=url, model="m")


def test_min_agreement_with_a_single_sample_is_refused():
    with pytest.raises(
        ValueError, match="a single sample has nothing to agree with: raise num_samples"
    ):
        ConfidencePolicy(min_agreement=0.5)


@pytest.mark.parametrize("domains", [{}, {"A Shell": records.pinned_domains()["shell"]}])
def test_missing_domains_and_invalid_domain_names_are_refused(domains):
    with pytest.raises(ValueError, match="domains"):
        records.manifest(domains=domains)


@pytest.mark.parametrize("field", ["version", "system_prompt"])
@pytest.mark.parametrize("name", ["shell", "text"])
def test_a_changed_version_or_prompt_of_one_domain_changes_the_digest(name, field):
    domains = records.pinned_domains("shell", "text")
    manifest = records.manifest(domains=domains)
    domains[name] = domains[name].model_copy(update={field: "another"})
    assert records.manifest(domains=domains).digest != manifest.digest


def test_the_order_of_domains_does_not_change_the_digest():
    first, second = (
        records.pinned_domains(*names) for names in (["shell", "text"], ["text", "shell"])
    )
    assert records.manifest(domains=first).digest == records.manifest(domains=second).digest


def test_an_opening_without_a_domain_gets_the_only_domain():
    assert records.manifest().domain_of("") == "shell"
    manifest = records.manifest(domains=records.pinned_domains("shell", "text"))
    assert [manifest.domain_of(name) for name in ("shell", "text")] == ["shell", "text"]


@pytest.mark.parametrize(
    ("names", "opening", "sentence"),
    [
        (["shell", "text"], "", "this simulator has several domains; name one of shell, text"),
        (["shell", "text"], "sql", "this simulator has no domain 'sql'; it has shell, text"),
        (["shell"], "text", "this simulator has no domain 'text'; it has shell"),
    ],
)
def test_an_ambiguous_or_unknown_domain_of_an_opening_is_refused(names, opening, sentence):
    manifest = records.manifest(domains=records.pinned_domains(*names))
    with pytest.raises(InputError) as error:
        manifest.domain_of(opening)
    assert str(error.value) == sentence
