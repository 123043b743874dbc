import { expect, test } from "bun:test";
import { closeSync, constants, openSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ownChild } from "../support/children.ts";
import { platformCommand, temporaryDirectory, testEnvironment, until } from "../support/index.ts";

// A server whose standard error is a pipe that nobody reads, as of a log collector that hangs.

const REQUESTS = 8_000;
const CLIENTS = 8;
const PATH = `/${"x".repeat(500)}`;
/** The bound of CL413 in bytes, what a pipe holds, and the lines of requests under way. */
const LOG_MAX_BYTES = 1024 * 1024 + 2 * 64 * 1024;

test.if(process.platform === "linux")("[CL413] a log that nobody reads is bounded, and says what is lost", async () => {
  const directory = temporaryDirectory();
  const config = join(directory, "platform.config.ts");
  writeFileSync(config, "export default { server: { accessLog: true } };");
  const pipe = join(directory, "log");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(pipe, "w");
  const args = ["start", "--config", config, "--data", join(directory, "data"), "--port", "0", "--log", "json"];
  const child = Bun.spawn([...platformCommand(), ...args], {
    env: testEnvironment(),
    stdin: "ignore",
    stdout: "pipe",
    stderr: writer,
  });
  ownChild(child);
  closeSync(writer);
  const stdout = child.stdout.getReader();
  const ready = new TextDecoder().decode((await stdout.read()).value);
  const url = /http:\/\/\S+/.exec(ready)?.[0] ?? "";

  let left = REQUESTS;
  const ask = async (): Promise<void> => {
    while (left-- > 0) {
      const answer = await fetch(`${url}${PATH}`);
      await answer.body?.cancel();
      expect(answer.status).toBe(404);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, ask));

  const bytes = Buffer.alloc(64 * 1024);
  let log = "";
  const readOn = (): boolean => {
    try {
      for (let length = -1; length !== 0; log += bytes.toString("latin1", 0, length)) length = readSync(reader, bytes);
    } catch (cause) {
      if (!String(cause).includes("EAGAIN")) throw cause;
    }
    return log.includes("lines of the log are lost");
  };
  await until("the log says what is lost", async () => {
    await fetch(`${url}/last`);
    return readOn();
  });
  const [line = ""] = log.split("\n").filter((each) => each.includes("lines of the log are lost"));
  const { lines } = JSON.parse(line).properties;
  expect(lines).toBeGreaterThan(REQUESTS / 4);
  expect(log.split(PATH).length - 1 + lines).toBeGreaterThanOrEqual(REQUESTS);
  expect(log.length).toBeLessThan(LOG_MAX_BYTES);
  child.kill();
  expect(await child.exited).toBe(0);
  closeSync(reader);
});
