"""Written YAML is read back unchanged, by our reader and by readers of YAML 1.1."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentworld.recipes.data import CollectRecipe
from agentworld.recipes.yaml_text import read_yaml, to_yaml

pytestmark = pytest.mark.compute

NUMBERS = st.from_regex(r"[-+]?([0-9]{1,3}\.?[0-9]?|\.[0-9])[eE][-+]?[0-9]{1,3}", fullmatch=True)
WORDS = st.sampled_from(
    ["yes", "Off", "true", "null", "~", "", "12:30", "2024-01-01", "0x1f", "<<"]
)
TEXTS = NUMBERS | WORDS | st.text()
PLAIN = TEXTS | st.none() | st.booleans() | st.integers()
VALUES = st.recursive(
    PLAIN | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=8,
)


@given(
    st.builds(CollectRecipe, trajectories=TEXTS, options=st.dictionaries(TEXTS, VALUES, max_size=4))
)
def test_any_recipe_value_is_read_back_unchanged_from_yaml(recipe):
    text = to_yaml(recipe)
    for value in (read_yaml(text).value, yaml.safe_load(text)):
        assert CollectRecipe.model_validate(value) == recipe
