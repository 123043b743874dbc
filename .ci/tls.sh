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
  tests/http/access/access.test.ts
  tests/http/analytics/analytics.test.ts
  tests/http/auth/{auth,auth-tokens}.test.ts
  tests/http/functions/functions.test.ts
  tests/http/http/{proxies,query-parameters}.test.ts
  tests/http/kv/kv.test.ts
  tests/http/realtime/broadcast.test.ts
  tests/http/site/site.test.ts
  tests/http/storage/{storage,storage-rights,storage-multipart}.test.ts
  tests/http/system/system.test.ts
  tests/http/tables/{tables-lists,tables-records,tables-transactions}.test.ts
  tests/http/users/users.test.ts
  tests/ws/functions/functions.test.ts
  tests/ws/realtime/{realtime,realtime-changes}.test.ts
  tests/ws/rooms/{rooms,rooms-players}.test.ts
)
# One of them, where .ci/run tries a file again.
if [[ -n ${PLATFORM_TEST_FILE:-} ]]; then files=("$PLATFORM_TEST_FILE"); fi
node_modules/.bin/bun test --timeout 60000 "${files[@]}" "$@"
