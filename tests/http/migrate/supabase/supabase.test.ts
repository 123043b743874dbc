import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { SQL } from "bun";
import { compiler } from "../../../../scripts/typescript.ts";
import type { JsonObject, JsonValue } from "../../../../src/kernel/json/json.ts";
import { type HttpClient, type TestPlatform, temporaryDirectory } from "../../../support/index.ts";
import type { Postgres } from "../../../support/postgres.ts";
import { runCommand } from "../../backup/backup-support.ts";
import { type Moved, migrate, started } from "../moved.ts";
import { dumpOf, IDS, PASSWORD, startSupabase, TASKS } from "./world.ts";

// A product in PostgreSQL, with the schemas of Supabase, and what is made of its dump: the same requests at both.

setDefaultTimeout(180_000);

/** A caller with its claims there, and its client here. */
interface Actor {
  name: string;
  claims: JsonObject | null;
  here: HttpClient;
}

let postgres: Postgres;
let sql: SQL;
let made: Moved;
let platform: TestPlatform;
let actors: Actor[];

const tables = "/api/db/shared/tables";
const KEYS: Readonly<Record<string, string>> = {
  ...{ profiles: "id::text", teams: "id::text", members: "team_id || '~' || user_id", tasks: "task_id::text" },
  ...{ notes: "note_id::text", open_table: "id::text", announcements: "id::text", slots: "id::text" },
};

async function movedFrom(dump: string, files: string): Promise<Moved> {
  const directory = join(temporaryDirectory(), "app");
  const { code, stderr } = await migrate(dump, "--into", directory, "--files", files);
  if (code !== 0) throw new Error(`platform migrate ended with ${code}: ${stderr}`);
  const read = (name: string): string => readFileSync(join(directory, name), "utf8");
  return { directory, config: read("platform.config.ts"), report: read("report.md") };
}

beforeAll(async () => {
  postgres = await startSupabase();
  sql = postgres.open();
  const { dump, files } = dumpOf("copy");
  made = await movedFrom(dump, files);
  const secrets = { GOOGLE_CLIENT_ID: "id", GOOGLE_CLIENT_SECRET: "secret" };
  platform = await started(made, secrets);
  const names = ["owner", "member", "stranger"] as const;
  actors = await Promise.all(
    names.map(async (name) => {
      const email = `${name}@example.com`;
      const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin", { email, password: PASSWORD });
      return { name, claims: { sub: IDS[name], email, role: "authenticated" }, here: platform.as(body.accessToken) };
    }),
  );
  actors.push({ name: "nobody", claims: null, here: platform });
});
afterAll(async () => {
  await platform?.stop();
  await postgres?.stop();
});

/** Asks PostgreSQL as a caller; nothing of it stays. null: it is refused. */
async function there(actor: Actor, statement: string): Promise<Record<string, unknown>[] | null> {
  let rows: Record<string, unknown>[] | null = null;
  const undone = new Error("undone");
  await sql
    .begin(async (tx) => {
      await tx.unsafe(`SET LOCAL ROLE ${actor.claims === null ? "anon" : "authenticated"}`);
      await tx`SELECT set_config('request.jwt.claims', ${JSON.stringify(actor.claims ?? { role: "anon" })}, true)`;
      rows = await tx.unsafe(statement);
      throw undone;
    })
    .catch((cause: unknown) => {
      if (cause !== undone) rows = null;
    });
  return rows;
}

const isOk = ({ status }: { status: number }): boolean => status >= 200 && status < 300;

test("[MG60] [MG63] every record is there, with values as JSON has them", async () => {
  const { body: task } = await platform.service.get<JsonObject>(`${tables}/tasks/${TASKS.ofOwner}`);
  expect(task).toEqual({
    ...{ id: TASKS.ofOwner, team_id: "1", author_id: IDS.owner, title: "of the owner", mood: "calm", level: 3 },
    ...{ price: 12.5, big: "9007199254740993", tags: ["a", "b c", 'd"e', null], watcher_ids: [IDS.stranger] },
    ...{ facts: { a: [1, null, { b: "c" }] }, due: "2024-02-29", due_at: "2024-05-06T04:00:00.000Z", locked: false },
  });
  const { body: team } = await platform.service.get<JsonObject>(`${tables}/teams/2`);
  expect(team).toEqual({
    id: "2",
    name: "Line\nbreak \\ ü",
    owner_id: IDS.stranger,
    created_at: "2024-05-06T06:00:00.000Z",
  });
  // Its account has no address, and is not moved.
  expect((await platform.service.get<JsonObject>(`${tables}/teams/4`)).body["owner_id"]).toBeNull();
  const { body: hidden } = await platform.service.get<JsonObject>(`${tables}/profiles_hidden/${IDS.owner}`);
  expect(hidden).toEqual({ id: IDS.owner, secret_note: "tab\there" });
  for (const [table, key] of Object.entries(KEYS)) {
    const [row] = await sql.unsafe(`SELECT array_agg(${key} ORDER BY ${key}) AS ids FROM public.${table}`);
    const { body } = await platform.service.get<{ items: JsonObject[] }>(`${tables}/${table}?limit=200`);
    expect([table, body.items.map(({ id }) => id).sort()]).toEqual([table, [...row.ids].sort()]);
  }
});

test("[MG61] everybody signs in with the password of before, and who is banned does not", async () => {
  for (const { name, claims } of actors) {
    if (claims === null) continue;
    const email = String(claims["email"]);
    expect([name, (await platform.post("/api/auth/signin", { email, password: PASSWORD })).status]).toEqual([
      name,
      200,
    ]);
    expect((await platform.post("/api/auth/signin", { email, password: "another one" })).status).toBe(401);
  }
  const banned = await platform.post("/api/auth/signin", { email: "banned@example.com", password: PASSWORD });
  expect(banned.status).toBeGreaterThanOrEqual(400);
  const { body } = await platform.service.get<JsonObject>(`/api/auth/admin/users/${IDS.owner}`);
  expect(body).toMatchObject({ displayName: "The Owner", emailVerified: true, createdAt: "2024-01-01T00:00:00.000Z" });
  expect(body["appMetadata"]).toEqual({ provider: "email" });
});

test("[MG62] [MG64] everybody sees what they saw before, or less where the report says so", async () => {
  const differences: string[] = [];
  let compared = 0;
  for (const [table, key] of Object.entries(KEYS)) {
    const { body: all } = await platform.service.get<{ items: { id: string }[] }>(`${tables}/${table}?limit=200`);
    for (const actor of actors) {
      const rows = await there(actor, `SELECT ${key} AS id FROM public.${table}`);
      const seen = new Set((rows ?? []).map(({ id }) => String(id)));
      compared += seen.size;
      const listed = await actor.here.get<{ items?: { id: string }[] }>(`${tables}/${table}?limit=200`);
      const here = new Set((listed.body.items ?? []).map(({ id }) => id));
      for (const { id } of all.items) {
        const got = isOk(await actor.here.get(`${tables}/${table}/${encodeURIComponent(id)}`));
        expect([actor.name, table, id, got]).toEqual([actor.name, table, id, here.has(id)]);
        if (here.has(id) !== seen.has(id)) differences.push(`${here.has(id) ? "+" : "-"} ${actor.name} ${table} ${id}`);
      }
    }
  }
  expect(compared).toBeGreaterThan(20);
  // A table without row-level security denies.
  expect(differences.sort()).toEqual(actors.map(({ name }) => `- ${name} open_table 1`).sort());
});

interface Attempt {
  table: string;
  what: string;
  statement: string;
  send: (here: HttpClient) => Promise<{ status: number }>;
}

const literal = (value: JsonValue): string => {
  if (value === null || typeof value === "number" || typeof value === "boolean") return String(value);
  return `'${String(value).replaceAll("'", "''")}'`;
};

function update(table: string, id: string, changes: JsonObject): Attempt {
  const set = Object.entries(changes).map(([name, value]) => `${name} = ${literal(value)}`);
  return {
    table,
    what: `update ${id.slice(-3)} ${JSON.stringify(changes)}`,
    // A client of PostgREST names the record, and so reads it.
    statement: `UPDATE public.${table} SET ${set.join(", ")} WHERE ${KEYS[table]} = '${id}' RETURNING 1`,
    send: async (here) => here.patch(`${tables}/${table}/${encodeURIComponent(id)}`, changes),
  };
}

function insert(table: string, record: JsonObject, id: string | null, column: string): Attempt {
  const all = id === null ? record : { ...record, [column]: id };
  return {
    table,
    what: `insert ${JSON.stringify(record)}`,
    statement: `INSERT INTO public.${table} (${Object.keys(all).join(", ")}) VALUES (${Object.values(all).map(literal).join(", ")})`,
    send: async (here) => here.post(`${tables}/${table}`, id === null ? record : { ...record, id }),
  };
}

function remove(table: string, id: string): Attempt {
  return {
    table,
    what: `delete ${id.slice(-3)}`,
    statement: `DELETE FROM public.${table} WHERE ${KEYS[table]} = '${id}' RETURNING 1`,
    send: async (here) => here.delete(`${tables}/${table}/${encodeURIComponent(id)}`),
  };
}

test("[MG62] [MG65] everybody writes what they wrote before, and nothing else", async () => {
  const everybody = Object.values(IDS);
  let next = 1;
  const attempts: Attempt[] = [
    ...Object.values(TASKS).flatMap((id) => [
      update("tasks", id, { title: "new" }),
      update("tasks", id, { mood: "angry" }),
      ...everybody.map((author) => update("tasks", id, { author_id: author })),
    ]),
    ...everybody.flatMap((owner) => ["1", "2", "3"].map((team) => update("teams", team, { owner_id: owner }))),
    ...everybody.flatMap((id) => [
      update("profiles", id, { username: `name ${id.slice(-1)}` }),
      update("profiles", id, { is_public: true }),
    ]),
    ...everybody.flatMap((author) => [
      ...["calm", "angry"].map((mood) =>
        insert("tasks", { team_id: "1", author_id: author, title: "made", mood }, crypto.randomUUID(), "task_id"),
      ),
    ]),
    ...everybody.flatMap((user) =>
      ["2", "3"].map((team) => insert("members", { team_id: team, user_id: user }, null, "")),
    ),
    ...everybody.map((owner) => insert("teams", { name: "made", owner_id: owner }, String(100 + next++), "id")),
    ...everybody.flatMap((id) =>
      ["stranger", "owner"].map((name) => insert("profiles", { email: `${name}@example.com` }, id, "id")),
    ),
    ...Object.values(TASKS).map((id) => insert("notes", { task_id: id, body: "made" }, crypto.randomUUID(), "note_id")),
    ...["201", "202", "203"].flatMap((digits) => {
      const id = `00000000-0000-4000-8000-000000000${digits}`;
      return [
        update("notes", id, { body: "new" }),
        update("notes", id, { task_id: TASKS.locked }),
        remove("notes", id),
      ];
    }),
    ...["2", "6"].map((id) => update("announcements", id, { body: "new" })),
    ...["1", "2", "3", "5", "6"].flatMap((id) => [
      update("slots", id, { low: 0 }),
      update("slots", id, { low: 9 }),
      update("slots", id, { confirmed_code: "a" }),
    ]),
    ...[1, 2, null].map((low) => insert("slots", { low, high: 1, code: "x" }, String(200 + next++), "id")),
    remove("teams", "2"),
    remove("tasks", TASKS.ofMember),
  ];
  const differences: string[] = [];
  let allowed = 0;
  for (const attempt of attempts) {
    for (const actor of actors) {
      const rows = await there(actor, attempt.statement);
      const isDone = rows !== null && (attempt.what.startsWith("insert") || rows.length > 0);
      const before = await platform.service.get<{ items: JsonObject[] }>(`${tables}/${attempt.table}?limit=200`);
      const answer = await attempt.send(actor.here);
      if (isOk(answer)) await undo(attempt.table, before.body.items);
      allowed += Number(isDone && isOk(answer));
      if (isDone !== isOk(answer))
        differences.push(
          `${isOk(answer) ? "+" : "-"} ${actor.name} ${attempt.table} ${attempt.what} (${answer.status})`,
        );
    }
  }
  expect(allowed).toBeGreaterThan(15);
  expect(differences.sort()).toEqual([]);
});

/** Puts a table back as it was. */
async function undo(table: string, before: JsonObject[]): Promise<void> {
  const { service } = platform;
  const known = new Map(before.map((record) => [record["id"], record]));
  const { body } = await service.get<{ items: JsonObject[] }>(`${tables}/${table}?limit=200`);
  for (const { id } of body.items) {
    if (!known.has(id)) await service.delete(`${tables}/${table}/${encodeURIComponent(String(id))}`);
  }
  for (const record of before) {
    const found = body.items.find(({ id }) => id === record["id"]);
    if (JSON.stringify(found) === JSON.stringify(record)) continue;
    const { id, ...values } = record;
    const path = `${tables}/${table}`;
    const answer =
      found === undefined
        ? await service.post(path, record)
        : await service.patch(`${path}/${encodeURIComponent(String(id))}`, values);
    if (!isOk(answer)) throw new Error(`${table} ${id} is not put back: ${JSON.stringify(answer.body)}`);
  }
}

test("[MG66] files are there, and their rules ask what the policies asked", async () => {
  const avatar = `/api/storage/avatars/${IDS.owner}/me.png`;
  const [owner, member, stranger, nobody] = actors.map(({ here }) => here);
  for (const { here } of actors) {
    const answer = await here.fetch(avatar);
    expect([answer.status, answer.headers.get("content-type"), await answer.text()]).toEqual([
      200,
      "image/png",
      "picture",
    ]);
  }
  const statuses = async (path: string) => {
    const clients = [owner, member, stranger, nobody];
    return Promise.all(clients.map(async (client) => (await client?.fetch(path))?.status));
  };
  expect(await statuses("/api/storage/papers/plan.txt")).toEqual([403, 200, 403, 401]);
  const upload = async (client: HttpClient | undefined, bucket: string, key: string) => {
    const form = new FormData();
    form.append("file", new Blob(["x"]));
    form.append("key", key);
    return (await client?.fetch(`/api/storage/${bucket}/upload`, { method: "POST", body: form }))?.status;
  };
  expect(await upload(member, "avatars", `${IDS.member}/a.png`)).toBe(201);
  expect(await upload(member, "avatars", `${IDS.owner}/a.png`)).toBe(403);
  expect(await upload(member, "avatars", IDS.member)).toBe(403);
  expect(await upload(member, "papers", "plan.txt")).toBe(403);
  expect(await upload(nobody, "avatars", `${IDS.owner}/a.png`)).toBe(401);
  expect(made.report).toContain("the file gone.txt, which is not in");
});

test("[MG60] the report compares everything, and names what was not moved", () => {
  for (const table of [
    "accounts | 4 | 4",
    "tasks | 4 | 4",
    "profiles_hidden | 3 | 3",
    "log | 2 | 2",
    "files | 2 | 2",
  ]) {
    expect(made.report).toContain(`| ${table} |`);
  }
  for (const text of [
    "the account 00000000-0000-4000-8000-00000000000e, which has no address",
    "CREATE VIEW public.task_titles",
    "public.is_admin",
    "lower(title)",
    'policy "Admins": public.is_admin()',
    "row-level security is off",
    "its name is none that a bucket can have here",
  ]) {
    expect(made.report).toContain(text);
  }
});

test("[MG5] the config passes check and TypeScript", async () => {
  const check = await runCommand(["check", "--config", join(made.directory, "platform.config.ts")]);
  expect([check.code, check.stderr]).toEqual([0, expect.not.stringContaining("error")]);
  await runCommand(["init", made.directory]);
  const types = Bun.spawnSync([...compiler(), "-p", join(made.directory, "tsconfig.json")]);
  expect([types.exitCode, String(types.stdout)]).toEqual([0, ""]);
});

test("[MG67] a dump with INSERTs gives the same config and records as one with COPY", async () => {
  const { dump, files } = dumpOf("inserts");
  const other = await movedFrom(dump, files);
  expect(other.config).toBe(made.config);
  const rows = (report: string) => report.split("\n").filter((line) => line.startsWith("| "));
  expect(rows(other.report)).toEqual(rows(made.report));
});

test("[MG67] a file that is no dump is refused, and a dump that ends early", async () => {
  const folder = temporaryDirectory();
  const { dump } = dumpOf("copy");
  const text = readFileSync(dump, "utf8");
  const broken: [string, string][] = [
    ["", "is empty"],
    ["SELECT 1;\n", "is no dump"],
    [text.slice(0, text.indexOf("COPY public.teams") + 200), "is not whole"],
  ];
  for (const [content, words] of broken) {
    writeFileSync(join(folder, "a.sql"), content);
    const ended = await migrate(join(folder, "a.sql"), "--into", join(folder, "app"));
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining(words)]);
    expect(existsSync(join(folder, "app"))).toBe(false);
  }
  mkdirSync(join(folder, "app"));
  writeFileSync(join(folder, "app", "mine"), "");
  expect((await migrate(dump, "--into", join(folder, "app"))).stderr).toContain("is not empty");
});

test.skipIf(Bun.which("pg_dump") === null)(
  "[MG68] a connection is dumped, and its password is in no message",
  async () => {
    const directory = join(temporaryDirectory(), "app");
    const ended = await migrate(postgres.url(), "--into", directory, "--files", dumpOf("copy").files);
    expect([ended.code, ended.stdout]).toEqual([0, ""]);
    const report = readFileSync(join(directory, "report.md"), "utf8");
    expect(report).toContain("| tasks | 4 | 4 |");
    const wrong = await migrate(postgres.url().replace("correct-horse", "wrong-horse"), "--plan");
    expect(wrong.code).toBe(1);
    for (const text of [report, ended.stderr, wrong.stderr, wrong.stdout])
      expect(text).not.toMatch(/(?:correct|wrong)-horse/);
  },
);
