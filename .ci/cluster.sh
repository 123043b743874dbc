#!/usr/bin/env bash
# Drills of a cluster: three nodes and a PostgreSQL with a standby for each, and faults. Five minutes on two processors.
#
#   bash .ci/cluster.sh [MORE ARGUMENTS OF bun test]
set -euo pipefail
cd "$(dirname "$0")/.."

files=(tests/cluster)
# One of them, where .ci/run tries a file again.
if [[ -n ${PLATFORM_TEST_FILE:-} ]]; then files=("$PLATFORM_TEST_FILE"); fi
node_modules/.bin/bun test --timeout 60000 --parallel=2 "${files[@]}" "$@"
