import { join } from "node:path";
import { TestPostgres } from "../../tests/support/cluster/postgres.ts";
import { JWT_SECRET, type Running, SERVICE_KEY, startPlatform } from "../support/processes.ts";

// Clusters to measure: nodes of the compiled executable, and a PostgreSQL beside them that syncs its commits.

const TABLES = "/api/db/shared/tables";
export const MAKERS = `${TABLES}/makers`;
export const MAKER = { name: "A maker", city: "Vienna" };
const LOOK_MS = 20;
const OWNER_MAX_MS = 60_000;

/** A node, and its address for other nodes. */
export interface Node extends Running {
  nodeUrl: string;
  configFile: string;
  /** Variables with which an operator's command runs. */
  env: Readonly<Record<string, string | undefined>>;
}

const configOf = (cluster: string): string => `import { defineConfig } from "platform";

export default defineConfig({
  databases: { shared: { tables: { makers: {
    schema: { name: { type: "string" }, city: { type: "string" } },
    access: { read: true, insert: true },
  } } } },
  ${cluster}
});
`;

export const startAlone = (executable: string, directory: string): Promise<Running> =>
  startPlatform(executable, directory, configOf(""));

/** Starts PostgreSQL as it is used: with syncs. */
export const startLog = (): Promise<TestPostgres> => TestPostgres.start({ settings: { fsync: "on" } });

/** Starts a node. `directories` makes a directory by name. */
export async function startNode(
  executable: string,
  postgres: TestPostgres,
  { name, directories }: { name: string; directories: (name: string) => string },
): Promise<Node> {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  listener.stop(true);
  const nodeUrl = `http://127.0.0.1:${listener.port}`;
  const objects = JSON.stringify(join(directories("objects"), "store"));
  const cluster = `cluster: {
    postgres: ${JSON.stringify(postgres.url)}, objects: { folder: ${objects} }, url: ${JSON.stringify(nodeUrl)}, durability: "single",
  },`;
  const directory = directories(name);
  const running = await startPlatform(executable, directory, configOf(cluster));
  const env = { ...process.env, PLATFORM_SERVICE_KEY: SERVICE_KEY, PLATFORM_JWT_SECRET: JWT_SECRET };
  return { ...running, nodeUrl, configFile: join(directory, "platform.config.ts"), env };
}

/** Inserts a record through a server. Returns the status of the answer. */
export async function insert({ url }: Running): Promise<number> {
  const headers = { "content-type": "application/json", "x-platform-service-key": SERVICE_KEY };
  const answer = await fetch(url + MAKERS, { method: "POST", headers, body: JSON.stringify(MAKER) });
  await answer.text();
  return answer.status;
}

/** Waits until PostgreSQL names this node as the owner. */
export async function untilOwner(postgres: TestPostgres, { nodeUrl }: Node): Promise<void> {
  const givesUpAt = performance.now() + OWNER_MAX_MS;
  for (;;) {
    const [[owner] = []] = await postgres.sql("SELECT owner FROM platform.groups");
    if (owner === nodeUrl) return;
    if (performance.now() > givesUpAt) throw new Error(`${nodeUrl} does not become the owner`);
    await Bun.sleep(LOOK_MS);
  }
}

/** Subscribes to the table. `onChange` gets the id of each record that is inserted. */
export async function subscribe({ url }: Running, onChange: (id: string) => void): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace("http", "ws")}/api/realtime`);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.onclose = () => reject(new Error(`${url} has closed a subscriber's connection`));
  socket.onopen = () => socket.send(JSON.stringify({ type: "auth", anonymous: true }));
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(String(data));
    if (message.type === "auth_success")
      socket.send(JSON.stringify({ type: "subscribe", channel: "realtime:shared:makers" }));
    if (message.type === "subscribed") resolve();
    if (message.type === "db_change") onChange(message.docId);
  };
  await promise;
  return socket;
}
