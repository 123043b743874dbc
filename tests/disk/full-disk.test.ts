import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { bytesOnDisk, path, randomBytes, until, upload } from "../http/storage/storage-support.ts";
import {
  type HttpClient,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../support/index.ts";
import { sendMessage } from "../support/mcp.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const CONFIG = `{
  databases: {
    shared: { tables: { notes: { schema: { text: { type: "text" } }, fts: ["text"] } } },
    tenants: { instance: true, tables: { lines: {} } },
  },
  storage: { buckets: { files: { thumbs: ["20x20"], access: { read: true, write: true } } } },
  kv: { cache: {} },
  d1: { main: {} },
  vectorize: { near: { dimensions: 4 }, product: { dimensions: 4, metric: "dot-product" } },
  rooms: { game: { saveInterval: 50, access: { join: true }, actions: {
    set: (room, _player, payload) => { room.setShared(payload); return null; },
  } } },
  auth: { anonymous: true },
  mcp: true,
}`;
/** More than any file has left over in the pages that it holds. */
const BIG = "x".repeat(50_000);
/** On a machine that does much else. */
const PATIENCE_MS = 20_000;
const METADATA = { text: "x".repeat(12_000) };
/** A red pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC",
  "base64",
);

interface Answer {
  status: number;
  body: unknown;
}
type Attempt = () => Promise<Answer>;

const disk = mountSmallDisk(32);
if (disk === null) console.warn("no full disk is tested: this process may not mount one (that takes root on Linux)");

describe.if(disk !== null)("a disk that is full", () => {
  let platform: TestPlatform;
  let service: HttpClient;
  let user: SignedIn;
  let count = 0;
  const next = (prefix: string): string => `${prefix}${count++}`;
  const send = async (address: string, init: RequestInit): Promise<Answer> => {
    const answer = await service.fetch(address, init);
    return { status: answer.status, body: await answer.json() };
  };
  const notes = "/api/db/shared/tables/notes";
  const line = (tenant: string) => service.post(`/api/db/tenants/${tenant}/tables/lines`, { text: BIG });
  const set = (key: string, value: JsonValue) => service.post("/api/kv/cache", { action: "set", key, value });
  const sql = (query: string, params: JsonValue[] = []) => service.post("/api/d1/main", { query, params });
  const vectors = (index: string) => {
    const list = Array.from({ length: 1_000 }, (_, n) => ({ id: next("v"), values: [1, 2, 3, n] }));
    return service.post(`/api/vectorize/${index}`, { action: "upsert", vectors: list });
  };
  const thumbnail: Attempt = async () => {
    const answer = await platform.fetch(`${path("files", "picture")}?thumb=20x20`);
    return { status: answer.status, body: answer.status === 200 ? null : await answer.json() };
  };

  beforeAll(async () => {
    platform = await testPlatform({ config: CONFIG, args: ["--data", disk?.directory ?? ""] });
    service = platform.service;
    user = await signIn(platform);
    await service.post(notes, { id: "one", text: "a word to find" });
    await upload(service, "files", "kept", "kept");
    await upload(service, "files", "picture", PNG, { type: "image/png" });
    await line("known");
    await sql("CREATE TABLE t (x)");
  });
  afterAll(async () => {
    const code = await platform.stop();
    disk?.unmount();
    expect(code).toBe(0);
  });

  /** Every way of writing. */
  async function attempts(): Promise<Record<string, Attempt>> {
    const { body: begun } = await service.post("/api/storage/files/multipart/create", { key: "multi" });
    const multipart = "/api/storage/files/multipart";
    const putPart = (partNumber: number) =>
      send(`${multipart}/upload-part?uploadId=${begun["uploadId"]}&key=multi&partNumber=${partNumber}`, {
        method: "POST",
        body: BIG,
      });
    const first = (await putPart(1)).body as JsonObject; // the answer of upload-part
    const { body: grant } = await service.post("/api/storage/files/signed-upload-url", { key: "signed" });
    const inserts = Array.from({ length: 10 }, () => ({ text: BIG }));
    return {
      insert: () => service.post(notes, { text: BIG }),
      batch: () => service.post(`${notes}/batch`, { inserts }),
      upsert: () => service.post(`${notes}?upsert=true`, { id: "one", text: BIG + next("") }),
      update: () => service.patch(`${notes}/one`, { text: BIG + next("") }),
      "batch by filter": () =>
        service.post(`${notes}/batch-by-filter`, {
          ...{ action: "update", filter: [["id", "==", "one"]], data: { text: BIG + next("") } },
        }),
      "instance that is there": () => line("known"),
      "instance that is not": () => line(next("new")),
      kv: () => set(next("k"), BIG),
      d1: () => sql("INSERT INTO t VALUES (?)", [BIG]),
      vectors: () => vectors("near"),
      "vectors by product": () => vectors("product"),
      upload: () => upload(service, "files", next("f"), randomBytes(2_000_000)),
      "upload of a byte": () => upload(service, "files", next("f"), "x"),
      "signed upload": async () => {
        const { pathname, search } = new URL(String(grant["url"]), platform.url);
        return send(pathname + search, { method: "PUT", body: BIG });
      },
      "multipart create": () => service.post(`${multipart}/create`, { key: next("m"), metadata: METADATA }),
      "multipart part": () => putPart(2),
      "multipart complete": () =>
        service.post(`${multipart}/complete`, {
          ...{ uploadId: begun["uploadId"] ?? "", key: "multi" },
          parts: [{ partNumber: 1, etag: first["etag"] ?? "" }],
        }),
      "metadata of a file": () => service.patch(`${path("files", "kept")}/metadata`, METADATA),
      thumbnail,
      "sign-up": () =>
        platform.post("/api/auth/signup", { email: `${next("u")}@example.com`, password: "correct horse battery" }),
      "anonymous sign-in": () => platform.post("/api/auth/signin/anonymous"),
      "sign-in": () => platform.post("/api/auth/signin", { email: user.email, password: user.password }),
      refresh: () => platform.post("/api/auth/refresh", { refreshToken: user.refreshToken }),
      "password reset": () => platform.post("/api/auth/request-password-reset", { email: user.email }),
      "registration of a device": () =>
        user.post("/api/push/register", { deviceId: next("d"), token: next("t"), platform: "android" }),
      "change of a user": () => service.patch(`/api/auth/admin/users/${user.id}`, { metadata: METADATA }),
    };
  }

  const reads: Record<string, Attempt> = {
    record: () => service.get(`${notes}/one`),
    list: () => service.get(notes, { query: { limit: 2 } }),
    count: () => service.get(`${notes}/count`, { query: { filter: '[["text","contains","zzz"]]' } }),
    search: () => service.get(`${notes}/search?q=word`),
    kv: () => service.post("/api/kv/cache", { action: "list" }),
    d1: () => sql("SELECT count(*) FROM t"),
    vectors: () => service.post("/api/vectorize/near", { action: "search", vector: [1, 2, 3, 4] }),
    file: async () => {
      const answer = await platform.fetch(path("files", "kept"));
      return { status: answer.status, body: await answer.text() };
    },
    user: () => user.get("/api/auth/me"),
    room: () => platform.get("/api/room/metadata?namespace=game&id=room"),
  };

  const outcomes = async (wanted: Record<string, Attempt>): Promise<Record<string, Answer>> => {
    const all: Record<string, Answer> = {};
    for (const [name, attempt] of Object.entries(wanted)) all[name] = await attempt();
    return all;
  };
  const statuses = async (wanted: Record<string, Attempt>): Promise<Record<string, number>> =>
    Object.fromEntries(Object.entries(await outcomes(wanted)).map(([name, { status }]) => [name, status]));
  const stored = () => bytesOnDisk({ ...platform, dataDirectory: disk?.directory ?? "" }).sort();

  test("[HT14, ST8, RM39] every write is 507, reads go on, and writes work again once there is room", async () => {
    const writes = await attempts();
    const socket = await openSocket(`${platform.wsUrl}/api/room?namespace=game&id=room`);
    socket.send({ type: "auth", token: user.token });
    socket.send({ type: "join" });
    await socket.nextOf("sync");
    const storedBefore = stored();
    disk?.fill();
    const refused = { status: 507, body: { code: 507, message: "Insufficient storage" } };
    for (const [name, answer] of Object.entries(await outcomes(writes))) {
      expect([name, { status: answer.status, body: answer.body }]).toEqual([name, refused]);
    }
    expect(stored()).toEqual(storedBefore);
    // The room goes on in memory, and is saved when that works again.
    socket.send({ type: "send", actionType: "set", payload: { text: BIG }, requestId: "1" });
    await socket.nextOf("action_result");
    await until("its save has failed", () => platform.stderr().includes("rooms.db"), PATIENCE_MS);
    const answered = await statuses(reads);
    expect(answered).toEqual(Object.fromEntries(Object.keys(reads).map((name) => [name, 200])));
    expect((await service.get(`${notes}/one`)).body["text"]).toBe("a word to find");
    disk?.free();
    for (const [name, status] of Object.entries(await statuses(writes))) {
      expect([name, [200, 201].includes(status)]).toEqual([name, true]);
    }
    await platform.kill("SIGTERM");
    await platform.restart();
    const again = await openSocket(`${platform.wsUrl}/api/room?namespace=game&id=room`);
    again.send({ type: "auth", token: user.token });
    again.send({ type: "join" });
    expect(await again.nextOf("sync")).toMatchObject({ sharedState: { text: BIG } });
    await again.close();
  });

  test("[AN5] events of a full disk wait in memory, and are written once there is room", async () => {
    const eventCount = async () =>
      (await service.get("/api/analytics/events", { query: { metric: "count", event: "full" } })).body["totalEvents"];
    disk?.fill();
    const tracked = await service.post("/api/analytics/track", { events: [{ name: "full" }] });
    await until("their file is found full", () => platform.stderr().includes("analytics.db"), PATIENCE_MS);
    disk?.free();
    expect(tracked.status).toBe(200);
    await until("they are written", async () => (await eventCount()) === 1, PATIENCE_MS);
  });

  test("[DB52] a full disk is reported once for each file, not with every write", async () => {
    await platform.restart();
    disk?.fill();
    for (let n = 0; n < 5; n++) expect((await service.post(notes, { text: BIG })).status).toBe(507);
    disk?.free();
    expect(platform.stderr().split("shared.db").length - 1).toBe(1);
  });

  test("[AL6] a wrong password or key is 507 while its entry in the audit log cannot be written", async () => {
    await platform.restart();
    const wrong = async () => {
      const credentials = { email: user.email, password: "wrong horse battery" };
      const [signIn, admin] = [
        await platform.post("/api/auth/signin", credentials),
        await platform.post("/api/admin/session", { key: "wrong" }),
      ];
      return [signIn.status, admin.status];
    };
    disk?.fill();
    const full = await wrong();
    disk?.free();
    expect(full).toEqual([507, 507]);
    expect(await wrong()).toEqual([401, 401]);
  });

  test("[MC8] a call of an agent has an error and no answer while its entry in the audit log cannot be written", async () => {
    await platform.restart();
    const list = () =>
      sendMessage(
        platform.url,
        { "x-platform-service-key": platform.serviceKey },
        { method: "tools/call", params: { name: "list_records", arguments: { namespace: "shared", table: "notes" } } },
      ).then((answer) => answer.json() as Promise<JsonObject>);
    disk?.fill();
    const refused = await list();
    disk?.free();
    expect(refused).toMatchObject({ error: { message: "Insufficient storage" } });
    expect(refused).not.toHaveProperty("result");
    expect(await list()).toMatchObject({ result: { isError: false } });
  });

  test("[DB53, DQ16] of files not opened yet, SQL databases are readable, and instances wait for room", async () => {
    await platform.restart();
    disk?.fill();
    const cold = {
      "d1 read": () => sql("SELECT count(*) FROM t"),
      "d1 write": () => sql("INSERT INTO t VALUES (?)", [BIG]),
      "instance read": () => service.get("/api/db/tenants/known/tables/lines"),
      "instance write": () => line("known"),
    };
    const full = await statuses(cold);
    disk?.free();
    expect(full).toEqual({ "d1 read": 200, "d1 write": 507, "instance read": 507, "instance write": 507 });
    expect(await statuses(cold)).toEqual({
      ...{ "d1 read": 200, "d1 write": 200, "instance read": 200, "instance write": 201 },
    });
  });

  test("[DB53] a server that cannot start on a full disk names the file, and starts once there is room", async () => {
    await platform.kill("SIGTERM");
    disk?.fill();
    const refusal = await platform.restart().then(
      () => "it started",
      (cause: unknown) => String(cause),
    );
    disk?.free();
    expect(refusal).toMatch(/Cannot open the database \S+\.(?:db|lock): no space is left on the device/);
    await platform.restart();
    expect((await service.get(`${notes}/one`)).status).toBe(200);
  });
});
