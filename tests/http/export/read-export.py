"""Reads an export with nothing but Python's own libraries, and prints what it holds as JSON."""

import csv
import hashlib
import json
import os
import sqlite3
import sys
import tempfile
from pathlib import Path

folder = Path(sys.argv[1])


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def without_apostrophe(text):
    return text[1:] if text.lstrip("'")[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") and text[:1] == "'" else text


def table(path):
    records = lines(path)
    with open(path.with_suffix(".csv"), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        "records": records,
        "csv": [{name: without_apostrophe(cell) for name, cell in row.items()} for row in rows],
    }


def namespace(path):
    found = {one.stem: table(one) for one in sorted(path.glob("*.ndjson"))}
    return found | {one.name: namespace(one) for one in sorted(path.iterdir()) if one.is_dir()}


def schema():
    """Makes the databases of schema.sqlite.sql, fills them, and returns the numbers of their rows."""
    counts = {}
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        made = sqlite3.connect(":memory:", isolation_level=None)
        made.executescript((folder / "schema.sqlite.sql").read_text("utf-8"))
        for name in sorted(Path(work).glob("*.db")):
            database = sqlite3.connect(name)
            for path in sorted((folder / name.stem).glob("*.ndjson")):
                columns = [row[1] for row in database.execute(f'PRAGMA table_info("{path.stem}")')]
                for record in lines(path):
                    if "record" in columns:
                        own = {key: value for key, value in record.items() if key not in columns}
                        record = {**record, "record": own}
                    values = [record[column] for column in columns]
                    values = [json.dumps(value) if isinstance(value, (list, dict)) else value for value in values]
                    database.execute(f'INSERT INTO "{path.stem}" VALUES ({", ".join("?" for _ in columns)})', values)
                counts[f"{name.stem}.{path.stem}"] = database.execute(f'SELECT count(*) FROM "{path.stem}"').fetchone()[0]
            assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    return counts


namespaces = [one for one in sorted(folder.iterdir()) if one.is_dir() and one.name != "files"]
print(
    json.dumps(
        {
            "namespaces": {one.name: namespace(one) for one in namespaces},
            "accounts": lines(folder / "accounts.ndjson"),
            "files": lines(folder / "files.ndjson"),
            "hashes": {
                str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in sorted((folder / "files").rglob("*"))
                if path.is_file()
            },
            "paths": sorted(json.loads((folder / "openapi.json").read_text("utf-8"))["paths"]),
            "sqlite": schema(),
        }
    )
)
