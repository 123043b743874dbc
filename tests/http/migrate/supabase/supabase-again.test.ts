import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../../src/kernel/json/json.ts";
import { type TestPlatform, temporaryDirectory } from "../../../support/index.ts";
import { type Moved, migrate, started } from "../moved.ts";
import { dumpOf, IDS, PASSWORD, TASKS } from "./world.ts";

// A dump, a rehearsal on what was made of it, and a later dump with other rows and files.

setDefaultTimeout(120_000);

const tables = "/api/db/shared/tables";
const SECRETS = { GOOGLE_CLIENT_ID: "id", GOOGLE_CLIENT_SECRET: "secret" };
const STRANGER_HASH = Bun.password.hashSync("a later password", { algorithm: "bcrypt", cost: 4 });
const NOTE = "00000000-0000-4000-8000-000000000203";
let made: Moved;
let platform: TestPlatform;
let report: string;

beforeAll(async () => {
  const directory = join(temporaryDirectory(), "app");
  const { dump, files } = dumpOf("copy");
  const run = async (...more: string[]) => {
    const { code, stderr } = await migrate(dump, "--into", directory, "--files", files, ...more);
    expect([code, stderr]).toEqual([0, expect.stringContaining("read report.md")]);
    return readFileSync(join(directory, "report.md"), "utf8");
  };
  report = await run();
  made = { directory, config: readFileSync(join(directory, "platform.config.ts"), "utf8"), report };
  platform = await started(made, SECRETS);
  const { service } = platform;
  expect((await service.patch(`${tables}/tasks/${TASKS.ofMember}`, { title: "changed here" })).status).toBe(200);
  expect((await service.delete(`${tables}/teams/4`)).status).toBe(200);
  expect((await service.delete(`${tables}/tasks/${TASKS.locked}`)).status).toBe(200);
  const form = new FormData();
  form.append("file", new Blob(["of here"]), "here.txt");
  form.append("key", "here.txt");
  expect((await service.fetch("/api/storage/papers/upload", { method: "POST", body: form })).status).toBe(201);
  await platform.kill("SIGTERM");

  const changes: [before: string, after: string][] = [
    ["\tof the owner\t", "\tchanged there\t"],
    ["\tof the member\t", "\tchanged there too\t"],
    ["\tmember@example.com\tt\tb's", "\tmember@example.com\tt\tanother secret"],
    ["1\t2\n\\.", "1\t3\n2\t4\n\\."],
    ["6\t1\t5\ta\t\\N\n", ""],
    // A team and a task that were deleted here are referred to.
    ["203\t\\N\ton none", `203\t${TASKS.locked}\ton none`],
    ["\t3\t\\N\tof nobody", "\t4\t\\N\tof nobody"],
  ];
  let text = readFileSync(dump, "utf8");
  for (const [before, after] of changes) {
    expect(text).toContain(before);
    text = text.replace(before, after);
  }
  const ofStranger = text.split("\n").find((line) => line.includes("\tstranger@example.com\t")) ?? "";
  const hash = /\$2a\$04\$[\w./]+/.exec(ofStranger)?.[0] ?? "";
  text = text.replace(
    ofStranger,
    ofStranger.replace(hash, () => STRANGER_HASH),
  );
  writeFileSync(dump, text);
  writeFileSync(join(files, "papers", "plan.txt"), "a later plan");
  rmSync(join(files, "avatars"), { recursive: true });
  report = await run("--again");
  platform = await started(made, SECRETS);
});
afterAll(() => platform?.stop());

const record = async (table: string, id: string): Promise<JsonObject> =>
  (await platform.service.get<JsonObject>(`${tables}/${table}/${id}`)).body;

test("[MG74] a later dump brings new, changed and deleted rows, hidden columns and passwords", async () => {
  expect(await record("tasks", TASKS.ofOwner)).toMatchObject({ title: "changed there", price: 12.5 });
  expect(await record("profiles_hidden", IDS.member)).toMatchObject({ secret_note: "another secret" });
  expect([await record("open_table", "1"), await record("open_table", "2")]).toMatchObject([{ n: 3 }, { n: 4 }]);
  expect((await platform.service.get(`${tables}/slots/6`)).status).toBe(404);
  const signIn = async (name: string, password: string) =>
    (await platform.post("/api/auth/signin", { email: `${name}@example.com`, password })).status;
  expect([await signIn("stranger", "a later password"), await signIn("stranger", PASSWORD)]).toEqual([200, 401]);
  expect(await signIn("owner", PASSWORD)).toBe(200);
});

test("[MG74] what was changed or deleted here stays, and a reference to it is null", async () => {
  expect(await record("tasks", TASKS.ofMember)).toMatchObject({ title: "changed here" });
  expect((await platform.service.get(`${tables}/teams/4`)).status).toBe(404);
  // The field takes no null, so this record stays as it is.
  expect(await record("tasks", TASKS.ofNobody)).toMatchObject({ team_id: "3" });
  expect(await record("notes", NOTE)).toMatchObject({ task_id: null });
  expect(report).toContain(`the record ${TASKS.ofNobody}, which does not fit here`);
  expect(report).toContain(`- **tasks**, changed here, and other there than it was: ${TASKS.ofMember}`);
  expect(report).toContain("- **teams**, deleted here: 4");
});

test("[MG74] files of buckets follow, with their owners, and those of here stay", async () => {
  const text = async (key: string) => {
    const answer = await platform.service.fetch(`/api/storage/${key}`);
    return [answer.status, answer.status === 200 ? await answer.text() : ""];
  };
  expect(await text("papers/plan.txt")).toEqual([200, "a later plan"]);
  expect(await text(`avatars/${IDS.owner}/me.png`)).toEqual([404, ""]);
  expect(await text("papers/here.txt")).toEqual([200, "of here"]);
  const { body } = await platform.post<{ accessToken: string }>("/api/auth/signin", {
    email: "member@example.com",
    password: PASSWORD,
  });
  // A policy of there: whose file it is.
  expect((await platform.as(body.accessToken).fetch("/api/storage/papers/plan.txt")).status).toBe(200);
  expect(report).toContain("| files of buckets | 0 | 1 | 1 |");
  expect(report).toContain("- **files of buckets**, made here: papers/here.txt");
});
