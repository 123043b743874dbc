import type { JsonObject } from "../../../src/kernel/json/json.ts";
import type { ListAnswer, TestPlatform } from "../../support/index.ts";

export const PATH = "/api/db/shared/tables";

/** Films with ratings, and the views of them. */
export const CONFIG = `import { field, some } from "platform";
const film = { title: { type: "string", required: true }, genre: { type: "string" } };
const rated = "SELECT f.id, f.title, f.genre, f.id AS filmId, count(r.id) AS ratings, avg(r.stars) AS stars, max(r.stars) = 5 AS isLoved, " +
  "json_group_array(r.stars) AS given, f.createdAt FROM films f LEFT JOIN ratings r ON r.filmId = f.id GROUP BY f.id";
const fields = {
  title: { type: "string", required: true }, genre: { type: "string" }, filmId: { references: "films" }, ratings: { type: "integer", required: true },
  stars: { type: "number" }, isLoved: { type: "boolean" }, given: { type: "json" }, createdAt: { type: "datetime", required: true },
};
const all = { read: true, insert: true, update: true, delete: true };
export default {
  api: { schemaEndpoint: true },
  auth: { users: { in: "shared", access: { read: (auth) => auth !== null } } },
  databases: {
    shared: {
      tables: {
        films: { schema: film, access: all },
        ratings: { schema: { filmId: { references: "films", onDelete: "cascade" }, stars: { type: "integer", required: true } }, access: all },
        members: { schema: { filmId: { type: "string" }, userId: { type: "string" } }, indexes: [{ fields: ["filmId", "userId"] }] },
        notes: { access: all },
        closed: { schema: { secret: { type: "string" } } },
        asking: {
          schema: { how: { type: "string" } },
          access: {
            read: true,
            insert: (_auth, record, context) => record.how === "lookup" ? context.table("rated").exists([["id", "==", "f1"]]) : [some("rated", [["id", "==", "f1"]])],
          },
        },
      },
      views: {
        rated: { sql: rated, schema: fields, access: { read: true }, live: ["films", "ratings"] },
        keys: { sql: rated, schema: fields },
        comedies: { sql: rated, schema: fields, access: { read: () => [["genre", "==", "Comedy"]] }, live: ["films"] },
        mine: { sql: rated, schema: fields, access: { read: (auth) => auth !== null && [some("members", [["filmId", "==", field("id")], ["userId", "==", auth.id]])] }, live: ["films"] },
        each: { sql: rated, schema: fields, access: { read: (_auth, record) => record.ratings > 0 }, live: ["films"] },
        secrets: { sql: "SELECT id, secret FROM closed", schema: { secret: { type: "string" } }, access: { read: true } },
        people: { sql: "SELECT id, email, displayName FROM users", schema: { email: { type: "string" }, displayName: { type: "string" } }, access: { read: true } },
        mails: { sql: "WITH u(a, b, c, d, e, f) AS (SELECT * FROM users) SELECT a AS id, b || c || d || e || f AS text FROM u", schema: { text: { type: "text" } }, access: { read: true } },
        texts: { sql: "SELECT id, record->>'text' AS text FROM notes -- the end", schema: { text: { type: "text" } }, access: { read: true } },
        odd: { sql: "SELECT record->>'as' AS id, record->'value' AS value FROM notes WHERE record->>'as' IS NOT NULL", schema: { value: { type: "json" } }, access: { read: true } },
        number: { sql: "SELECT id, record->>'number' AS number FROM notes WHERE id LIKE 'n%'", schema: { number: { type: "number", required: true } }, access: { read: true } },
        endless: { sql: "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT CAST(count(*) AS TEXT) AS id FROM c", schema: {}, access: { read: true } },
      },
    },
    teams: {
      instance: true,
      access: { create: true, open: (auth, id) => id !== "shut" },
      tables: { tasks: { schema: { isDone: { type: "boolean" } }, access: all } },
      views: { open: { sql: "SELECT id, createdAt FROM tasks WHERE isDone IS NOT TRUE", schema: { createdAt: { type: "datetime" } }, access: { read: true }, live: ["tasks"] } },
    },
  },
};`;

/** Three films: f1 with two ratings, f2 with one, f3 without. */
export async function insertFilms(platform: TestPlatform): Promise<void> {
  const films = [
    { id: "f1", title: "One", genre: "Comedy" },
    { id: "f2", title: "Two", genre: "Drama" },
    { id: "f3", title: "Three", genre: "Comedy" },
  ];
  const ratings = [
    { id: "r1", filmId: "f1", stars: 4 },
    { id: "r2", filmId: "f1", stars: 5 },
    { id: "r3", filmId: "f2", stars: 1 },
  ];
  for (const [table, inserts] of Object.entries({ films, ratings })) {
    const { status } = await platform.service.post(`${PATH}/${table}/batch`, { inserts });
    if (status !== 200) throw new Error(`${table} were not inserted: ${status}`);
  }
}

export const idsOf = ({ items }: ListAnswer): unknown[] => items.map(({ id }: JsonObject) => id);
