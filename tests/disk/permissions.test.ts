import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { type TestPlatform, temporaryDirectory, testPlatform } from "../support/index.ts";
import { AS_NOBODY, attemptStart, canRunAsNobody, NOBODY_ID } from "../support/start-attempt.ts";

const CONFIG = `{
  databases: { shared: { tables: { notes: {} } } },
  storage: { buckets: { files: {} } },
  kv: { cache: {} },
  d1: { main: {} },
}`;
const READ_ONLY = 0o444;
const NO_WRITE = 0o555;

const isRestricted = canRunAsNobody();
if (!isRestricted) console.warn("no missing permission is tested: this process cannot run the server as somebody else");

describe.if(isRestricted)("without the right to write", () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await testPlatform({ config: CONFIG });
    expect(await platform.kill("SIGTERM")).toBe(0);
    chmodSync(dirname(platform.configFile), 0o755);
    chmodSync(platform.configFile, 0o644);
  });
  afterAll(() => platform.stop());

  /** A start by nobody on a copy that is nobody's, after `change`. */
  async function start(change: (dataDirectory: string) => void) {
    const parent = temporaryDirectory();
    const dataDirectory = join(parent, "data");
    cpSync(platform.dataDirectory, dataDirectory, { recursive: true });
    for (const path of [parent, dataDirectory, ...readdirSync(dataDirectory, { recursive: true }).map(String)]) {
      chownSync(path.startsWith("/") ? path : join(dataDirectory, path), NOBODY_ID, NOBODY_ID);
    }
    change(dataDirectory);
    const outcome = await attemptStart({ configFile: platform.configFile, dataDirectory, prefix: AS_NOBODY });
    // So that it can be removed by whoever runs the tests.
    for (const path of [parent, dataDirectory]) if (existsSync(path)) chmodSync(path, 0o755);
    return { ...outcome, dataDirectory };
  }

  test("[DB54] a directory that is not writable, or cannot be created, is named", async () => {
    const readOnly = await start((directory) => chmodSync(directory, NO_WRITE));
    expect([readOnly.hasStarted, readOnly.exitCode]).toEqual([false, 1]);
    expect(readOnly.stderr).toContain(`The data directory ${readOnly.dataDirectory} is not writable (EACCES): start`);
    const impossible = await start((directory) => {
      rmSync(directory, { recursive: true });
      chmodSync(dirname(directory), NO_WRITE);
    });
    expect([impossible.hasStarted, impossible.exitCode]).toEqual([false, 1]);
    expect(impossible.stderr).toContain(
      `Cannot create the data directory: EACCES: permission denied, mkdir '${impossible.dataDirectory}'`,
    );
  });

  test.each([
    ["system.db", READ_ONLY],
    ["system.db", 0],
    ["databases/shared.db", READ_ONLY],
    ["d1/main.db", READ_ONLY],
  ])("[DB54] %s with mode %o is refused by name", async (file, mode) => {
    const { hasStarted, exitCode, stderr, dataDirectory } = await start((directory) =>
      chmodSync(join(directory, file), mode),
    );
    expect([hasStarted, exitCode]).toEqual([false, 1]);
    expect(stderr).toContain(`Cannot open the database ${dataDirectory}/${file}: writing to it is not permitted`);
  });

  test("[DB54] the directories of databases and uploads are named too", async () => {
    const databases = await start((directory) => chmodSync(join(directory, "kv"), NO_WRITE));
    expect(databases.hasStarted).toBe(false);
    expect(databases.stderr).toContain(
      `Cannot open the database ${databases.dataDirectory}/kv/cache.db: it is read-only`,
    );
    const uploads = await start((directory) => chmodSync(join(directory, "storage/objects/incoming"), NO_WRITE));
    expect(uploads.hasStarted).toBe(false);
    expect(uploads.stderr).toContain(`permission denied, access '${uploads.dataDirectory}/storage/objects/incoming'`);
  });

  test("[DB54] with all permissions it starts", async () => {
    expect((await start(() => {})).hasStarted).toBe(true);
  });
});
