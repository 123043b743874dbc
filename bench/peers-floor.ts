import { Database } from "bun:sqlite";

// Floor of the requests in bench/sections/peers.ts: the same statements on the same file, and the same hash. bun
// bench/peers-floor.ts DATABASE DIRECTORY

const [file = ""] = process.argv.slice(2);
const db = new Database(file, { readonly: true });
db.run("PRAGMA cache_size = -8192");
const matching = 'FROM items WHERE "rating" > ? AND "done" = ?';
const page = db.query(`SELECT * ${matching} ORDER BY "rating" DESC, "id" DESC LIMIT 20`);
const counted = db.query(`SELECT count(*) ${matching}`);

const PASSWORD = "correct horse battery";
const hash = await Bun.password.hash(PASSWORD, { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 });

const above = (request: Request): number => Number(new URL(request.url).searchParams.get("above"));

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  routes: {
    "/list": (request) => Response.json({ items: page.all(above(request), 1) }),
    "/counted": (request) => {
      const rating = above(request);
      return Response.json({ items: page.all(rating, 1), total: counted.values(rating, 1)[0]?.[0] });
    },
    "/signin": async () => Response.json({ isRight: await Bun.password.verify(PASSWORD, hash) }),
  },
});
console.log(`floor listening on ${server.url.origin}`);
process.on("SIGTERM", () => process.exit(0));
