#!/usr/bin/env bash
# Black-box tests against clusters of two nodes, asked through the follower.
#
#   bash .ci/through-follower.sh [MORE ARGUMENTS OF bun test]
set -euo pipefail
cd "$(dirname "$0")/.."

files=(
  tests/http/tables/{idempotency,tables-aggregate,tables-batches,tables-expand,tables-hidden,tables-hooks,tables-instances,tables-lists,tables-preconditions,tables-records,tables-rules,tables-search,tables-transactions,tables-upserts}.test.ts
  tests/http/access
  tests/http/auth/{auth,auth-tokens,awaited-sessions,ended-sessions,auth-mfa}.test.ts
  tests/http/jobs/{jobs,transaction-jobs}.test.ts
  tests/http/realtime
  tests/ws/realtime/{realtime,realtime-answers,realtime-changes,realtime-feeds,realtime-flush,realtime-presence,realtime-rights}.test.ts
  tests/http/storage/{storage,storage-rights,storage-multipart}.test.ts
)
# One of them, where .ci/run tries a file again.
if [[ -n ${PLATFORM_TEST_FILE:-} ]]; then files=("$PLATFORM_TEST_FILE"); fi
PLATFORM_TEST_CLUSTER=1 node_modules/.bin/bun test --timeout 60000 --parallel=2 "${files[@]}" "$@"
