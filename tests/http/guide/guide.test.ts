import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { blocksOf, GUIDE, runExample } from "../../support/guide.ts";

// The examples of the guide do what their pages say.

/**
 * Pages that are lists of pages, or of what other pages show. Those of Python and Kotlin are run by the tests in clients, the one of
 * clusters, which needs PostgreSQL, by tests/http/cluster, and that of generated clients by .ci/generators.sh.
 */
const WITHOUT_EXAMPLE = new Set([
  "README.md",
  "security.md",
  "python.md",
  "kotlin.md",
  "cluster.md",
  "generated-clients.md",
]);

/** A server that runs from its sources builds the client's npm package when it is asked for it. */
const EXAMPLE_TIMEOUT_MS = 180_000;

/** A page whose commands only the executable has. */
const NEEDS_EXECUTABLE = new Set(["one-file.md"]);
const isExecutable = (process.env["PLATFORM_EXECUTABLE"] ?? "") !== "";

const pages = readdirSync(GUIDE).filter((name) => name.endsWith(".md") && !WITHOUT_EXAMPLE.has(name));
// Of the repository.
pages.push("../README.md");

for (const page of pages) {
  test.skipIf(NEEDS_EXECUTABLE.has(page) && !isExecutable)(
    `the example of docs/${page} prints what the page says`,
    async () => {
      expect(blocksOf(page).filter(({ role }) => role === "answer").length).toBeGreaterThan(0);
      for (const { printed, expected } of await runExample(page)) expect(printed).toEqual(expected);
    },
    EXAMPLE_TIMEOUT_MS,
  );
}
