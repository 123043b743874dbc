#!/usr/bin/env bash
# Black-box tests of what workers answer, and of what they pass on, against servers with two workers.
#
#   bash .ci/workers.sh [MORE ARGUMENTS OF bun test]
set -euo pipefail
cd "$(dirname "$0")/.."

files=(
  tests/http/tables
  tests/http/access
  tests/http/auth/{auth,auth-tokens,awaited-sessions}.test.ts
  tests/http/realtime
  tests/http/rules/{lookups,lookups-attacks,rules-relations,rules-relations-forms}.test.ts
  tests/http/storage/{storage,storage-rights,storage-multipart}.test.ts
  tests/http/views
  tests/ws/realtime
  tests/ws/rooms/{rooms,rooms-players}.test.ts
)
# One of them, where .ci/run tries a file again.
if [[ -n ${PLATFORM_TEST_FILE:-} ]]; then files=("$PLATFORM_TEST_FILE"); fi
PLATFORM_TEST_WORKERS=2 node_modules/.bin/bun test --timeout 60000 --parallel=2 "${files[@]}" "$@"
