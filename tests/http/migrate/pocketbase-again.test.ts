import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type TestPlatform, temporaryDirectory } from "../../support/index.ts";
import { type PocketBase, startPocketbase } from "../../support/pocketbase.ts";
import { PASSWORD, picture } from "./demo-world.ts";
import { type Moved, migrate, moved, started } from "./moved.ts";

// A move, a rehearsal on it, work on both sides, and a second move.

setDefaultTimeout(180_000);

const OTHER_PASSWORD = "another horse battery";
const FILMS = ["same", "there", "here", "both", "gone", "gone-here", "gone-changed", "watched"] as const;

let pb: PocketBase;
let made: Moved;
let platform: TestPlatform;
let report: string;
let configBefore: string;
const users: Record<string, string> = {};
const films: Record<string, string> = {};

const here = (table: string, id = "") => `/api/db/shared/tables/${table}${id === "" ? "" : `/${id}`}`;
const there = (table: string, id: string) => `/api/collections/${table}/records/${id}`;
const again = () => migrate(pb.folder, "--into", made.directory, "--again");
const read = (name: string): string => readFileSync(join(made.directory, name), "utf8");
const film = async (id: string | undefined) => (await platform.service.get(here("films", id ?? ""))).body;

beforeAll(async () => {
  pb = await startPocketbase();
  const account = async (name: string) => {
    const given = { email: `${name}@example.com`, password: PASSWORD, passwordConfirm: PASSWORD, verified: true, name };
    users[name] = String((await pb.insert("users", given))["id"]);
  };
  for (const name of ["ada", "bob", "cat", "dan", "eva"]) await account(name);
  const { id: usersId } = await pb.superuser.get<JsonObject>("/api/collections/users").then(({ body }) => body);
  const fields = [
    { name: "title", type: "text", required: true },
    { name: "secret", type: "text", hidden: true },
    { name: "poster", type: "file", maxSelect: 1 },
    { name: "papers", type: "file", maxSelect: 3 },
    { name: "owner", type: "relation", collectionId: String(usersId), maxSelect: 1 },
    { name: "created", type: "autodate", onCreate: true },
    { name: "updated", type: "autodate", onCreate: true, onUpdate: true },
  ];
  await pb.collection({ name: "films", type: "base", listRule: "", viewRule: "", fields });
  const { id: filmsId } = await pb.superuser.get<JsonObject>("/api/collections/films").then(({ body }) => body);
  await pb.collection({
    ...{ name: "notes", type: "base", listRule: "", viewRule: "" },
    fields: [
      { name: "text", type: "text" },
      { name: "film", type: "relation", collectionId: String(filmsId), maxSelect: 1, cascadeDelete: true },
    ],
  });
  for (const title of FILMS) {
    const values = { title, secret: "hush", owner: users["ada"] ?? "", poster: picture(`${title}.png`) };
    films[title] = String((await pb.insert("films", { ...values, papers: [new File(["one"], "one.txt")] }))["id"]);
  }
  const note = async (text: string, title: string) =>
    void (await pb.insert("notes", { text, film: films[title] ?? "" }));
  await note("goes with its film", "gone");
  await note("stays", "same");
  made = await moved(pb.folder);

  // The rehearsal: people work on what was moved.
  platform = await started(made);
  const change = async (path: string, values: JsonObject) =>
    expect((await platform.service.patch(path, values)).status).toBe(200);
  await change(here("films", films["here"]), { title: "changed here" });
  await change(here("films", films["both"]), { title: "both, here" });
  await change(here("films", films["gone-changed"]), { title: "kept here" });
  expect((await platform.service.delete(here("films", films["gone-here"]))).status).toBe(200);
  await platform.service.post(here("films"), { id: "madehere", title: "made here" });
  await platform.service.post(here("notes"), { id: "notehere", text: "written here", film: films["watched"] ?? "" });
  await change(`/api/auth/admin/users/${users["dan"]}`, { displayName: "Dan of here" });
  await platform.service.post("/api/auth/admin/users", { email: "zoe@example.com", password: PASSWORD });
  await change(`/api/auth/admin/users/${users["bob"]}`, { password: OTHER_PASSWORD });
  configBefore = `${read("platform.config.ts")}// Edited by hand.\n`;
  writeFileSync(join(made.directory, "platform.config.ts"), configBefore);
  await platform.kill("SIGTERM");

  // Meanwhile there.
  const changed = async (collection: string, id: string | undefined, values: JsonObject) =>
    expect((await pb.superuser.patch(there(collection, id ?? ""), values)).status).toBe(200);
  await changed("films", films["there"], { title: "changed there", secret: "louder" });
  const form = new FormData();
  form.append("poster", picture("other.png"));
  form.append("papers+", new File(["two"], "two.txt"));
  await pb.superuser.fetch(there("films", films["there"] ?? ""), { method: "PATCH", body: form });
  await changed("films", films["both"], { title: "both, there" });
  for (const title of ["gone", "gone-changed", "watched"]) {
    expect((await pb.superuser.delete(there("films", films[title] ?? ""))).status).toBe(204);
  }
  films["new"] = String(
    (
      await pb.insert("films", {
        title: "new",
        secret: "new hush",
        owner: users["eva"] ?? "",
        poster: picture("new.png"),
      })
    )["id"],
  );
  await account("fay");
  await changed("users", users["fay"], { name: "Fay" });
  await changed("users", users["ada"], { password: OTHER_PASSWORD, passwordConfirm: OTHER_PASSWORD });
  await changed("users", users["bob"], { password: `${PASSWORD}!`, passwordConfirm: `${PASSWORD}!` });
  await changed("users", users["eva"], { name: "Eva the Second" });
  await changed("users", users["dan"], { name: "Dan of there" });
  expect((await pb.superuser.delete(there("users", users["cat"] ?? ""))).status).toBe(204);
  await pb.collection({
    name: "films",
    fields: [...fields.slice(0, 5), { name: "year", type: "number" }, ...fields.slice(5)],
  });

  const ended = await again();
  expect(ended).toMatchObject({ code: 0, stdout: "" });
  report = read("report.md");
  platform = await started({ ...made, config: configBefore });
});
afterAll(async () => {
  await platform?.stop();
  await pb?.stop();
});

test("[MG70] --again takes over new, changed and deleted records, with files, times and hidden fields", async () => {
  const { body } = await pb.superuser.get<JsonObject>(there("films", films["there"] ?? ""));
  expect(await film(films["there"])).toMatchObject({
    title: "changed there",
    poster: { name: body["poster"] },
    papers: (body["papers"] as string[]).map((name) => ({ name })),
    updatedAt: new Date(String(body["updated"])).toISOString(),
  });
  expect((await platform.service.get(here("films_hidden", films["there"]))).body).toMatchObject({ secret: "louder" });
  expect(await film(films["new"])).toMatchObject({ title: "new", owner: users["eva"], poster: { type: "image/png" } });
  expect((await platform.service.get(here("films_hidden", films["new"]))).body).toMatchObject({ secret: "new hush" });
  expect((await platform.service.get(here("films", films["gone"]))).status).toBe(404);
  expect((await platform.service.get(here("films_hidden", films["gone"]))).status).toBe(404);
  const { body: notes } = await platform.service.get<{ items: { text: string }[] }>(`${here("notes")}?sort=text:asc`);
  expect(notes.items.map(({ text }) => text)).toEqual(["stays", "written here"]);
});

test("[MG70] what a query by index, a count and a search find is what is there", async () => {
  const { body } = await platform.service.get<{ total: number }>(`${here("films")}/count`);
  const { body: listed } = await platform.service.get<{ items: object[] }>(`${here("films")}?limit=100`);
  expect(body.total).toBe(listed.items.length);
  const { body: owned } = await platform.service.get<{ items: { title: string }[] }>(here("films"), {
    query: { filter: JSON.stringify([["owner", "==", users["eva"] ?? ""]]) },
  });
  expect(owned.items.map(({ title }) => title)).toEqual(["new"]);
});

test("[MG71] what was made, changed or deleted here stays, and is named", async () => {
  expect(await film(films["here"])).toMatchObject({ title: "changed here" });
  expect(await film(films["both"])).toMatchObject({ title: "both, here" });
  expect(await film("madehere")).toMatchObject({ title: "made here" });
  expect(await film(films["gone-changed"])).toMatchObject({ title: "kept here" });
  expect((await platform.service.get(here("films", films["gone-here"]))).status).toBe(404);
  // A record made here refers to it.
  expect(await film(films["watched"])).toMatchObject({ title: "watched" });
  expect((await platform.service.get(here("films_hidden", films["watched"]))).body).toMatchObject({ secret: "hush" });
  for (const line of [
    `- **films**, changed here: ${films["here"]}`,
    `- **films**, made here: madehere`,
    `- **films**, deleted here: ${films["gone-here"]}`,
    `${films["watched"]} is gone there and stays here, as notes.film of notehere refers to it`,
    "- **notes**, made here: notehere",
  ]) {
    expect(report).toContain(line);
  }
  const both = report.split("\n").find((line) => line.startsWith("- **films**, changed here, and other there"));
  expect(both).toContain(films["both"] ?? "");
  expect(both).toContain(films["gone-changed"] ?? "");
});

const signIn = async (name: string, password: string): Promise<number> =>
  (await platform.post("/api/auth/signin", { email: `${name}@example.com`, password })).status;

test("[MG72] accounts follow, passwords too, and one that was changed here stays", async () => {
  expect(await signIn("fay", PASSWORD)).toBe(200);
  expect([await signIn("ada", OTHER_PASSWORD), await signIn("ada", PASSWORD)]).toEqual([200, 401]);
  // Changed on both sides: the one of here is good, and the report says so.
  expect([await signIn("bob", OTHER_PASSWORD), await signIn("bob", `${PASSWORD}!`)]).toEqual([200, 401]);
  expect(report).toContain(
    `- **passwords**, another one here, set or replaced at a sign-in, and other there than it was: ${users["bob"]}`,
  );
  expect((await platform.service.get(`/api/auth/admin/users/${users["cat"]}`)).status).toBe(404);
  expect((await platform.service.get(here("users", users["cat"]))).status).toBe(404);
  const account = async (name: string) => (await platform.service.get(`/api/auth/admin/users/${users[name]}`)).body;
  expect([await account("eva"), await account("dan")]).toMatchObject([
    { displayName: "Eva the Second" },
    { displayName: "Dan of here" },
  ]);
  // The record of an account follows it, and has its own fields of there.
  const user = async (name: string) => (await platform.service.get(here("users", users[name]))).body;
  expect(await user("eva")).toMatchObject({ name: "Eva the Second", displayName: "Eva the Second" });
  expect(await user("fay")).toMatchObject({ name: "Fay", displayName: "Fay" });
  expect(report).toContain(`- **accounts**, changed here, and other there than it was: ${users["dan"]}`);
});

test("[MG73] the config stays as it is, and the report says what would be another one", () => {
  expect(read("platform.config.ts")).toBe(configBefore);
  expect(report).toContain("+            year: { type:");
  expect(report).toContain("| films | 1 | 1 | 1 |");
  expect(statSync(join(made.directory, "data", "moved.db")).mode & 0o777).toBe(0o600);
});

test("[MG70] it is refused while the server runs, in a folder that no move has made, and with --plan", async () => {
  expect(await again()).toMatchObject({ code: 1, stderr: expect.stringContaining("stop the server before --again") });
  const empty = join(temporaryDirectory(), "app");
  expect(await migrate(pb.folder, "--into", empty, "--again")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is not there"),
  });
  expect(existsSync(empty)).toBe(false);
  expect((await migrate(pb.folder, "--into", made.directory, "--again", "--plan")).code).toBe(2);
});

test("[MG71] a third move changes nothing more, and still names what stays", async () => {
  await platform.kill("SIGTERM");
  const { code } = await again();
  expect(code).toBe(0);
  const third = read("report.md");
  expect(third).toContain("Nothing has changed there.");
  expect(third).toContain(`- **films**, changed here: `);
  const { directory } = made;
  rmSync(join(directory, "data", "moved.db"));
  expect(await again()).toMatchObject({ code: 1, stderr: expect.stringContaining("moved.db is not there") });
});
