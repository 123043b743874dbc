import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestPostgres } from "./cluster/postgres.ts";

/** Whether every server of the tests is a cluster of two, and is asked through the follower. */
export const IS_CLUSTER = process.env["PLATFORM_TEST_CLUSTER"] === "1";

/** PostgreSQL of this test process; each cluster has a database of its own. */
let postgres: Promise<TestPostgres> | null = null;
let databases = 0;

function freePort(): number {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  server.stop(true);
  return server.port;
}

/** Variables of the two nodes of a new cluster. */
export async function clusterOfTwo(directory: string): Promise<{ owner: Env; follower: Env }> {
  // Imported late: other tests need nothing of it.
  postgres ??= import("./cluster/postgres.ts").then(({ TestPostgres }) => TestPostgres.start());
  const server = await postgres;
  const name = `cluster_${++databases}`;
  await server.sql(`CREATE DATABASE ${name}`);
  const of = (): Env => ({
    CLUSTER_POSTGRES: server.url.replace(/\/postgres$/, `/${name}`),
    CLUSTER_OBJECTS: join(directory, "objects"),
    NODE_URL: `http://127.0.0.1:${freePort()}`,
  });
  return { owner: of(), follower: of() };
}

type Env = Readonly<Record<"CLUSTER_POSTGRES" | "CLUSTER_OBJECTS" | "NODE_URL", string>>;

/** Writes a config beside the test's, which makes the server a node, and returns its path. */
export function withCluster(directory: string): string {
  const file = join(directory, "cluster.config.ts");
  writeFileSync(
    file,
    `import config from "./platform.config.ts";
const { CLUSTER_POSTGRES: postgres, CLUSTER_OBJECTS: folder, NODE_URL: url } = process.env;
export default { ...config, cluster: { postgres, objects: { folder }, url, durability: "single" } };\n`,
  );
  return file;
}

const POSITION = "platform-position";
/** Newest position of each server, whoever has been told it: tests take what one client writes to be there for all. */
const newest = new Map<string, string>();

/** Returns what gives back the newest position of a server; null: the server under test is no cluster. */
export function newestPositions(
  baseUrl: () => string,
): { send(headers: Headers): void; take(headers: Headers): void } | null {
  if (!IS_CLUSTER) return null;
  const numberOf = (position: string): number => Number.parseInt(position.split(".").at(-1) ?? "", 36);
  return {
    send(headers) {
      const position = newest.get(baseUrl());
      if (position !== undefined && !headers.has(POSITION)) headers.set(POSITION, position);
    },
    take(headers) {
      const position = headers.get(POSITION);
      const known = newest.get(baseUrl());
      if (position !== null && (known === undefined || numberOf(position) > numberOf(known)))
        newest.set(baseUrl(), position);
    },
  };
}
