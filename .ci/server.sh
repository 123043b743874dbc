# Sourced by steps that ask a server: one from the sources, with $work/platform.config.ts. $work is removed, and the server ended,
# with the step.

READY_SECONDS=20
work=$(mktemp -d)
server=
# shellcheck disable=SC2329 # called by the trap
finish() {
  if [[ -n $server ]]; then kill "$server" 2> /dev/null || true; wait "$server" 2> /dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT

# serve KEY: starts it with this service key, and sets $url. Exits with 1 when it does not start.
serve() {
  PLATFORM_SERVICE_KEY=$1 node_modules/.bin/bun src/main.ts start --config "$work/platform.config.ts" \
    --data "$work/data" --port 0 > "$work/server.log" 2>&1 &
  server=$!
  for ((tries = 0; tries < READY_SECONDS * 10; tries++)); do
    grep -aq "^platform listening on" "$work/server.log" && break
    sleep 0.1
  done
  url=$(sed -n 's/^platform listening on //p' "$work/server.log")
  if [[ -z $url ]]; then
    echo "the server did not start:"
    cat "$work/server.log"
    exit 1
  fi
}
