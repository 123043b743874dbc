#!/usr/bin/env bash
# Central black-box tests against servers that speak HTTPS, with a certificate that all processes here trust. What speaks to a
# server by plain TCP, or starts one by other means, is not among them.
#
#   bash .ci/tls.sh [MORE ARGUMENTS OF bun test]
set -euo pipefail
cd "$(dirname "$0")/.."

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
files=(
  tests/http/{access,analytics,auth,auth-tokens,broadcast,functions,kv,query-parameters,storage,storage-rights,storage-multipart,system,tables-lists,tables-records,tables-transactions,users}.test.ts
  tests/ws/{realtime,realtime-changes,rooms,rooms-players,functions}.test.ts
  tests/http/{site,proxies}.test.ts
)
# One of them, where .ci/run tries a file again.
if [[ -n ${PLATFORM_TEST_FILE:-} ]]; then files=("$PLATFORM_TEST_FILE"); fi
node_modules/.bin/bun test --timeout 60000 "${files[@]}" "$@"
