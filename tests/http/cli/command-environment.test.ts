import { expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { platformCommand, temporaryDirectory, testEnvironment, until } from "../../support/index.ts";

// Options that come from the environment, and the form of the log.

const CONFIG = "export default { server: { accessLog: true } };";

/** Runs `platform` in an empty directory with its config in `elsewhere/`, until it listens or ends. */
async function start(args: readonly string[], env: Record<string, string>) {
  const cwd = temporaryDirectory();
  mkdirSync(join(cwd, "elsewhere"));
  writeFileSync(join(cwd, "elsewhere/config.ts"), CONFIG);
  const child = Bun.spawn([...platformCommand(), ...args], {
    cwd,
    env: testEnvironment(env),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let stdout = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) stdout += decoder.decode(chunk, { stream: true });
  })();
  await until("the start", () => stdout.includes("listening on") || child.exitCode !== null);
  const url = /listening on (\S+)/.exec(stdout)?.[1] ?? null;
  return {
    cwd,
    url,
    async stop() {
      child.kill("SIGTERM");
      const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited, reading]);
      return { stderr, code };
    },
  };
}

const ENVIRONMENT = { PLATFORM_CONFIG: "elsewhere/config.ts", PLATFORM_DATA: "stored", PLATFORM_PORT: "0" };

test("[CL300] config, data, host and port come from the environment", async () => {
  const server = await start(["start"], { ...ENVIRONMENT, PLATFORM_HOST: "localhost" });
  expect(server.url).toStartWith("http://localhost:");
  expect((await fetch(`${server.url}/api/health`)).status).toBe(200);
  expect([existsSync(join(server.cwd, "stored")), existsSync(join(server.cwd, "data"))]).toEqual([true, false]);
  expect((await server.stop()).code).toBe(0);
});

test("[CL300] the command line beats the environment, and an empty variable counts as unset", async () => {
  const server = await start(["start", "--data", "here", "--config=elsewhere/config.ts"], {
    ...ENVIRONMENT,
    PLATFORM_CONFIG: "missing.ts",
    PLATFORM_HOST: "",
  });
  expect(server.url).toStartWith("http://127.0.0.1:");
  expect([existsSync(join(server.cwd, "here")), existsSync(join(server.cwd, "stored"))]).toEqual([true, false]);
  await server.stop();
});

test("[CL300] other commands take the config and the data directory from the environment too", async () => {
  const server = await start(["check"], { PLATFORM_CONFIG: "elsewhere/config.ts" });
  expect((await server.stop()).code).toBe(0);
  const keys = await start(["keys"], { PLATFORM_DATA: "nowhere" });
  expect((await keys.stop()).stderr).toContain("There is no data directory at nowhere");
});

test("[CL300][CL301] wrong values are wrong usage, reported by the name of the variable or option that has them", async () => {
  const wrong: [Record<string, string>, string][] = [
    [
      { PLATFORM_PORT: "http" },
      "option '--port <PORT>' value 'http' from env 'PLATFORM_PORT' is invalid. It must be a whole number",
    ],
    [
      { PLATFORM_LOG: "loud" },
      "option '--log <FORM>' value 'loud' from env 'PLATFORM_LOG' is invalid. Allowed choices are json, pretty.",
    ],
    [{ PLATFORM_DRILL: "maybe" }, "PLATFORM_DRILL must be 1 or true"],
  ];
  for (const [env, message] of wrong) {
    const { code, stderr } = await (await start(["start"], { ...ENVIRONMENT, ...env })).stop();
    expect([code, stderr]).toEqual([2, expect.stringContaining(`platform: ${message}`)]);
  }
  const { code, stderr } = await (
    await start(["start", "--port", "http"], { ...ENVIRONMENT, PLATFORM_PORT: "-1" })
  ).stop();
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining("platform: option '--port <PORT>' argument 'http' is invalid"),
  ]);
});

test("[CL301] --log and PLATFORM_LOG choose the form of the log; without a terminal pretty has no colours", async () => {
  const logged = async (args: readonly string[], env: Record<string, string>): Promise<string> => {
    const server = await start(["start", ...args], { ...ENVIRONMENT, ...env });
    await (await fetch(`${server.url}/api/health`)).text();
    return (await server.stop()).stderr;
  };
  const pretty = await logged(["--log", "pretty"], {});
  expect(pretty).toContain("request method=");
  expect(pretty).not.toContain("\x1b[");
  expect(JSON.parse((await logged(["--log", "json"], { PLATFORM_LOG: "pretty" })).split("\n")[0] ?? "")).toMatchObject({
    message: "request",
    properties: { path: "/api/health" },
  });
  expect(await logged([], { PLATFORM_LOG: "pretty" })).toContain("request method=");
});

test("[CL302] health says whether a server serves", async () => {
  const server = await start(["start"], ENVIRONMENT);
  const health = async (...args: string[]) => {
    const child = Bun.spawn([...platformCommand(), "health", ...args], {
      env: testEnvironment(),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { stdout, stderr, code };
  };
  const { url } = server;
  expect(await health("--url", `${url}`)).toEqual({ stdout: "ok\n", stderr: "", code: 0 });
  expect((await health("--url", "ftp://localhost")).code).toBe(2);
  await server.stop();
  const gone = await health(`--url=${url}`);
  expect([gone.code, gone.stderr.includes(`${url} does not answer: nothing listens there`)]).toEqual([1, true]);
});
