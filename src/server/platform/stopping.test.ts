import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../../tests/support/index.ts";
import { systemClock } from "../../kernel/clock.ts";
import { silentLogger } from "../../kernel/logger.ts";
import { STOP_GRACE_MS } from "../areas/push/limits.ts";
import { createPlatform } from "./index.ts";
import { createStopping } from "./stopping.ts";

test("[CL113] all areas stop when one of them throws, and its error is reported", async () => {
  const dataDirectory = temporaryDirectory();
  const errors: string[] = [];
  let isStopping = false;
  const platform = await createPlatform(
    { kv: { settings: {} }, push: {} },
    {
      dataDirectory,
      secrets: { serviceKey: "the root service key", jwtSecret: "x".repeat(32) },
      logger: { info() {}, warn() {}, error: (message) => void errors.push(message) },
      clock: {
        now: () => systemClock.now(),
        after(delayMs, work) {
          // Push sets this timer when it stops.
          if (isStopping && delayMs === STOP_GRACE_MS) throw new Error("no timer is left");
          return systemClock.after(delayMs, work);
        },
      },
    },
  );
  const { url } = await platform.listen({ port: 0 });
  await platform.app.kv("settings").set("theme", "dark");
  isStopping = true;
  await expect(platform.stop()).rejects.toThrow("failed to stop");
  expect(errors).toContain("push failed to stop");
  expect(existsSync(join(dataDirectory, "system.db-wal"))).toBe(false);
  expect(existsSync(join(dataDirectory, "kv", "settings.db-wal"))).toBe(false);
  await expect(fetch(`${url}/api/health`)).rejects.toThrow();
});

test("[CL113] parts stop phase by phase, the databases last, whatever one of them throws", async () => {
  const stopping = createStopping({ clock: systemClock, logger: silentLogger });
  const stopped: string[] = [];
  const part = (name: string) => ({ stop: async () => void stopped.push(name) });
  stopping.add("databases", "databases", part("databases"));
  stopping.add("requests", "requests", {
    stop() {
      throw new Error("no sockets");
    },
  });
  stopping.add("accounts", "auth", part("auth"));
  stopping.add("rooms", "rooms", part("rooms"));
  await expect(stopping.stop()).rejects.toThrow("failed to stop");
  expect(stopped).toEqual(["rooms", "auth", "databases"]);
});
