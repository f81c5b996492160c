"""The file of all runs, from which tables and plots are made; and the arithmetic on them."""

import json
import os
import statistics

FORMAT = 1


def load(path):
    """Returns the rows of a file by name; none where there is no file."""
    if not path.exists():
        return {}
    stored = json.loads(path.read_text(encoding="utf-8"))
    if stored.get("format") != FORMAT:
        raise ValueError(f"{path} has another format")
    return stored["rows"]


def rounded(value):
    """Returns a value with its floats at the precision that a clock has here."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def save(path, rows):
    """Replaces the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, "rows": rounded(rows)}, indent=1, ensure_ascii=False) + "\n"
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def values(case, side, metric):
    """Returns the values of all runs of a side, in order."""
    return [run[metric] for run in case.get("sides", {}).get(side, []) if metric in run]


def median(case, side, metric):
    """Returns the median of a side; None without a run."""
    found = values(case, side, metric)
    return statistics.median(found) if found else None


def is_ours(side):
    return side.startswith("dld")


def best(case, metric, among=None):
    """Returns the least median of the peers, or of those named; None without one."""
    sides = [side for side in case.get("sides", {}) if (side in among if among else not is_ours(side))]
    found = [value for side in sides if (value := median(case, side, metric)) is not None]
    return min(found) if found else None


def quotient(one, other):
    """Returns a quotient; None where a part is unknown or it has no value."""
    return one / other if one is not None and other else None
