import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

let platform: TestPlatform;
const P = "/api/db/shared/tables/items";
const FREE = "/api/db/shared/tables/free";

beforeAll(async () => {
  platform = await testPlatform({
    config: `{ databases: { shared: { tables: {
      items: { schema: { name: { type: "string" }, meta: { type: "json" } }, fts: ["name"], access: { read: true, insert: true, update: true } },
      free: { access: { read: true, insert: true, update: true } },
      dropped: { access: { insert: true, update: true } },
    } } } }`,
  });
  await platform.post(P, { id: "a", name: "one", meta: { k: 1 } });
  await platform.post(FREE, { id: "a", name: "one" });
});
afterAll(() => platform.stop());

const NAMES = [
  "name; DROP TABLE items; --",
  'name" OR 1=1 --',
  "name'",
  "1",
  "*",
  "rowid",
  "_rowid_",
  "oid",
  "name COLLATE NOCASE",
  "(SELECT 1)",
  "sqlite_master",
  "items.name",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "_platform_document",
  "",
  " ",
  "name\0",
  'meta."',
  "meta.\\",
  "meta..k",
  "meta.",
  ".meta",
  "meta.k\u0000",
  "items_fts",
];

test("[TB65] no name becomes SQL, and names of JavaScript's own are not fields", async () => {
  for (const name of NAMES) {
    const filter = JSON.stringify([[name, "==", "x"]]);
    for (const query of [{ filter }, { orFilter: filter }, { sort: `${name}:asc` }, { fields: name }]) {
      const answer = await platform.get(P, { query });
      // An empty list of fields is the same as none.
      const isAbsent = "fields" in query && name === "";
      expect([name, Object.keys(query), answer.status]).toEqual([name, Object.keys(query), isAbsent ? 200 : 400]);
    }
    if (name !== "")
      expect(
        (await platform.post(`${P}`, { id: "a", name: "x" }, { query: { upsert: "true", conflictTarget: name } }))
          .status,
      ).toBe(400);
  }
  expect((await platform.get(P)).body["total"]).toBe(1);
});

test("[TB65] filters of schemaless tables find nothing by such names", async () => {
  for (const name of NAMES) {
    const filter = JSON.stringify([[name, "!=", null]]);
    const answer = await platform.get(FREE, { query: { filter } });
    expect([
      name,
      answer.status === 400 || (answer.status === 200 && (name === "items.name" || answer.body["total"] === 0)),
    ]).toEqual([name, true]);
  }
});

test("[TB65] bodies cannot reach an object's prototype", async () => {
  const send = (method: string, path: string, body: string) =>
    platform.fetch(path, { method, body, headers: { "content-type": "application/json" } });
  for (const body of [
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"prototype":1}',
  ]) {
    for (const [method, path] of [
      ["POST", P],
      ["PATCH", `${P}/a`],
      ["POST", FREE],
      ["PATCH", `${FREE}/a`],
    ] as const) {
      expect([body, method, (await send(method, path, body)).status]).toEqual([body, method, 400]);
    }
  }
  const nested = await send("POST", P, '{"id":"p","meta":{"__proto__":{"polluted":1},"constructor":2}}');
  expect(nested.status).toBe(201);
  const read = await (await platform.fetch(`${P}/p`)).text();
  expect(read).toContain('"constructor":2');
  expect((await platform.get(`${P}/a`)).body).not.toHaveProperty("polluted");
});

test("[TB16] deep and huge filters are refused", async () => {
  const deep = `[["meta","==",${"[".repeat(5000)}${"]".repeat(5000)}]]`;
  expect([400, 414, 431]).toContain((await platform.fetch(`${P}?filter=${encodeURIComponent(deep)}`)).status);
  const long = JSON.stringify([["name", "in", Array(1000).fill("x".repeat(10))]]);
  expect([200, 414, 431]).toContain((await platform.fetch(`${P}?filter=${encodeURIComponent(long)}`)).status);
  expect(
    (await platform.get(P, { query: { filter: JSON.stringify([[Array(600).fill("a").join("."), "==", 1]]) } })).status,
  ).toBe(400);
  expect(
    (
      await platform.get(P, {
        query: {
          sort: Array(9)
            .fill("name")
            .map((_name, index) => `meta.k${index}`)
            .join(","),
        },
      })
    ).status,
  ).toBe(400);
});

test("[TB67] tens of thousands of fields of a record that their writer may not read", async () => {
  const dropped = "/api/db/shared/tables/dropped";
  expect((await platform.post(dropped, { id: "a" })).status).toBe(201);
  for (let round = 0; round < 4; round++) {
    const data = Object.fromEntries(Array.from({ length: 49_000 }, (_, index) => [`field${index}`, round]));
    expect(await platform.patch(`${dropped}/a`, data)).toMatchObject({ status: 200, body: { id: "a", ...data } });
  }
}, 10_000);

test("[TB9] a field that is named thousands of times", async () => {
  const inserts = Array.from({ length: 500 }, () =>
    Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, index])),
  );
  for (let round = 0; round < 2; round++) {
    expect((await platform.post(`${FREE}/batch`, { inserts })).status).toBe(200);
  }
  const { status, body } = await platform.get<{ items: object[] }>(
    `${FREE}?limit=1000&fields=${"k,".repeat(20_000)}f1`,
  );
  expect([status, body.items.length]).toEqual([200, 1_000]);
  expect(new Set(body.items.flatMap((one) => Object.keys(one)))).toEqual(new Set(["id", "f1"]));
});

test("[HT133] a body of one-byte chunks is read completely, and other requests are answered meanwhile", async () => {
  const { hostname, port } = new URL(platform.url);
  const socket = connect(Number(port), hostname);
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes.toString("latin1");
  });
  const head = `POST ${FREE} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n`;
  socket.write(`${head}transfer-encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(200_000)}`);
  expect((await platform.get("/api/health")).status).toBe(200);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(`${[...'{"id":"chunks"}'].map((byte) => `1\r\n${byte}\r\n`).join("")}0\r\n\r\n`);
  await closed;
  expect(answer).toStartWith("HTTP/1.1 201");
  expect((await platform.get(`${FREE}/chunks`)).status).toBe(200);
});
