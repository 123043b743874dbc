import { afterAll, beforeAll, expect, test } from "bun:test";
import { SERVICE_KEY, type TestPlatform, testPlatform } from "../../support/index.ts";
import { runCommand } from "../backup/backup-support.ts";

const notes = "/api/db/shared/tables/notes";
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({
    config: `{
      databases: {
        shared: { tables: { notes: {} } },
        team: { instance: true, access: { open: true }, tables: { notes: {} } },
      },
      kv: { cache: {} },
    }`,
  });
  for (let at = 0; at < 250; at++) await platform.service.post(notes, { id: `n${at}` });
  await platform.service.post("/api/kv/cache", { action: "set", key: "theme", value: 1 });
});
afterAll(() => platform.stop());

const printed = async (...args: string[]): Promise<{ action: string; target: string }[]> => {
  const { code, stdout, stderr } = await runCommand(["audit", ...args]);
  if (code !== 0) throw new Error(stderr);
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
};

test("[AL10] of a running server by its address, of its directory beside it, and of the directory alone", async () => {
  const remote = await printed("--url", platform.url, "--key", SERVICE_KEY);
  expect(remote).toHaveLength(251);
  expect([remote[0]?.target, remote.at(-1)?.target]).toEqual(["kv/cache/theme", "db/shared/notes/n0"]);
  const data = ["--data", platform.dataDirectory];
  expect(await printed(...data)).toEqual(remote);
  await platform.kill("SIGTERM");
  expect(await printed(...data)).toEqual(remote);
  expect(await printed(...data, "--action", "kv")).toHaveLength(1);
  expect(await printed(...data, "--target", "db/shared/notes/n7")).toHaveLength(1);
  expect(await printed(...data, "--actor", "nobody")).toEqual([]);
  expect(await printed(...data, "--after", "2999-01-01")).toEqual([]);
  await platform.restart();
});

test("[AL10] after SIGKILL the directory has each entry once, also those that the log has not taken", async () => {
  const count = 40;
  const writes = Array.from({ length: count }, (_, at) =>
    platform.service.post(`/api/db/team/i${at % 4}/tables/notes`, { id: `t${at}` }),
  );
  await Promise.all(writes);
  await platform.kill("SIGKILL");
  const targets = (await printed("--data", platform.dataDirectory, "--target", "db/team")).map(({ target }) => target);
  expect(new Set(targets).size).toBe(count);
  expect(targets).toHaveLength(count);
  await platform.restart();
});

test("[AL10] beside a server that writes, and that makes and deletes instances, the directory has each entry once", async () => {
  const acknowledged: string[] = [];
  let isRead = false;
  const writing = async (lane: number): Promise<void> => {
    for (let at = 0; !isRead; at++) {
      const instance = `busy-${lane}-${at}`;
      await platform.service.post(`/api/db/team/${instance}/tables/notes`, { id: "a" });
      acknowledged.push(`db/team/${instance}/notes/a`);
      await platform.service.post(notes, { id: instance });
      acknowledged.push(`db/shared/notes/${instance}`);
      if (at % 2 === 1) await platform.service.delete(`/api/admin/instances/team/${instance}`);
    }
  };
  const lanes = [0, 1, 2, 3].map(writing);
  try {
    for (let round = 0; round < 15; round++) {
      const before = [...acknowledged];
      const targets = (await printed("--data", platform.dataDirectory)).map(
        ({ action, target }) => `${action} ${target}`,
      );
      expect(targets).toHaveLength(new Set(targets).size);
      const present = new Set(targets);
      expect(before.filter((target) => !present.has(`record.insert ${target}`))).toEqual([]);
    }
  } finally {
    isRead = true;
    await Promise.all(lanes);
  }
}, 60_000);

test("[AL10] wrong options and refusals", async () => {
  const run = async (...args: string[]) => {
    const { code, stderr } = await runCommand(["audit", ...args]);
    return [code, stderr];
  };
  expect(await run("--data", "./nowhere")).toEqual([1, expect.stringContaining("no data directory")]);
  expect(await run("--key", "x")).toEqual([2, expect.stringContaining("--key is for --url")]);
  expect(await run("--data", platform.dataDirectory, "--after", "soon")).toEqual([
    2,
    expect.stringContaining("--after"),
  ]);
  expect(await run("--url", platform.url, "--key", "a key that is wrong 0123456789")).toEqual([
    1,
    expect.stringContaining("401"),
  ]);
});
