#!/usr/bin/env bash
# Asks a server everything that its own OpenAPI document allows, and much that it does not: no answer may be a fault of the
# server, have a status or content type that is not documented, or break its schema. Needs python3 and a package index;
# without them it says so and passes. Twice: as a user, and with a service key.
#
#   bash .ci/schemathesis.sh [MORE ARGUMENTS OF st run]
#
# PLATFORM_FUZZ_ROUNDS=20 asks twenty times as much. What is put aside stands in .ci/schemathesis.toml, with reasons.
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION=4.32.5
SEED=20261
EXAMPLES=$((10 * ${PLATFORM_FUZZ_ROUNDS:-1}))
INSTALL_SECONDS=180
KEY=schemathesis-service-key-0123456789abcdefgh

# shellcheck source=.ci/server.sh
source .ci/server.sh

skip() {
  echo "schemathesis was not run: $1"
  exit 0
}

command -v python3 > /dev/null || skip "there is no python3"
python3 -m venv "$work/venv" > /dev/null 2>&1 || skip "python3 has no venv"
timeout "$INSTALL_SECONDS" "$work/venv/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 15 \
  "schemathesis==$VERSION" > "$work/pip.log" 2>&1 ||
  skip "it could not be installed: $(tail -n 1 "$work/pip.log")"

cat > "$work/platform.config.ts" << 'CONFIG'
import { defineConfig } from "platform";
import { t } from "elysia";

const access = { read: true, insert: true, update: true, delete: true } as const;
const many = { requests: 1_000_000, window: 60 };

export default defineConfig({
  databases: {
    shared: {
      tables: {
        posts: {
          schema: {
            title: { type: "string" },
            views: { type: "integer" },
            rating: { type: "number" },
            isPublished: { type: "boolean" },
            at: { type: "datetime" },
            meta: { type: "json" },
          },
          fts: ["title"],
          access,
        },
        comments: {
          schema: { post: { type: "string", references: { table: "posts", onDelete: "cascade" } }, text: { type: "text" } },
          access: { ...access, update: (auth, comment, next, { table }) => table("posts").get(next.post ?? "") !== null },
        },
      },
    },
    team: { instance: true, access: { create: true, open: true }, tables: { posts: { access } } },
  },
  storage: { buckets: { files: { thumbs: ["8x8"], access: { read: true, write: true, delete: true } } } },
  auth: { anonymous: true, magicLink: true, emailOtp: true, mfa: { totp: true }, passkeys: { rpName: "Tests", rpId: "localhost", origin: "http://localhost" } },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { items: { dimensions: 2 } },
  rooms: { game: { access: { join: true } } },
  jobs: { note: { data: t.Object({ text: t.String() }), retries: 0, run: async ({ data, app }) => app.kv("cache").set("note", data) } },
  triggers: { count: { on: { table: "shared.comments" }, run: async ({ id, app }) => app.kv("cache").set("trigger", id) } },
  routes: (api) =>
    api
      .post("/note", async ({ body, app }) => ({ id: await app.jobs.enqueue("note", body) }), {
        body: t.Object({ text: t.String({ maxLength: 100 }), delay: t.Optional(t.Integer({ minimum: 0, maximum: 9 })) }),
        response: t.Object({ id: t.String() }),
      })
      .get("/posts/:id", async ({ auth, params, query, app }) => ({
        post: await app.as(auth).db("shared").table("posts").get(params.id), words: query.words,
      }), { query: t.Object({ words: t.Array(t.String(), { maxItems: 3, default: [] }) }) }),
  api: { schemaEndpoint: true },
  rateLimits: { auth: many, signin: many, signup: many, events: many },
});
CONFIG

serve "$KEY"

token=$(node_modules/.bin/bun -e '
  const body = JSON.stringify({ email: "user@example.com", password: "correct horse battery" });
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${process.argv[1]}/api/auth/signup`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(await answer.text());
  console.log((await answer.json()).accessToken);' "$url")

# ask NAME ARGUMENTS…: one run with these credentials.
failed=0
ask() {
  echo "--- $1"
  shift
  (cd "$work" && venv/bin/st --config-file "$OLDPWD/.ci/schemathesis.toml" run "$url/swagger/json" --no-color \
    --warnings off --phases coverage,fuzzing,stateful --max-examples "$EXAMPLES" --seed "$SEED" --continue-on-failure \
    "$@") || failed=1
}
ask "as a user" --header "Authorization: Bearer $token" "$@"
# A request with both credentials counts as the key's, so a wrong token beside it is not looked at.
ask "with a service key" --header "X-Platform-Service-Key: $KEY" --exclude-checks ignored_auth "$@"

node_modules/.bin/bun -e 'if (!(await fetch(`${process.argv[1]}/api/health`)).ok) process.exit(1);' "$url" ||
  { echo "the server does not answer any more"; failed=1; }
if grep -a '"level":"\(ERROR\|FATAL\)"' "$work/server.log"; then
  echo "the server has logged errors"
  failed=1
fi
exit "$failed"
