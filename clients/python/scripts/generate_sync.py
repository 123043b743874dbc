"""Makes `_sync` of `_async`: the same code without async and await. `--check` only says whether it is up to date."""

from __future__ import annotations

import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "platform_client"
#: Written by hand in both forms.
BY_HAND = {"_io.py", "__init__.py"}
REPLACEMENTS = [
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAwaitable\[([^][]*(?:\[[^][]*(?:\[[^][]*(?:\[[^][]*\][^][]*)*\][^][]*)*\][^][]*)*)\]", r"\1"),
    (r"\bAwaitable, ", ""),
    (r"\baclose\b", "close"),
    (r"\bAsync([A-Z])", r"\1"),
]
HEAD = "# Made by scripts/generate_sync.py of the module of the same name in _async.\n"


def converted(text: str) -> str:
    """Returns the synchronous form of a module."""
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    # What the shorter words leave is in the order in which it was imported.
    return HEAD + text


def main() -> int:
    """Writes the modules that differ. Returns 1 where `--check` finds any."""
    wrong = 0
    for source in sorted((PACKAGE / "_async").glob("*.py")):
        target = PACKAGE / "_sync" / source.name
        if source.name in BY_HAND:
            continue
        text = converted(source.read_text(encoding="utf-8"))
        if target.exists() and target.read_text(encoding="utf-8") == text:
            continue
        wrong += 1
        print(f"{target.name} is not up to date" if "--check" in sys.argv else f"wrote {target.name}")
        if "--check" not in sys.argv:
            target.write_text(text, encoding="utf-8")
    return 1 if wrong and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
