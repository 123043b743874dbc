#!/usr/bin/env bash
# Lets three generators make clients from the OpenAPI document of a server, and compiles what they made, with every table, field and
# endpoint in it. Needs npm and its registry; without them it says so and passes.
#
#   bash .ci/generators.sh
set -euo pipefail
cd "$(dirname "$0")/.."

PACKAGES=(openapi-typescript@7.13.0 oazapfts@6.4.0 @hey-api/openapi-ts@0.95.0 typescript@5.9.3)
INSTALL_SECONDS=180

# shellcheck source=.ci/server.sh
source .ci/server.sh

skip() {
  echo "the generators were not run: $1"
  exit 0
}

command -v npm > /dev/null || skip "there is no npm"
echo '{ "private": true }' > "$work/package.json"
timeout "$INSTALL_SECONDS" npm install --prefix "$work" --no-audit --no-fund --ignore-scripts --fetch-retries 1 "${PACKAGES[@]}" \
  > "$work/npm.log" 2>&1 || skip "they could not be installed: $(tail -n 1 "$work/npm.log")"

cat > "$work/platform.config.ts" << 'CONFIG'
import { defineConfig } from "platform";

const access = { read: true, insert: true } as const;

export default defineConfig({
  api: { schemaEndpoint: true },
  storage: { buckets: { posters: {} } },
  databases: {
    shared: {
      tables: {
        films: {
          schema: {
            title: { type: "string", required: true },
            genre: { type: "string", enum: ["drama", "western"] },
            year: { type: "integer" },
            rating: { type: "number" },
            isShown: { type: "boolean" },
            premiere: { type: "datetime" },
            day: { type: "date" },
            cinema: { type: "geo" },
            extra: { type: "json" },
            poster: { type: "file", bucket: "posters" },
          },
          fts: ["title"],
          access,
        },
        reviews: { schema: { film: { type: "string", references: "films" }, stars: { type: "integer" } }, access },
        free: { access },
      },
      views: {
        shown: { sql: "SELECT id, title FROM films WHERE isShown", schema: { title: { type: "string" } }, access: { read: true } },
      },
    },
    clubs: { instance: true, access: { create: true, open: true }, tables: { notes: { schema: { text: { type: "text" } }, access } } },
  },
  routes: (api) => api.get("/hello/:name", ({ params }) => ({ hello: params.name }), { access: true }),
});
CONFIG

serve generators-service-key-0123456789abcdef
node_modules/.bin/bun -e 'await Bun.write(process.argv[2], await fetch(`${process.argv[1]}/swagger/json`));' "$url" "$work/openapi.json"

cd "$work"
failed=0
# generate NAME COMMAND…: one generator, whose complaints count.
generate() {
  local name=$1
  shift
  "$@" > "$name.log" 2>&1 && ! grep -iE '\b(error|warning)\b' "$name.log" || { echo "--- $name"; tail -n 20 "$name.log"; failed=1; }
}
generate openapi-typescript node_modules/.bin/openapi-typescript openapi.json -o types.ts
generate oazapfts node_modules/.bin/oazapfts openapi.json functions.ts
generate openapi-ts node_modules/.bin/openapi-ts -i openapi.json -o sdk -p @hey-api/client-fetch

cat > use.ts << 'USE'
import type { components } from "./types";
import * as functions from "./functions";
import type { SharedFilms as FromSdk } from "./sdk";

export type Film = components["schemas"]["shared.films"];
export const genres: readonly NonNullable<Film["genre"]>[] = ["drama", "western"];
export const title = (film: Film & functions.SharedFilms & FromSdk): string => film.title;
export const message = (error: components["schemas"]["Error"]): string => error.message;
export const list = functions.getApiDbSharedTablesFilms;
// @ts-expect-error: no genre
export const none: Film["genre"] = "none";
USE
cat > tsconfig.json << 'TSCONFIG'
{ "compilerOptions": { "strict": true, "noEmit": true, "skipLibCheck": true, "module": "esnext", "target": "es2022",
    "moduleResolution": "bundler", "lib": ["es2023", "dom", "dom.iterable"], "types": [] },
  "include": ["types.ts", "functions.ts", "sdk/**/*.ts", "use.ts"] }
TSCONFIG
node_modules/.bin/tsc -p . || failed=1
[[ $failed == 0 ]] && echo "three generators made clients that compile"
exit "$failed"
