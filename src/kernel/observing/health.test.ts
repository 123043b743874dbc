import { expect, test } from "bun:test";
import { testClock } from "../../../tests/support/clock.ts";
import { HealthChecks } from "./health.ts";

test("[SY11] [SY12] a vital check decides about 503, others degrade, and one that throws is not ok", async () => {
  const clock = testClock();
  const failures: string[] = [];
  const checks = new HealthChecks({ clock, onFailure: (name) => void failures.push(name) });
  const state = { disk: true, certificate: true };
  let looks = 0;
  checks.add(
    "disk",
    () => {
      looks++;
      return { ok: state.disk, freeBytes: 1 };
    },
    { isVital: true },
  );
  checks.add("certificate", async () => {
    if (!state.certificate) throw new Error("no file");
    return { ok: true, validUntil: null };
  });
  const now = async () => {
    clock.advance(1_000);
    return (await checks.report()).status;
  };
  expect(await now()).toBe("ok");
  state.certificate = false;
  expect(await now()).toBe("degraded");
  expect((await checks.report()).checks).toEqual({ disk: { ok: true, freeBytes: 1 }, certificate: { ok: false } });
  expect([looks, failures]).toEqual([2, ["certificate"]]);
  state.disk = false;
  expect(await now()).toBe("unavailable");
  state.disk = true;
  state.certificate = true;
  expect(await now()).toBe("ok");
  checks.stopping();
  expect((await checks.report()).status).toBe("unavailable");
});
