import { Database } from "bun:sqlite";

/** Floor of key-value: a bare server with the same statements on a separate file; each set is a transaction. */
const [path = ":memory:"] = process.argv.slice(2);
const database = new Database(path, { create: true });
database.run("PRAGMA journal_mode = WAL");
database.run("PRAGMA synchronous = FULL");
database.run(
  "CREATE TABLE entries (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, expires_at INTEGER) STRICT, WITHOUT ROWID",
);
const get = database.prepare<{ value: string }, [string, number]>(
  "SELECT value FROM entries WHERE key = ?1 AND (expires_at IS NULL OR expires_at > ?2)",
);
const set = database.prepare("INSERT OR REPLACE INTO entries (key, value, expires_at) VALUES (?1, ?2, NULL)");
const headers = { "content-type": "application/json" };

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    // The load generator sends nothing else.
    const body = (await request.json()) as { action: string; key: string; value: unknown };
    if (body.action === "get") {
      return new Response(`{"value":${get.get(body.key, Date.now())?.value ?? "null"}}`, { headers });
    }
    set.run(body.key, JSON.stringify(body.value));
    return new Response('{"ok":true}', { headers });
  },
});
process.stdout.write(`${server.url.origin}\n`);
