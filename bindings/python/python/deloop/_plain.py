"""Makes JSON of whatever a framework hands over as arguments or output."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from enum import Enum
from typing import Any

DEPTH = 24
ITEMS = 2_000
TEXT = 200_000


def plain(value: object, depth: int = 0) -> Any:
    """Returns `value` as JSON: dicts, lists, strings, finite numbers, booleans and None.

    Anything else becomes its fields (pydantic models, dataclasses), its ISO form (dates) or its text. What is nested
    deeper than `DEPTH`, or longer than `ITEMS` or `TEXT`, is cut.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value, depth)
    if isinstance(value, str):
        return value[:TEXT].encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value[:TEXT]).decode("utf-8", "replace")
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if depth >= DEPTH:
        return "..."
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return plain(dump(), depth + 1)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: plain(getattr(value, name), depth + 1) for name in names[:ITEMS]}
    if isinstance(value, Mapping):
        pairs = list(value.items())[:ITEMS]
        return {key if isinstance(key, str) else str(key): plain(item, depth + 1) for key, item in pairs}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        return [plain(item, depth + 1) for item in list(items)[:ITEMS]]
    return plain(str(value), depth)


def parsed(args: object) -> object:
    """Returns arguments that are the text of a JSON object as that object, and everything else as it is."""
    if isinstance(args, str) and args.lstrip().startswith("{"):
        try:
            return json.loads(args)
        except ValueError:
            pass
    return args
