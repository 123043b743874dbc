import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { blocksOf, GUIDE, runExample } from "../support/guide.ts";

// The examples of the guide do what their pages say.

/** Pages that are lists of pages, or of what other pages show. */
const WITHOUT_EXAMPLE = new Set(["README.md", "security.md"]);

const pages = readdirSync(GUIDE).filter((name) => name.endsWith(".md") && !WITHOUT_EXAMPLE.has(name));

for (const page of pages) {
  test(`the example of docs/${page} prints what the page says`, async () => {
    expect(blocksOf(page).filter(({ role }) => role === "answer").length).toBeGreaterThan(0);
    for (const { printed, expected } of await runExample(page)) expect(printed).toEqual(expected);
  });
}
