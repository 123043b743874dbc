#!/usr/bin/env bash
# The Kotlin client: it is compiled, its tests run, and the conformance suite against the server (PLATFORM_EXECUTABLE, else the
# sources). Needs Maven, a JDK from 11 on and the artifacts that the pom names; without them it says so and passes.
set -euo pipefail
cd "$(dirname "$0")/../clients/kotlin"

ARTIFACTS_SECONDS=150
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skipped() {
  echo "the Kotlin client was not tested: $1"
  exit 0
}
for tool in mvn javac; do command -v "$tool" > /dev/null || skipped "there is no $tool"; done

maven() { mvn -B -q -ntp -o "$@"; }

# With what this machine has already, else with what the registry gives. A run of tests fetches what they need, too.
prepare=(test -Dtest=WireTest)
listing=(dependency:build-classpath -Dmdep.outputFile="$work/classpath" -DincludeScope=test)
if ! maven "${prepare[@]}" "${listing[@]}" > "$work/maven.log" 2>&1; then
  if ! timeout "$ARTIFACTS_SECONDS" mvn -B -q -ntp "${prepare[@]}" "${listing[@]}" > "$work/maven.log" 2>&1; then
    # What does not compile is no missing artifact.
    if ! grep -qiE 'could not (resolve|transfer|find artifact)|in offline mode|ResolutionException|NoPluginFoundForPrefix' "$work/maven.log"; then
      cat "$work/maven.log"
      grep -q . "$work/maven.log" && exit 1
    fi
    skipped "$(grep -m 1 -oiE 'could not [^(]*' "$work/maven.log" || echo "its artifacts cannot be had")"
  fi
fi

# shellcheck source=.ci/parts.sh
source ../../.ci/parts.sh
conformance() {
  cd ../..
  node_modules/.bin/bun tests/conformance/run.ts \
    java -XX:TieredStopAtLevel=1 -cp "clients/kotlin/target/test-classes:clients/kotlin/target/classes:$(cat "$work/classpath")" platform.client.AdapterKt
}
part conformance conformance
part tests mvn -B -ntp -o surefire:test
end_parts
