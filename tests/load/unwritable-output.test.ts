import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownChild } from "../support/children.ts";
import { platformCommand, temporaryDirectory, testEnvironment, until } from "../support/index.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { freePorts } from "../support/tls/acme.ts";

// What a server and the code of its config print never holds it up, wherever it goes.

const isLinux = process.platform === "linux";

/** Together more than a pipe holds and the server keeps. */
const PRINTED_CHARACTERS = 64 * 1024;
const PRINTED_LINES = 40;

const CONFIG = `
const line = "x".repeat(${PRINTED_CHARACTERS});
export default { server: { accessLog: true }, routes: (app) => app
  .get("/flood", () => {
    for (let count = 0; count < ${PRINTED_LINES}; count++) {
      console.log(line);
      console.error(line);
    }
    return "printed";
  }, { access: true })
  .get("/say", () => {
    console.log("%s says", "somebody", { hello: ["world"] });
    console.warn("a warning of somebody");
    return "said";
  }, { access: true }) };`;

/** Config whose rule prints in the process that answers a list. */
const WITH_WORKERS = CONFIG.replace(
  "server: { accessLog: true },",
  `server: { accessLog: true, workers: 2 }, databases: { shared: { tables: { notes: { access: {
    read: () => { console.log(line); console.error(line); return true; } } } } } },`,
);

interface Served {
  get(path: string): Promise<number>;
  /** Ends it with SIGTERM. Gives the exit code. */
  stop(): Promise<number>;
}

/** A server whose outputs the shell redirects. */
async function serve(redirection: string, text = CONFIG): Promise<Served> {
  const directory = temporaryDirectory();
  const config = join(directory, "platform.config.ts");
  writeFileSync(config, text);
  const [port = 0] = freePorts(1);
  const args = ["start", "--config", config, "--data", join(directory, "data"), "--port", `${port}`];
  const shell = ["bash", "-c", `exec "$@" ${redirection}`, "bash"];
  const child = Bun.spawn([...shell, ...platformCommand(), ...args], {
    ...{ env: testEnvironment(), stdin: "ignore", stdout: "ignore", stderr: "ignore" },
  });
  ownChild(child);
  const get = async (path: string): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: "close" } });
    await answer.text();
    return answer.status;
  };
  await until("the server answers", async () => (await get("/api/health").catch(() => null)) === 200);
  return {
    get,
    stop() {
      child.kill("SIGTERM");
      return child.exited;
    },
  };
}

const OUTPUTS: readonly [what: string, redirection: string][] = [
  ["a full disk", "/dev/full"],
  ["a pipe that nobody reads", ">(exec sleep 600)"],
  ["a closed pipe", ">(exec true)"],
  ["nothing", "&-"],
];

for (const [what, target] of OUTPUTS) {
  for (const [name, descriptor] of [
    ["output", 1],
    ["error", 2],
  ] as const) {
    test.if(isLinux)(`[CL413] a server whose standard ${name} is ${what} answers and stops`, async () => {
      const server = await serve(target === "&-" ? `${descriptor}>&-` : `${descriptor}> ${target}`);
      for (const path of [
        "/api/functions/say",
        "/api/functions/flood",
        "/missing",
        "/api/functions/flood",
        "/api/functions/say",
      ]) {
        expect(await server.get(path)).toBe(path === "/missing" ? 404 : 200);
        expect(await server.get("/api/health")).toBe(200);
      }
      expect(await server.stop()).toBe(0);
    });
  }
}

test.if(isLinux)("[CL413] workers whose output is a full disk answer, and stop with their server", async () => {
  const server = await serve("> /dev/full 2>&1", WITH_WORKERS);
  // Each on a connection of its own, which the system gives to one of the processes.
  for (let count = 0; count < 60; count++) expect(await server.get("/api/db/shared/tables/notes")).toBe(200);
  expect(await server.get("/api/health")).toBe(200);
  expect(await server.stop()).toBe(0);
});

const disk = isLinux ? mountSmallDisk(1) : null;
afterAll(() => disk?.unmount());

test.if(disk !== null)("[CL413] a log on a disk that was full for a while goes on, and says what is lost", async () => {
  if (disk === null) throw new Error("there is no disk");
  const log = join(disk.directory, "log");
  const server = await serve(`1>/dev/null 2>>"${log}"`);
  const lines = (): string[] => readFileSync(log, "utf8").split("\n");
  disk.fill();
  for (let count = 0; count < 20; count++) expect(await server.get(`/missing-${count}-${"x".repeat(1_000)}`)).toBe(404);
  disk.free();
  await server.get("/api/functions/say");
  await until("the log says what is lost", () => lines().some((line) => line.includes("lines of the log are lost")));
  expect(await server.stop()).toBe(0);
  const lost = lines().find((line) => line.includes("lines of the log are lost")) ?? "";
  expect(JSON.parse(lost).properties.lines).toBeGreaterThan(10);
  // What a full disk has cut stands on a line of its own.
  expect(lines().filter((line) => line === "a warning of somebody")).toHaveLength(1);
});

test("[CL413] what a config prints is written as console writes it", async () => {
  const files = temporaryDirectory();
  const [output, errors] = [join(files, "output"), join(files, "errors")];
  const server = await serve(`1>${output} 2>${errors}`);
  await server.get("/api/functions/say");
  expect(await server.stop()).toBe(0);
  expect(readFileSync(output, "utf8")).toEndWith("\nsomebody says { hello: [ 'world' ] }\n");
  expect(readFileSync(errors, "utf8")).toContain("\na warning of somebody\n");
});
