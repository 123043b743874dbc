import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { clusterOf } from "../../support/cluster/cluster.ts";
import { TestPostgres } from "../../support/cluster/postgres.ts";
import { GUIDE } from "../../support/guide.ts";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../../support/platform.ts";

// The page about clusters: its config, its three commands, and the health that it shows.

const NOTES = "/api/db/main/tables/notes";
const page = readFileSync(join(GUIDE, "cluster.md"), "utf8");

/** Returns the text of the page's first block in a language. Errors: there is none. */
function blockOf(language: string): string {
  const text = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(page)?.[1];
  if (text === undefined) throw new Error(`docs/cluster.md has no block of ${language}`);
  return text;
}

/** Returns the names of the members of an object and of what it contains, in order. */
const membersOf = (value: unknown): string[] =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([name, inner]) =>
        Array.isArray(inner) ? [name, ...membersOf(inner[0])] : [name, ...membersOf(inner)],
      );

test("[CLU85] the commands of docs/cluster.md start a cluster with its config", async () => {
  const commands = [...blockOf("sh").matchAll(/^NODE_URL=(\S+) platform start --data \S+ --port \d+$/gm)];
  expect(commands).toHaveLength(3);
  const postgres = await TestPostgres.start();
  const config = blockOf("ts").replace("/srv/objects", join(temporaryDirectory(), "objects"));
  const nodes: TestPlatform[] = [];
  try {
    for (const [, url = ""] of commands) {
      // Ports of the page may be in use: nodes listen elsewhere.
      const port = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
      port.stop(true);
      const env = { CLUSTER_POSTGRES: postgres.url, NODE_URL: url.replace(/\d+$/, String(port.port)) };
      nodes.push(await testPlatform({ config, env }));
    }
    const written = await nodes[2]!.service.post(NOTES, { title: "from the guide" });
    expect(written.status).toBe(201);
    const headers = { "platform-position": written.headers.get("platform-position") ?? "" };
    const { id } = written.body as { id: string };
    for (const node of nodes) expect((await node.service.get(`${NOTES}/${id}`, { headers })).status).toBe(200);
    const shown = membersOf(JSON.parse(blockOf("json")));
    expect(shown).toContain("lastCopyAt");
    for (const node of nodes) expect(membersOf(await clusterOf(node))).toEqual(expect.arrayContaining(shown));
  } finally {
    for (const node of nodes.toReversed()) await node.stop();
    await postgres.stop();
  }
}, 120_000);
