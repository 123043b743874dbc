import { Database } from "bun:sqlite";
import { join } from "node:path";

// Floor of the platform: the minimum that a Bun server can do with the same SQLite file. No rules, checks, external filters or
// errors: a path, a prepared statement, JSON. bun bench/floor.ts DATABASE DIRECTORY

const [file = "", directory = ""] = process.argv.slice(2);
const posts = new Database(file, { readonly: true });
const one = posts.query("SELECT * FROM posts WHERE id = ?");
const page = posts.query("SELECT * FROM posts ORDER BY id LIMIT 20");
const pageAfter = posts.query("SELECT * FROM posts WHERE id > ? ORDER BY id LIMIT 20");
// A filtered list includes its total.
const counted = posts.query("SELECT count(*) AS total FROM posts WHERE category = ? AND score >= ?");
const filtered = posts.query(
  "SELECT * FROM posts WHERE category = ? AND score >= ? ORDER BY score DESC, id DESC LIMIT 20",
);

// Each request is a transaction of its own, on disk before the response.
const own = new Database(join(directory, "floor.db"));
own.run("PRAGMA journal_mode = WAL");
own.run("PRAGMA synchronous = FULL");
own.run(
  "CREATE TABLE IF NOT EXISTS posts (id TEXT PRIMARY KEY, title TEXT, body TEXT, category TEXT, score REAL, createdAt TEXT, updatedAt TEXT) STRICT",
);
const insert = own.query("INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING *");

interface Post {
  title: string;
  body: string;
  category: string;
  score: number;
}

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  routes: {
    "/posts/:id": (request) => Response.json(one.get(request.params.id)),
    "/posts": {
      GET: () => Response.json({ items: page.all() }),
      async POST(request) {
        const post = (await request.json()) as Post; // the load generator sends nothing else
        const now = new Date().toISOString();
        const values = [post.title, post.body, post.category, post.score, now, now];
        return Response.json(insert.get(Bun.randomUUIDv7(), ...values), { status: 201 });
      },
    },
    "/pages": (request) => Response.json({ items: pageAfter.all(new URL(request.url).searchParams.get("after")) }),
    "/filtered": () => Response.json({ items: filtered.all("news", 50), total: counted.values("news", 50)[0]?.[0] }),
  },
});
console.log(`floor listening on ${server.url.origin}`);
process.on("SIGTERM", () => process.exit(0));
