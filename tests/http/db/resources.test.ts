import { afterAll, beforeAll, expect, test } from "bun:test";
import { type TestPlatform, testPlatform } from "../../support/index.ts";

const key = (name: string) => `${name}-key-0123456789abcdefghijklmnopqrstuv`;
const SECRET = "a-secret-of-the-config-0123456789";
const HOOK_SECRET = `whsec_${Buffer.from("the secret of a webhook has 32 b").toString("base64")}`;
const scoped = (name: string, scopes: string[]) =>
  `${name}: { key: "${key(name)}", scopes: ${JSON.stringify(scopes)} }`;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: {
        shared: { tables: { notes: { schema: { text: { type: "string" } }, access: { read: (auth) => auth !== null } }, other: {} } },
        spaces: { instance: true, tables: { tasks: {} } },
      },
      storage: { buckets: { photos: {}, far: { backend: { s3: { endpoint: "https://s3.example.com", bucket: "b", accessKeyId: "id", secretAccessKey: "${SECRET}" } } } } },
      kv: { cache: {} }, d1: { reports: {} }, vectorize: { texts: { dimensions: 3 } }, rooms: { game: {} },
      jobs: { mend: { run() {} } }, cron: { nightly: { schedule: "0 3 * * *", run() {} }, mend: { schedule: "0 4 * * *", run() {} } },
      webhooks: { crm: { url: "https://hooks.example.com/${SECRET}", secret: "${HOOK_SECRET}", on: { auth: ["signup"] }, headers: { "x-token": "${SECRET}" } } },
      auth: { captcha: { provider: "turnstile", siteKey: "site", secretKey: "${SECRET}" } },
      serviceKeys: {
        ${scoped("writer", ["db:shared:notes:insert"])},
        ${scoped("files", ["storage:bucket:photos:read"])},
        ${scoped("system", ["system:*:*:read"])},
        ${scoped("mender", ["jobs:*:mend:write"])},
        ${scoped("unused", [])},
        ${scoped("nothing", [])},
      },
    }`,
  });
});
afterAll(() => platform.stop());

const PATH = "/api/admin/resources";
const NOTHING = {
  ...{
    namespaces: {},
    rules: {},
    buckets: [],
    quotas: { buckets: {}, namespaces: {} },
    kv: [],
    d1: [],
    vectorize: [],
    rooms: [],
    jobs: [],
    webhooks: [],
    cron: [],
    serviceKeys: [],
    warnings: [],
  },
};

test("[SY300] the root key sees everything that is declared, and no secret of it", async () => {
  const { body } = await platform.service.get(PATH);
  expect(body).toMatchObject({
    namespaces: {
      shared: { instance: false, tables: { notes: { fields: { text: { type: "string" } } }, other: {} } },
      spaces: { instance: true, tables: { tasks: { schemaless: true } } },
    },
    buckets: [
      { name: "photos", external: false },
      { name: "far", external: true },
    ],
    ...{ kv: ["cache"], d1: ["reports"], rooms: ["game"], jobs: ["mend"] },
    vectorize: [{ name: "texts", dimensions: 3, metric: "cosine" }],
    cron: [
      { name: "nightly", schedule: "0 3 * * *", timezone: null },
      { name: "mend", schedule: "0 4 * * *", timezone: null },
    ],
  });
  expect(JSON.stringify(body["rules"])).toContain("auth !== null");
  expect(body["serviceKeys"]).toContainEqual({
    name: "nothing",
    scopes: [],
    expiresAt: null,
    ips: null,
    lastUsedAt: null,
  });
  for (const secret of [SECRET, key("writer"), key("files"), platform.serviceKey]) {
    expect(JSON.stringify(body)).not.toContain(secret);
  }
});

test("[SY300] a key with scopes sees what they name, whatever the action, and nothing else", async () => {
  const seen = async (name: string) => (await platform.withKey(key(name)).get(PATH)).body;
  const notes = { shared: { instance: false, tables: { notes: expect.anything() } } };
  expect(await seen("writer")).toEqual({ ...NOTHING, namespaces: notes });
  expect(await seen("files")).toEqual({ ...NOTHING, buckets: [{ name: "photos", external: false }] });
  // A schedule of the same name is another job: `cron:mend`.
  expect(await seen("mender")).toEqual({ ...NOTHING, jobs: ["mend"] });
  expect(await seen("nothing")).toEqual(NOTHING);
  expect(await seen("system")).toMatchObject({ namespaces: {}, rooms: ["game"], buckets: [] });
  expect((await platform.get(PATH)).status).toBe(401);
});

test("[SY360] keys with system:*:*:read get the warnings of the config, and no other key does", async () => {
  const warning = {
    path: "databases.spaces",
    message: "has no access: only service keys can open or create its instances",
  };
  expect((await platform.withKey(key("system")).get(PATH)).body["warnings"]).toContainEqual(warning);
  expect((await platform.withKey(key("writer")).get(PATH)).body["warnings"]).toEqual([]);
});

test("[SY362] webhooks are named for keys that may see their deliveries, without addresses and secrets", async () => {
  const { body } = await platform.service.get(PATH);
  expect(body["webhooks"]).toEqual(["crm"]);
  expect(JSON.stringify(body)).not.toContain("hooks.example.com");
  expect((await platform.withKey(key("writer")).get(PATH)).body["webhooks"]).toEqual([]);
});

test("[SY363] keys say when they were last used", async () => {
  const used = async (name: string) =>
    (
      await platform.service.get<{ serviceKeys: { name: string; lastUsedAt: string | null }[] }>(PATH)
    ).body.serviceKeys.find((one) => one.name === name)?.lastUsedAt;
  expect(await used("unused")).toBeNull();
  await platform.withKey(key("unused")).get(PATH);
  expect(Math.abs(Date.parse((await used("unused")) ?? "") - Date.now())).toBeLessThan(60_000);
});

test("[SY364] the config as it runs has numbers and names, and no text that may be a secret", async () => {
  const { status, body } = await platform.withKey(key("system")).get("/api/admin/config");
  expect(status).toBe(200);
  expect(body).toMatchObject({
    databases: {
      shared: { tables: { notes: { schema: { text: { type: "string" } }, access: { read: "[function]" } } } },
    },
    vectorize: { texts: { dimensions: 3 } },
    cron: { nightly: { schedule: "0 3 * * *", run: "[function]" } },
    serviceKeys: { writer: { key: "[hidden]", scopes: ["db:shared:notes:insert"] } },
    webhooks: { crm: { url: "[hidden]", secret: "[hidden]", headers: { "x-token": "[hidden]" } } },
    auth: { captcha: { secretKey: "[hidden]" } },
  } as never);
  const text = JSON.stringify(body);
  for (const secret of [SECRET, key("writer"), "hooks.example.com", HOOK_SECRET]) expect(text).not.toContain(secret);
  expect((await platform.get("/api/admin/config")).status).toBe(401);
  expect((await platform.withKey(key("writer")).get("/api/admin/config")).status).toBe(403);
});
