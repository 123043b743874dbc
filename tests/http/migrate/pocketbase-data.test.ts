import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, temporaryDirectory } from "../../support/index.ts";
import { demoWorld, PASSWORD, PNG } from "./demo-world.ts";
import { type Moved, migrate, moved, started } from "./moved.ts";

// The first run downloads PocketBase, and each one starts it.
setDefaultTimeout(120_000);

let world: Awaited<ReturnType<typeof demoWorld>>;
let made: Moved;
let platform: TestPlatform;
beforeAll(async () => {
  world = await demoWorld();
  made = await moved(world.pb.folder);
  platform = await started(made, { GITHUB_CLIENT_ID: "github-id", GITHUB_CLIENT_SECRET: "github-secret" });
});
afterAll(async () => {
  await platform?.stop();
  await world?.pb.stop();
});

const record = async (table: string, id: string): Promise<JsonObject> =>
  (await platform.service.get(`/api/db/shared/tables/${table}/${id}`)).body;

const instant = (text: unknown): string => new Date(String(text)).toISOString();

test("[MG1] a move makes the config, the data directory and the report", () => {
  expect(readdirSync(made.directory).sort()).toEqual([".env", "data", "platform.config.ts", "report.md"]);
  expect(statSync(join(made.directory, ".env")).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(made.directory, ".env"), "utf8")).toContain('GITHUB_CLIENT_SECRET="github-secret"');
  expect(made.config).not.toContain("github-secret");
});

test("[MG2] a folder with something in it is refused, and stays as it is", async () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "notes.txt"), "mine");
  const { code, stderr } = await migrate(world.pb.folder, "--into", directory);
  expect({ code, stderr }).toEqual({ code: 1, stderr: `platform: ${directory} is not empty: name a new folder\n` });
  expect(readdirSync(directory)).toEqual(["notes.txt"]);
});

test("[MG3] --plan prints the config and the report, and writes nothing", async () => {
  const directory = join(temporaryDirectory(), "app");
  const { code, stdout } = await migrate(world.pb.folder, "--into", directory, "--plan");
  expect(code).toBe(0);
  expect(stdout).toStartWith(made.config);
  expect(stdout).toContain("| demo | 2 |");
  expect(existsSync(directory)).toBe(false);
});

test("[MG4] what is no pb_data folder is refused", async () => {
  const empty = temporaryDirectory();
  expect(await migrate(empty, "--plan")).toMatchObject({ code: 1, stderr: expect.stringContaining("has no data.db") });
  const other = temporaryDirectory();
  mkdirSync(other, { recursive: true });
  writeFileSync(join(other, "data.db"), "no database at all, but a text that is long enough to be one".repeat(100));
  expect(await migrate(other, "--plan")).toMatchObject({ code: 1, stderr: expect.stringContaining("cannot be read") });
  expect((await migrate(world.pb.folder)).code).toBe(2);
});

test("[MG10] values of every type are those of PocketBase, and ids and times stay", async () => {
  const { body: there } = await world.pb.superuser.get<JsonObject>(`/api/collections/demo/records/${world.full}`);
  const here = await record("demo", world.full);
  for (const name of ["text", "empty", "html", "count", "price", "done", "mail", "link", "kind", "kinds", "data"]) {
    expect([name, here[name]]).toEqual([name, there[name]]);
  }
  expect(here).toMatchObject({
    id: world.full,
    due: "2030-05-06T07:08:09.123Z",
    at: { lat: 48.2, lng: 16.37 },
    owner: world.ada,
    people: [world.bob, world.ada],
    parent: world.bare,
    createdAt: instant(there["created"]),
    updatedAt: instant(there["updated"]),
  });
});

test("[MG11] an empty date, selection, relation and point is null, an empty text stays", async () => {
  expect(await record("demo", world.bare)).toMatchObject({
    ...{ empty: "", html: "", mail: "", link: "", count: 0, price: 0, done: false, kinds: [], people: [], papers: [] },
    ...{ due: null, kind: null, owner: null, at: null, data: null, picture: null, parent: world.full },
  });
});

test("[MG12] files keep their stored names, types and bytes", async () => {
  const { body: there } = await world.pb.superuser.get<JsonObject>(`/api/collections/demo/records/${world.full}`);
  const { picture, papers } = await record("demo", world.full);
  expect(picture).toMatchObject({ name: there["picture"], type: "image/png", size: PNG.length });
  expect((papers as { name: string }[]).map(({ name }) => name)).toEqual(there["papers"] as string[]);
  const [one] = papers as { url: string }[];
  const answer = await platform.service.fetch(one?.url ?? "");
  expect([await answer.text(), answer.headers.get("content-type")]).toEqual(["one", "text/plain; charset=utf-8"]);
  const thumbnail = await platform.service.fetch(`${(picture as { url: string }).url}?thumb=100x100`);
  expect([thumbnail.status, thumbnail.headers.get("content-type")]).toEqual([200, "image/webp"]);
});

test("[MG13] hidden fields are in a table without rules, under the record's id", async () => {
  expect(await record("demo", world.full)).not.toHaveProperty("secret");
  expect(await record("demo_hidden", world.full)).toEqual({ id: world.full, secret: "hush" });
  expect(await record("users_hidden", world.ada)).toEqual({ id: world.ada, note: "a secret" });
  const { accessToken } = await signedIn("ada@example.com");
  expect((await platform.as(accessToken).get(`/api/db/shared/tables/demo_hidden/${world.full}`)).status).toBe(403);
});

const signedIn = async (email: string) =>
  (await platform.post<{ accessToken: string }>("/api/auth/signin", { email, password: PASSWORD })).body;

test("[MG20] accounts keep their password, time, verification, visibility and fields of their own", async () => {
  const answer = await platform.post("/api/auth/signin", { email: "ada@example.com", password: PASSWORD });
  expect(answer).toMatchObject({
    status: 200,
    body: { user: { id: world.ada, displayName: "ada", emailVerified: true } },
  });
  const { body: there } = await world.pb.superuser.get<JsonObject>(`/api/collections/users/records/${world.ada}`);
  const { body: account } = await platform.service.get(`/api/auth/admin/users/${world.ada}`);
  expect(account).toMatchObject({ emailVisibility: "public", disabled: false, createdAt: instant(there["created"]) });
  expect(await record("users", world.ada)).toMatchObject({ name: "ada", points: 7, avatar: null });
  expect(await record("users", world.bob)).toMatchObject({ points: 0, avatar: { type: "image/png" } });
});

test("[MG21] the authRule verified = true becomes requireVerifiedEmail", async () => {
  expect(made.config).toContain("requireVerifiedEmail: true");
  expect((await platform.post("/api/auth/signin", { email: "bob@example.com", password: PASSWORD })).status).toBe(403);
});

test("[MG22] identities at known providers are those of the account", async () => {
  const { body } = await platform.service.get(`/api/auth/admin/users/${world.ada}/means`);
  expect(body).toMatchObject({ identities: [{ provider: "github" }] });
  // No answer shows the provider's id of a user.
  using system = new Database(join(made.directory, "data", "system.db"), { readonly: true });
  expect(system.query("SELECT userId, subject FROM identities").all()).toEqual([
    { userId: world.ada, subject: "4711" },
  ]);
});

test("[MG30] a move reads everything back and compares counts and hashes", () => {
  const rows = made.report.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| |"));
  expect(
    rows.map((row) =>
      row
        .split("|")
        .map((cell) => cell.trim())
        .slice(1, 4),
    ),
  ).toEqual([
    ["accounts", "2", "2"],
    ["demo", "2", "2"],
    ["demo_hidden", "2", "2"],
    ["users", "2", "2"],
    ["users_hidden", "2", "2"],
    ["files", "4", "4"],
  ]);
  expect(made.report).not.toContain(" there, ");
});

test("[MG31] the report names superusers, and what was not moved", () => {
  expect(made.report).toContain("- root@example.com");
  expect(made.report).toContain("**thumbs**: sizes of thumbnails that this server does not make: 0x50");
});
