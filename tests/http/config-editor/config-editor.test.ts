import { expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { JsonValue } from "../../../src/kernel/json/json.ts";
import { testPlatform } from "../../support/index.ts";
import { editedServer } from "./editing.ts";

const CONFIG = `import { defineConfig } from "platform";

export default defineConfig({
  serviceKeys: { limited: { key: "a-key-of-at-least-32-characters-123", scopes: ["*:*:*:*"] } },
  databases: {
    shared: {
      // Kept as it is.
      tables: { notes: { schema: { title: { type: "string" }, text: { type: "text" } }, access: { read: true, insert: true } } },
    },
  },
});
`.trim();

const NOTES = { namespace: "shared", table: "notes" };
const due = { do: "addField", ...NOTES, field: "due", spec: { type: "date" } };

test("[CE1] [CE2] [CE6] only the root key reads the text and edits it, and start writes nothing", async () => {
  const platform = await testPlatform({ config: CONFIG });
  const limited = platform.withKey("a-key-of-at-least-32-characters-123");
  const ways: [method: "GET" | "POST", path: string, body?: JsonValue][] = [
    ["GET", "/api/admin/config/source"],
    ["POST", "/api/admin/config/edits", { edits: [due] }],
    ["POST", "/api/admin/config/undo"],
  ];
  for (const [method, path, body] of ways) {
    for (const [caller, status] of [
      [platform, 401],
      [limited, 403],
    ] as const) {
      const answer = await (method === "GET" ? caller.get(path) : caller.post(path, body));
      expect([path, answer.status]).toEqual([path, status]);
    }
  }
  const { body: shown } = await platform.service.get<{ revision: string }>("/api/admin/config/source");
  expect(shown).toMatchObject({
    file: platform.configFile,
    source: CONFIG,
    writable: false,
    undoable: 0,
    putBack: null,
  });
  const preview = await platform.service.post<{ diff: string }>("/api/admin/config/edits", {
    edits: [due],
    revision: shown.revision,
  });
  expect(preview.status).toBe(200);
  expect(preview.body).toMatchObject({ data: null, migration: null, problems: [], warnings: [] });
  expect(preview.body.diff).toMatch(/^\+ +due: \{ type: "date" \},$/m);
  const written = await platform.service.post("/api/admin/config/edits", { edits: [due], write: true });
  expect(written.status).toBe(403);
  expect((await platform.service.post("/api/admin/config/undo")).status).toBe(403);
  expect(readFileSync(platform.configFile, "utf8")).toBe(CONFIG);
  await platform.stop();
});

test("[CE3] [CE5] [CE6] [CE17] a written edit restarts dev, keeps mode and link, and is audited without the text", async () => {
  const server = await editedServer(CONFIG);
  const file = server.platform.configFile;
  const real = join(dirname(file), "real.config.ts");
  renameSync(file, real);
  symlinkSync(real, file);
  chmodSync(real, 0o640);
  const before = await server.edit([due]);
  expect(before.body).toMatchObject({ problems: [], data: { files: 1, unfit: 0, notes: [] } });
  expect(server.text()).toBe(CONFIG);
  expect((await server.edit([due], { write: true })).status).toBe(200);
  await server.started(2);
  expect(server.text()).toBe(before.body.source);
  expect([statSync(real).mode & 0o777, readFileSync(real, "utf8")]).toEqual([0o640, before.body.source]);
  const inserted = await server.request("POST", "/api/db/shared/tables/notes", {
    title: "a",
    due: "2024-05-06",
  });
  expect(inserted.body).toMatchObject({ due: "2024-05-06" });
  const { body: log } = await server.request<{ entries: object[] }>("GET", "/api/admin/audit?action=config");
  expect(log.entries).toMatchObject([{ action: "config.edit", target: "config", after: { edits: [due] } }]);
  expect(readdirSync(dirname(file)).filter((name) => name.includes("preview"))).toEqual([]);
  await server.platform.stop();
});

test("[CE17] an edit that could not be written is not in the audit log, and changes nothing", async () => {
  const server = await editedServer(CONFIG);
  const inTheWay = join(server.platform.dataDirectory, "config-edits.json");
  mkdirSync(inTheWay);
  expect((await server.edit([due], { write: true })).status).toBe(500);
  expect(server.text()).toBe(CONFIG);
  const entries = async () =>
    (await server.request<{ entries: object[] }>("GET", "/api/admin/audit?action=config")).body.entries;
  expect(await entries()).toEqual([]);
  rmdirSync(inTheWay);
  expect((await server.edit([due], { write: true })).status).toBe(200);
  await server.started(2);
  expect(await entries()).toMatchObject([{ action: "config.edit" }]);
  await server.platform.stop();
});

test("[CE6] an edit that does not hold, or that the records do not fit, is shown, and never written", async () => {
  const server = await editedServer(CONFIG);
  await server.request("POST", "/api/db/shared/tables/notes", { title: "long title" });
  const wrong: [edit: object, words: string][] = [
    [{ do: "addField", ...NOTES, field: "topic", spec: { references: "nowhere" } }, "nowhere"],
    [{ do: "setField", ...NOTES, field: "title", changes: { max: 3 } }, "1 records have another value"],
    [{ do: "addField", ...NOTES, field: "owner", spec: { type: "string", required: true } }, "1 records without it"],
    [{ do: "setRule", ...NOTES, rule: "read", source: "(auth, note) => note.titel === 'x'" }, "titel"],
  ];
  for (const [edit, words] of wrong) {
    const preview = await server.edit([edit]);
    expect([preview.status, JSON.stringify(preview.body.problems)]).toEqual([200, expect.stringContaining(words)]);
    const written = await server.edit([edit], { write: true });
    expect([written.status, written.body]).toEqual([400, preview.body]);
  }
  expect(server.text()).toBe(CONFIG);
  await server.platform.stop();
});

test("[CE5] a rule that ends its process, or never returns, is a problem, and the server goes on", async () => {
  const server = await editedServer(CONFIG);
  const rule = (source: string) => ({ do: "setRule", ...NOTES, rule: "read", source });
  const ended = await server.edit([rule("() => process.exit(3)")]);
  expect(ended.body.problems).toEqual([{ path: "", message: "the config ended without an answer" }]);
  const printing = await server.edit([rule("() => { for (;;) console.log('x'.repeat(100_000)); }")]);
  expect(printing.body.problems).toEqual([{ path: "", message: "the config is not loaded after 20000 ms" }]);
  const endless = await server.edit([rule("() => { while (true); }")]);
  expect(endless.body.problems).toEqual([{ path: "", message: "the config is not loaded after 20000 ms" }]);
  expect((await server.request("GET", "/api/health")).status).toBe(200);
  await server.platform.stop();
}, 90_000);

test("[CE5] what a killed server has left of a preview is removed at the next start", async () => {
  const server = await editedServer(CONFIG);
  const folder = dirname(server.platform.configFile);
  const left = join(folder, ".platform.config.1-1.preview.ts");
  writeFileSync(left, CONFIG);
  writeFileSync(join(folder, ".platform.config.mine.ts"), "");
  const unwritten = `${server.platform.configFile}.1.new`;
  writeFileSync(unwritten, CONFIG);
  writeFileSync(join(folder, "mine.1.new"), "");
  await server.edit([due], { write: true });
  await server.started(2);
  expect(readdirSync(folder).filter((name) => name.startsWith("."))).toEqual([".platform.config.mine.ts"]);
  expect(readdirSync(folder).filter((name) => name.endsWith(".new"))).toEqual(["mine.1.new"]);
  await server.platform.stop();
});

test("[CE7] [CE8] an edit for another revision is 409, and one that is wrong is 400 and writes none of the others", async () => {
  const server = await editedServer(CONFIG);
  const shown = await server.source();
  const stale = await server.edit([due], { revision: "0".repeat(64), write: true });
  expect(stale.status).toBe(409);
  const refused = await server.edit([due, { ...due, field: "title" }], { revision: shown.revision, write: true });
  expect(refused).toMatchObject({
    status: 400,
    body: {
      data: {
        "edits.1.field": { code: "not_unique", message: 'databases.shared.tables.notes has a field "title" already' },
      },
    },
  });
  for (const edits of [[], [{ do: "drop" }], [{ do: "addTable", namespace: "shared" }], [{ ...due, more: 1 }]]) {
    expect((await server.edit(edits)).status).toBe(400);
  }
  expect(server.text()).toBe(CONFIG);
  await server.platform.stop();
});

test("[CE18] writes are undone one after another; an added column goes unless it has values", async () => {
  const server = await editedServer(CONFIG);
  await server.request("POST", "/api/db/shared/tables/notes", { title: "a" });
  const write = async (edit: object, starts: number) => {
    expect((await server.edit([edit], { write: true })).status).toBe(200);
    await server.started(starts);
  };
  await write(due, 2);
  await write({ do: "addField", ...NOTES, field: "tags", spec: { type: "references", references: "notes" } }, 3);
  expect((await server.source()).undoable).toBe(2);
  expect((await server.undo()).status).toBe(200);
  await server.started(4);
  expect(server.text()).toContain("due: ");
  const { body: record } = await server.request<{ id: string }>("POST", "/api/db/shared/tables/notes", {
    due: "2024-05-06",
  });
  const lost = await server.undo();
  expect([lost.status, lost.body.message]).toEqual([409, expect.stringContaining("notes.due: is no longer declared")]);
  await server.request("PATCH", `/api/db/shared/tables/notes/${record.id}`, { due: null });
  expect((await server.undo()).status).toBe(200);
  await server.started(5);
  expect(server.text()).toBe(CONFIG);
  const { body: none } = await server.undo();
  expect(none).toMatchObject({ code: 409, message: "There is no write to undo" });
  const { body: list } = await server.request<{ items: object[] }>("GET", "/api/db/shared/tables/notes");
  expect(list.items.map((item: object) => "due" in item)).toEqual([false, false]);
  await server.platform.stop();
});

test("[CE18] after a migration, and after a change of the file, nothing is undone", async () => {
  const server = await editedServer(CONFIG);
  await server.request("POST", "/api/db/shared/tables/notes", { title: "a", text: "b" });
  await server.edit([{ do: "removeField", ...NOTES, field: "text" }], { write: true });
  await server.started(2);
  const { body: list } = await server.request<{ items: object[] }>("GET", "/api/db/shared/tables/notes");
  expect(Object.keys(list.items[0] ?? {})).not.toContain("text");
  const migrated = await server.undo();
  expect([migrated.status, migrated.body.message]).toEqual([409, expect.stringContaining('DROP COLUMN "text"')]);
  await server.edit([due], { write: true });
  await server.started(3);
  writeFileSync(server.platform.configFile, `${server.text()}// mine\n`);
  await server.started(4);
  expect((await server.undo()).body.message).toContain("has changed meanwhile");
  await server.platform.stop();
});

test("[CE19] a text with which the server does not start is put back, with the reason", async () => {
  const config = CONFIG.replace(
    "export default",
    `import { readFileSync } from "node:fs";
const isServer = process.argv.includes("start");
if (isServer && readFileSync(import.meta.path, "utf8").includes("due" + ":")) throw new Error("no luck");

export default`,
  );
  const server = await editedServer(config);
  expect((await server.edit([due], { write: true })).status).toBe(200);
  await server.started(2);
  expect(server.text()).toBe(config);
  const shown = await server.source();
  const putBack = { at: expect.any(String), reason: expect.stringContaining("no luck") };
  expect(shown).toMatchObject({ undoable: 0, putBack });
  await server.platform.stop();
});

test("[CE10] [CE11] what is added has no access, and fields of the table of users are edited too", async () => {
  const people = CONFIG.replace(
    "databases:",
    'auth: { users: { in: "shared", schema: { bio: { type: "text" } } } },\n  databases:',
  );
  const server = await editedServer(people);
  const edits = [
    { do: "addTable", namespace: "shared", table: "tasks" },
    { do: "addBucket", bucket: "pictures" },
    { do: "addField", namespace: "shared", table: "users", field: "city", spec: { type: "string" } },
  ];
  expect((await server.edit(edits, { write: true })).status).toBe(200);
  await server.started(2);
  expect(server.text()).toContain('city: { type: "string" }');
  expect((await server.request("GET", "/api/db/shared/tables/tasks")).status).toBe(200);
  for (const path of ["/api/db/shared/tables/tasks", "/api/storage/pictures"]) {
    expect((await fetch(`${server.address()}${path}`)).status).toBe(401);
  }
  await server.platform.stop();
});

test("[CE20] beyond ten requests that wait, edits are 503, and a config beyond 256 KiB is 409", async () => {
  const server = await editedServer(CONFIG);
  const answers = await Promise.all(Array.from({ length: 15 }, () => server.edit([due])));
  const statuses = answers.map(({ status }) => status).toSorted((one, other) => one - other);
  expect(statuses).toEqual([...Array(10).fill(200), ...Array(5).fill(503)]);
  writeFileSync(server.platform.configFile, `${CONFIG}\n// ${"x".repeat(256 * 1024)}`);
  await server.started(2);
  const { status, body } = await server.edit([due]);
  expect([status, body.message]).toEqual([409, expect.stringContaining("is edited up to 262144")]);
  await server.platform.stop();
});

test("[CE22] TypeScript beside the config is asked, and its new faults are problems", async () => {
  const wrong = 'const ofBefore: number = "no number";\n';
  const dev = await editedServer(CONFIG.replace("export default", `${wrong}export default`));
  const directory = dirname(dev.platform.configFile);
  const declarations = join(import.meta.dir, "../../../src/server/cli/starter/platform-declarations.txt");
  writeFileSync(join(directory, "platform.d.ts"), readFileSync(declarations));
  const rule = (source: string) => [{ do: "setRule", ...NOTES, rule: "update", source }];
  const nullable = rule('(auth) => auth.role === "editor"');
  expect((await dev.edit(nullable)).body.problems).toEqual([]);
  mkdirSync(join(directory, "node_modules"), { recursive: true });
  const compiler = dirname(Bun.resolveSync("typescript/package.json", import.meta.dir));
  symlinkSync(compiler, join(directory, "node_modules/typescript"));
  const { problems } = (await dev.edit(nullable)).body;
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^line \d+: 'auth' is possibly 'null'\. \(TS18047\)$/),
  ]);
  expect((await dev.edit(nullable, { write: true })).status).toBe(400);
  expect(dev.text()).not.toContain("editor");
  const held = await dev.edit(rule('(auth) => auth?.role === "editor"'), { write: true });
  expect([held.status, held.body.problems]).toEqual([200, []]);
  await dev.started(2);
  expect(readdirSync(directory).filter((name) => name.includes(".preview"))).toEqual([]);
  await dev.platform.stop();
});
