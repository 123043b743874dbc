import { Database } from "bun:sqlite";
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestPlatform, temporaryDirectory } from "../../support/index.ts";
import { FORMER_POCKETBASE_VERSION, type PocketBase, startPocketbase } from "../../support/pocketbase.ts";
import { PASSWORD, picture } from "./demo-world.ts";
import { migrate, moved, started } from "./moved.ts";

setDefaultTimeout(120_000);

const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
});

async function serverOf(version?: string): Promise<PocketBase> {
  const pb = await startPocketbase(version === undefined ? {} : { version });
  ends.push(() => pb.stop());
  return pb;
}

async function platformOf(folder: string): Promise<TestPlatform> {
  const platform = await started(await moved(folder));
  ends.push(() => platform.stop());
  return platform;
}

const unpackedFolders = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("platform-migrate-"));

test("[MG6] a backup zip that PocketBase has made is moved as its folder is", async () => {
  const pb = await serverOf();
  await pb.collection({
    name: "films",
    type: "base",
    listRule: "",
    viewRule: "",
    fields: [
      { name: "title", type: "text" },
      { name: "poster", type: "file", maxSelect: 1 },
    ],
  });
  const { id } = await pb.insert("films", { title: "Heat", poster: picture("heat.png") });
  expect((await pb.superuser.post("/api/backups", { name: "all.zip" })).status).toBe(204);
  const before = unpackedFolders();
  const platform = await platformOf(join(pb.folder, "backups", "all.zip"));
  const { body } = await platform.get(`/api/db/shared/tables/films/${String(id)}`);
  expect(body).toMatchObject({ title: "Heat", poster: { type: "image/png" } });
  expect(unpackedFolders()).toEqual(before);

  const broken = join(temporaryDirectory(), "broken.zip");
  const bytes = readFileSync(join(pb.folder, "backups", "all.zip"));
  writeFileSync(broken, bytes.subarray(0, bytes.length / 2));
  expect(await migrate(broken, "--plan")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("cannot be unpacked"),
  });
  expect(unpackedFolders()).toEqual(before);
});

/** A zip of one file that declares a size, in the form for large ones. */
function declaring(name: string, size: bigint): Buffer {
  const head = (signature: number, length: number, extra: number): Buffer => {
    const bytes = Buffer.alloc(length);
    bytes.writeUInt32LE(signature, 0);
    // Contents are compressed; both sizes are in the extra field.
    const at = signature === 0x02014b50 ? 4 : 0;
    bytes.writeUInt16LE(8, 8 + Math.min(at, 2));
    bytes.writeUInt32LE(2, 18 + Math.min(at, 2));
    bytes.writeUInt32LE(0xffffffff, 22 + Math.min(at, 2));
    bytes.writeUInt16LE(name.length, 26 + Math.min(at, 2));
    bytes.writeUInt16LE(extra, 28 + Math.min(at, 2));
    return bytes;
  };
  const extra = Buffer.alloc(12);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(8, 2);
  extra.writeBigUInt64LE(size, 4);
  const local = Buffer.concat([head(0x04034b50, 30, 12), Buffer.from(name), extra, Buffer.from([3, 0])]);
  const central = Buffer.concat([head(0x02014b50, 46, 12), Buffer.from(name), extra]);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, central, end]);
}

test("[MG9] a backup that declares more than the disk has room for is refused before it is unpacked", async () => {
  const bomb = join(temporaryDirectory(), "bomb.zip");
  const before = unpackedFolders();
  writeFileSync(bomb, declaring("data.db", 1n << 50n));
  expect(await migrate(bomb, "--plan")).toMatchObject({ code: 1, stderr: expect.stringContaining("has no room") });
  // One that says less than it has is damaged.
  writeFileSync(bomb, declaring("data.db", 1n));
  expect(await migrate(bomb, "--plan")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("cannot be unpacked"),
  });
  expect(unpackedFolders()).toEqual(before);
});

test("[MG7] a release before 0.23 is moved, with its rules, accounts and files", async () => {
  const pb = await serverOf(FORMER_POCKETBASE_VERSION);
  const users = await pb.collection({ name: "users", options: { onlyVerified: true, minPasswordLength: 8 } });
  await pb.collection({
    name: "notes",
    type: "base",
    listRule: "owner = @request.auth.id",
    viewRule: "owner = @request.auth.id",
    createRule: "owner = @request.auth.id && @request.data.size:isset = false",
    schema: [
      { name: "text", type: "text", required: true, options: { max: 20 } },
      { name: "size", type: "number", options: { noDecimal: true } },
      { name: "mood", type: "select", options: { maxSelect: 1, values: ["glad", "sad"] } },
      { name: "paper", type: "file", options: { maxSelect: 1, maxSize: 5_000_000 } },
      { name: "owner", type: "relation", options: { collectionId: String(users["id"]), maxSelect: 1 } },
      { name: "readers", type: "relation", options: { collectionId: String(users["id"]), maxSelect: null } },
    ],
  });
  const account = { email: "ada@example.com", password: PASSWORD, passwordConfirm: PASSWORD, verified: true };
  const ada = String((await pb.insert("users", { ...account, username: "ada" }))["id"]);
  const note = await pb.insert("notes", { text: "Mine", size: 3, owner: ada, readers: [ada], paper: picture("a.png") });
  const platform = await platformOf(pb.folder);
  const { body } = await platform.post("/api/auth/signin", { email: "ada@example.com", password: PASSWORD });
  const { accessToken } = body as { accessToken: string };
  const path = "/api/db/shared/tables/notes";
  const mine = await platform.as(accessToken).get(`${path}/${String(note["id"])}`);
  expect(mine.body).toMatchObject({
    text: "Mine",
    size: 3,
    mood: null,
    owner: ada,
    readers: [ada],
    paper: { type: "image/png" },
    createdAt: new Date(String(note["created"])).toISOString(),
  });
  expect((await platform.get(`${path}/${String(note["id"])}`)).status).toBe(401);
  const insert = (values: Record<string, string | number>) =>
    platform.as(accessToken).post(path, { text: "New", owner: ada, ...values });
  expect([(await insert({})).status, (await insert({ size: 4 })).status]).toEqual([201, 403]);
  const user = await platform.service.get(`/api/db/shared/tables/users/${ada}`);
  expect(user.body).toMatchObject({ username: "ada" });
});

test("[MG25] without an auth collection nobody signs up", async () => {
  const pb = await serverOf();
  expect((await pb.superuser.delete("/api/collections/users")).status).toBe(204);
  await pb.collection({ name: "films", type: "base", listRule: '@request.auth.id != ""', viewRule: "" });
  const platform = await platformOf(pb.folder);
  const account = { email: "eve@example.com", password: PASSWORD };
  expect((await platform.post("/api/auth/signup", account)).status).toBe(403);
});

test("[MG8] no text of the source becomes code of the config", async () => {
  const pb = await serverOf();
  await pb.collection({
    name: "films",
    type: "base",
    fields: [{ name: "kind", type: "select", values: ['"]; process.exit(9); //', "plain"] }],
  });
  await pb.stop();
  // PocketBase refuses such a rule; whoever hands over a backup may have written it.
  using database = new Database(join(pb.folder, "data.db"));
  database.run("UPDATE _collections SET listRule = ?1, viewRule = ?1 WHERE name = 'films'", [
    "\u00a7\u2028process.exit(9)\u2028//",
  ]);
  const { config } = await moved(pb.folder);
  const lines = config.split(/[\n\r\u2028\u2029]/).filter((line) => line.includes("process.exit"));
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line.trim()).toMatch(/^\/\/ |^kind: \{ type: "string", enum: \[/);
});
