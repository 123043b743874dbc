import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  platformCommand,
  type TestPlatform,
  temporaryDirectory,
  testEnvironment,
  testPlatform,
} from "../../support/index.ts";

setDefaultTimeout(60_000);

const CONFIG = `{ api: { schemaEndpoint: "authenticated" }, databases: { shared: { tables: { films: { schema: {
  title: { type: "string", required: true }, year: { type: "integer" },
} } } } } }`;

let platform: TestPlatform;
const folder = temporaryDirectory();
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(() => platform?.stop());

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

async function run(command: readonly string[], { input = "", key = platform.serviceKey } = {}): Promise<Ended> {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: { ...testEnvironment(), PLATFORM_SERVICE_KEY: key },
    stdin: new Blob([input]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

const api = (args: readonly string[], given = {}) =>
  run([...platformCommand(), "api", ...args, "--url", platform.url], given);

test("[CL495] requests with bodies of an argument, a file and standard input, and with a query", async () => {
  const path = "db/shared/tables/films";
  const inserted = await api(["post", path, '{"id":"heat","title":"Heat","year":1995}']);
  expect([inserted.code, JSON.parse(inserted.stdout)]).toMatchObject([0, { id: "heat", year: 1995 }]);
  writeFileSync(join(folder, "film.json"), '{"id":"up","title":"Up & away","year":2009}');
  expect((await api(["POST", path, "@film.json"])).code).toBe(0);
  expect((await api(["PATCH", `/api/${path}/up`, "-"], { input: '{"year":2010}' })).code).toBe(0);
  const filter = 'filter=[["title","==","Up & away"]]';
  const listed = await api(["GET", `${path}?limit=5`, "--query", filter, "--query", "fields=year"]);
  expect([listed.code, listed.stdout.endsWith("}\n")]).toEqual([0, true]);
  expect(JSON.parse(listed.stdout)).toMatchObject({ items: [{ id: "up", year: 2010 }] });
  expect(await api(["DELETE", `${path}/heat`])).toMatchObject({ code: 0, stderr: "" });
});

test("[CL495] what the server refuses ends with 1 and its message, and wrong usage with 2", async () => {
  const refused = await api(["GET", "db/shared/tables/films/none"]);
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, "", expect.stringContaining("platform: 404 {")]);
  expect((await api(["GET", "db/shared/tables/films"], { key: "wrong" })).stderr).toContain("platform: 401");
  const wrong: [args: string[], words: string][] = [
    [["FETCH", "health"], 'METHOD must be one of GET, POST, PUT, PATCH, DELETE, got "FETCH"'],
    [["GET"], "PATH is missing"],
    [["POST", "db/shared/tables/films", "{"], "BODY must be JSON, @FILE or -"],
    [["POST", "db/shared/tables/films", "@missing.json"], "BODY must be JSON, @FILE or -"],
    [["GET", "health", "--query", "=x"], '--query must be NAME=VALUE, got "=x"'],
  ];
  for (const [args, words] of wrong) {
    const ended = await api(args);
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(words)]);
  }
});

test.skipIf(Bun.which("bash") === null)("[CL496] bash completes methods and the server's paths", async () => {
  const command = platformCommand()
    .map((word) => `'${word}'`)
    .join(" ");
  const completed = async (words: readonly string[]): Promise<string[]> => {
    const script = `platform() { ${command} "$@" ${words.length > 3 ? `--url ${platform.url}` : ""}; }
      source <(${command} api --completion)
      COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _platform
      printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { code, stdout, stderr } = await run(["bash", "-c", script]);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout.split("\n").filter((line) => line !== "");
  };
  expect(await completed(["platform", "api", "P"])).toEqual(["POST", "PUT", "PATCH"]);
  expect(await completed(["platform", "api", "GET", "db/shared/tables/films"])).toContain(
    "db/shared/tables/films/count",
  );
  expect(await completed(["platform", "api", "DELETE", "/api/db/shared/tables/f"])).toContain(
    "/api/db/shared/tables/films/",
  );
  expect(await completed(["platform", "start", "P"])).toEqual([]);
});
