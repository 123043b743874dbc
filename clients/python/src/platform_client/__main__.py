"""`python -m platform_client types --url URL --out FILE`: types of the tables of a server."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Optional, Sequence

from ._errors import PlatformError
from ._sync._client import Client
from ._typegen import types_of


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line. Returns 1 for what failed, with the reason on standard error."""
    parser = argparse.ArgumentParser(prog="python -m platform_client")
    commands = parser.add_subparsers(dest="command", required=True)
    types = commands.add_parser("types", help="write TypedDicts of the tables of a server")
    types.add_argument("--url", required=True, help="address of the server")
    types.add_argument("--out", required=True, type=Path, help="file to write")
    key = os.environ.get("PLATFORM_SERVICE_KEY") or None
    types.add_argument("--service-key", default=key, help="default: PLATFORM_SERVICE_KEY")
    options = parser.parse_args(arguments)
    try:
        with Client(options.url, service_key=options.service_key) as client:
            document = client.request("GET", "/swagger/json")
        options.out.write_text(types_of(document, options.url), encoding="utf-8")
    except (PlatformError, LookupError, ValueError, OSError) as problem:
        print(f"platform_client: {problem.args[0] if isinstance(problem, LookupError) else problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
