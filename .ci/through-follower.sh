#!/usr/bin/env bash
# Black-box tests against clusters of two nodes, asked through the follower.
#
#   bash .ci/through-follower.sh [MORE ARGUMENTS OF bun test]
set -euo pipefail
cd "$(dirname "$0")/.."

# Not among them: tests that kill servers, look at their disks, or have buckets on them.
files=(
  tests/http/tables/{tables-aggregate,tables-batches,tables-expand,tables-hooks,tables-lists,tables-preconditions,tables-records,tables-rules,tables-search,tables-transactions,tables-upserts}.test.ts
  tests/http/auth/{auth-tokens,auth-mfa}.test.ts
  tests/http/jobs/transaction-jobs.test.ts
  tests/http/realtime
  tests/ws/realtime/realtime-answers.test.ts
)
# One of them: PLATFORM_TEST_FILE.
if [[ -n ${PLATFORM_TEST_FILE:-} ]]; then files=("$PLATFORM_TEST_FILE"); fi
PLATFORM_TEST_CLUSTER=1 node_modules/.bin/bun test --timeout 60000 --parallel=2 "${files[@]}" "$@"
