"""JSON in one form: sorted keys, no spaces, and Unicode as it is."""

import json
from functools import partial

_encoder = partial(json.JSONEncoder, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

encode_json = _encoder().encode
"""The text of a value; NaN and infinities are written as Python writes them."""
encode_strict_json = _encoder(allow_nan=False).encode
"""The text of a value; raises ValueError for NaN and infinities, which JSON does not have."""
