import { expect, test } from "bun:test";
import { checkConfig } from "../../check.ts";

const BASE = {
  databases: {
    shared: { tables: { posts: { schema: { title: { type: "string" }, meta: { type: "json" } } }, free: {} } },
  },
  storage: { buckets: { pictures: {} } },
};
const run = () => {};
const SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;

function problemsOf(sections: object): string[] {
  const checked = checkConfig({ ...BASE, ...sections });
  return "problems" in checked ? checked.problems.map(({ path, message }) => `${path}: ${message}`) : [];
}
const trigger = (declared: object) => problemsOf({ triggers: { t: { run, ...declared } } });
const webhook = (declared: object) =>
  problemsOf({ webhooks: { w: { url: "https://a.example", secret: SECRET, on: { auth: ["signup"] }, ...declared } } });

test("[TG17] every kind of source is accepted, with a filter over its fields", () => {
  expect(
    [
      {
        on: { table: "shared.posts" },
        filter: [
          ["meta.deep", "==", 1],
          ["createdAt", ">", "2026"],
        ],
      },
      { on: { table: "shared.posts", events: ["insert", "update", "delete"] }, retries: 0, timeout: 5, concurrency: 1 },
      { on: { table: "shared.free" }, filter: [["anything", "in", [1, 2]]] },
      { on: { bucket: "pictures", events: ["upload"] }, filter: [["size", ">", 5]] },
      { on: { auth: ["signup", "delete"] }, filter: [["role", "==", "admin"]] },
    ].flatMap(trigger),
  ).toEqual([]);
});

test.each([
  [{ on: {} }, "triggers.t.on: must have one of table, bucket and auth"],
  [{ on: { table: "shared.posts", bucket: "pictures" } }, "triggers.t.on: must have one of table, bucket and auth"],
  [{ on: { table: "posts" } }, 'triggers.t.on.table: must be NAMESPACE.TABLE, got "posts"'],
  [{ on: { table: "other.posts" } }, 'triggers.t.on.table: "other" is not a namespace of this config'],
  [{ on: { table: "shared.others" } }, 'triggers.t.on.table: "others" is not a table of shared'],
  [{ on: { table: "shared.toString" } }, 'triggers.t.on.table: "toString" is not a table of shared'],
  [{ on: { bucket: "others" } }, 'triggers.t.on.bucket: "others" is not a bucket of this config'],
  [{ on: { table: "shared.posts", events: [] } }, "triggers.t.on.events: must not be empty"],
  [
    { on: { table: "shared.posts", events: ["upload"] } },
    'triggers.t.on.events.0: must be one of insert, update, delete, got "upload"',
  ],
  [
    { on: { bucket: "pictures", events: ["insert"] } },
    'triggers.t.on.events.0: must be one of upload, delete, got "insert"',
  ],
  [{ on: { auth: ["login"] } }, 'triggers.t.on.auth.0: must be one of signup, delete, got "login"'],
  [
    { on: { auth: ["signup"], events: ["signup"] } },
    "triggers.t.on.events: is for table and bucket; name the events of accounts in auth",
  ],
  [
    { on: { table: "shared.posts" }, filter: [["titel", "==", 1]] },
    'triggers.t.filter.0.0: "titel" is not a field; the fields are id, title, meta, createdAt, updatedAt',
  ],
  [
    { on: { bucket: "pictures" }, filter: [["name", "==", 1]] },
    'triggers.t.filter.0.0: "name" is not a field; the fields are key, size, contentType, uploadedBy, customMetadata, uploaded',
  ],
  [
    { on: { table: "shared.posts" }, filter: [["title", "=", 1]] },
    'triggers.t.filter.0.1: must be one of ==, !=, >, >=, <, <=, contains, icontains, startsWith, istartsWith, within, inBox, in, not in, has, hasAny, hasAll, got "="',
  ],
  [
    { on: { table: "shared.posts" }, filter: ["title"] },
    "triggers.t.filter.0: must be [field, operator, value], or a group",
  ],
  [{ on: { table: "shared.posts" }, run: 5 }, "triggers.t.run: must be a function, got 5"],
  [{ on: { table: "shared.posts" }, retries: -1 }, "triggers.t.retries: must be a whole number, 0 or more, got -1"],
])("[TG17] %j is a problem of the config", (declared, problem) => {
  expect(trigger(declared)).toEqual([problem]);
});

test("[WH1] a webhook has an address, a secret as Standard Webhooks want it, and headers that are its own", () => {
  expect(webhook({ headers: { Authorization: "Bearer x" } })).toEqual([]);
  expect(webhook({ secret: SECRET.slice("whsec_".length) })).toEqual([]);
  expect(webhook({ url: "ftp://a.example" })).toEqual([
    'webhooks.w.url: must be a URL that begins with https: or http:, got "ftp://a.example"',
  ]);
  for (const secret of ["short", "whsec_AAAA", `whsec_${Buffer.alloc(65).toString("base64")}`]) {
    const [problem = "", ...others] = webhook({ secret });
    expect(others).toEqual([]);
    expect(problem).toStartWith("webhooks.w.secret: must be 24 to 64 random bytes as base64");
    expect(problem).not.toContain(secret);
  }
  expect(webhook({ headers: { "Webhook-Id": "x" } })).toEqual(["webhooks.w.headers.Webhook-Id: is set by the server"]);
  expect(webhook({ headers: { "a b": "x" } })).toEqual(["webhooks.w.headers.a b: is not the name of a header"]);
  expect(webhook({ headers: { "X-A": "a\nb" } })).toEqual([
    "webhooks.w.headers.X-A: must consist of visible ASCII characters and spaces",
  ]);
  expect(webhook({ on: { table: "shared.others" } })).toEqual([
    'webhooks.w.on.table: "others" is not a table of shared',
  ]);
});
