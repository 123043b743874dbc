import { Database } from "bun:sqlite";

// Floor of the lists in bench/sections/lists.ts: for each form of request the best prepared statement, on the same file; the rows
// as JSON. bun bench/lists-floor.ts DATABASE

const [file = ""] = process.argv.slice(2);
const db = new Database(file, { readonly: true });
// Equals the server's cache per file: the comparison is about work, not memory.
db.run("PRAGMA cache_size = -8192");

const byRating = "FROM items";
const one = db.query("SELECT * FROM items WHERE id = ?");
const after = db.query("SELECT * FROM items WHERE id > ? ORDER BY id LIMIT 21");
const afterFields = db.query("SELECT id, title, rating FROM items WHERE id > ? ORDER BY id LIMIT 21");
// Skips only index entries.
const paged = db.query(
  "SELECT items.* FROM (SELECT rowid AS place FROM items ORDER BY id LIMIT 21 OFFSET ?) CROSS JOIN items ON items.rowid = place",
);
const up = db.query(`SELECT * ${byRating} WHERE rating > ? ORDER BY rating, id LIMIT 21`);
const down = db.query(`SELECT * ${byRating} WHERE rating < ? ORDER BY rating DESC, id DESC LIMIT 21`);
const tested = db.query(`SELECT * ${byRating} WHERE rating > ? AND done = 1 ORDER BY rating DESC, id DESC LIMIT 20`);
const testedCount = db.query(`SELECT count(*) ${byRating} WHERE rating > ? AND done = 1`);
// The sign keeps SQLite from preparing a statement with an order again whenever a value is bound.
const equal = db.query("SELECT * FROM items WHERE category = +? ORDER BY id LIMIT 20");
const equalCount = db.query("SELECT count(*) FROM items WHERE category = ?");
const sorted = db.query("SELECT * FROM items WHERE category = +? AND rating >= -1 ORDER BY title LIMIT 21");
const listed = db.query(`SELECT * FROM items WHERE id IN (${Array(20).fill("+?").join(", ")}) ORDER BY id`);
const rangeCount = db.query("SELECT count(*) FROM items WHERE rating >= ? AND rating < ?");
const owned = db.query("SELECT * FROM owned WHERE ownerId = 'owner-7' AND id > ? ORDER BY id LIMIT 21");
const expanded = db.query(
  "SELECT items.*, makers.name AS makerName, makers.city AS makerCity FROM items LEFT JOIN makers ON makers.id = items.makerId WHERE items.id > ? ORDER BY items.id LIMIT 21",
);
const grouped = db.query(
  "SELECT done, count(*) AS count, avg(rating) AS avg FROM items WHERE category = +? GROUP BY done",
);
const found = db.query(
  "SELECT items.* FROM items_fts JOIN items ON items.rowid = items_fts.rowid WHERE items_fts MATCH ? ORDER BY rank LIMIT 20",
);
const foundCount = db.query("SELECT count(*) FROM items_fts WHERE items_fts MATCH ?");

const asked = (request: Request): URLSearchParams => new URL(request.url).searchParams;
const text = (request: Request): string => asked(request).get("x") ?? "";
const number = (request: Request): number => Number(text(request));

const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  routes: {
    "/one/:id": (request) => Response.json(one.get(request.params.id)),
    "/after": (request) => Response.json({ items: after.all(text(request)) }),
    "/after-fields": (request) => Response.json({ items: afterFields.all(text(request)) }),
    "/paged": (request) => Response.json({ items: paged.all(number(request)) }),
    "/up": (request) => Response.json({ items: up.all(number(request)) }),
    "/down": (request) => Response.json({ items: down.all(number(request)) }),
    "/tested": (request) => Response.json({ items: tested.all(number(request)) }),
    "/tested-count": (request) => {
      const above = number(request);
      return Response.json({ items: tested.all(above), total: testedCount.values(above)[0]?.[0] });
    },
    "/equal": (request) => {
      const category = text(request);
      return Response.json({ items: equal.all(category), total: equalCount.values(category)[0]?.[0] });
    },
    "/sorted": (request) => Response.json({ items: sorted.all(text(request)) }),
    "/listed": (request) => Response.json({ items: listed.all(...text(request).split(",")) }),
    "/range-count": (request) => {
      const from = number(request);
      return Response.json({ total: rangeCount.values(from, from + 1)[0]?.[0] });
    },
    "/owned": (request) => Response.json({ items: owned.all(text(request)) }),
    "/expanded": (request) => Response.json({ items: expanded.all(text(request)) }),
    "/grouped": (request) => Response.json({ groups: grouped.all(text(request)) }),
    "/found": (request) => {
      const words = text(request);
      return Response.json({ items: found.all(words), total: foundCount.values(words)[0]?.[0] });
    },
  },
});
console.log(`floor listening on ${server.url.origin}`);
process.on("SIGTERM", () => process.exit(0));
