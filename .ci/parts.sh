# Sourced by steps that have parts: each runs for itself, and what it prints comes together. Needs $work, a folder.

# part NAME COMMAND...: begins a part.
part() {
  local name=$1
  shift
  # Without `||` a part that fails would end before it has written its status.
  (code=0; "$@" > "$work/$name.log" 2>&1 || code=$?; echo "$code" > "$work/$name.code") &
}

# end_parts: waits for all parts and prints them. Exits with 1 when one of them failed.
end_parts() {
  wait
  local code name failed=0
  for code in "$work"/*.code; do
    name=$(basename "$code" .code)
    echo "--- $name"
    cat "$work/$name.log"
    [[ $(cat "$code") == 0 ]] || failed=1
  done
  exit "$failed"
}
