import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject, JsonValue } from "../../src/kernel/json/json.ts";
import { type CuttingProxy, cuttingProxy } from "../support/cutting-proxy.ts";
import { type TestPlatform, testPlatform } from "../support/platform.ts";
import type { Adapter, Outcome } from "./adapter.ts";
import { type Act, type Call, difference, filledIn, type Scenario, type Start, type Step } from "./scenario.ts";

/** Longer than the longest wait of a client before it connects again. */
const UNTIL_MS = 20_000;
const POLL_MS = 50;

/** Server in the state that the scenarios begin with, and the network in front of it. */
export interface World {
  platform: TestPlatform;
  proxy: CuttingProxy;
  stop(): Promise<void>;
}

export async function startWorld(): Promise<World> {
  const platform = await testPlatform({ config: readFileSync(join(import.meta.dir, "platform.config.ts"), "utf8") });
  const seed: Record<string, JsonObject[]> = JSON.parse(readFileSync(join(import.meta.dir, "seed.json"), "utf8"));
  for (const [table, inserts] of Object.entries(seed)) {
    const { status } = await platform.service.post(`/api/db/shared/tables/${table}/batch`, { inserts });
    if (status !== 200) throw new Error(`the seed of ${table} was refused: ${status}`);
  }
  const proxy = await cuttingProxy(() => platform.url);
  const stop = async () => {
    await proxy.stop();
    await platform.stop();
  };
  return { platform, proxy, stop };
}

/** Runs one scenario with clients of its own. Errors: the first step that went otherwise. */
export async function runScenario(world: World, adapter: Adapter, scenario: Scenario): Promise<void> {
  const run = Bun.randomUUIDv7().slice(-12);
  const saved: JsonObject = { run };
  const named = (client: string) => `${client}-${run}`;
  const call = ({ client, do: operation, with: args = {} }: Call): Promise<Outcome> =>
    adapter.call(named(client), operation, filledIn(args, saved) as JsonObject); // objects stay objects
  try {
    for (const [client, start] of Object.entries(scenario.clients)) {
      await open(world, adapter, named(client), start);
    }
    for (const [index, step] of scenario.steps.entries()) {
      const problem = await takeStep(world, step, call, saved);
      if (problem !== null) throw new Error(`step ${index + 1}, ${JSON.stringify(step)}: ${problem}`);
    }
  } finally {
    world.proxy.refuse(false);
    for (const client of Object.keys(scenario.clients)) await adapter.call(named(client), "close", {});
  }
}

async function open({ platform, proxy }: World, adapter: Adapter, client: string, start: Start): Promise<void> {
  const key = start === "root key" ? platform.serviceKey : typeof start === "object" ? start.serviceKey : null;
  const must = async (operation: string, args: JsonObject) => {
    const outcome = await adapter.call(client, operation, args);
    if ("error" in outcome) throw new Error(`${operation} failed: ${JSON.stringify(outcome.error)}`);
  };
  await must("open", { url: proxy.url, ...(key === null ? {} : { serviceKey: key }) });
  if (start === "user") await must("signUp", { email: `${client}@example.com`, password: "correct horse battery" });
}

async function takeStep(
  world: World,
  step: Step,
  call: (step: Call) => Promise<Outcome>,
  saved: JsonObject,
): Promise<string | null> {
  if ("do" in step) return judged(step, call, saved);
  if (!("together" in step)) return act(world, step, saved);
  const problems = await Promise.all(step.together.map((one) => judged(one, call, saved)));
  return problems.find((problem) => problem !== null) ?? null;
}

async function judged(step: Call, call: (step: Call) => Promise<Outcome>, saved: JsonObject): Promise<string | null> {
  const deadline = performance.now() + (step.until ? UNTIL_MS : 0);
  for (;;) {
    const problem = problemOf(step, await call(step), saved);
    if (problem === null || performance.now() >= deadline) return problem;
    await Bun.sleep(POLL_MS);
  }
}

function problemOf({ expect, fails, save }: Call, outcome: Outcome, saved: JsonObject): string | null {
  if (fails !== undefined) {
    if (!("error" in outcome)) return `it succeeded with ${JSON.stringify(outcome.result)}`;
    const { status, fields = {} } = outcome.error;
    return difference(filledIn(fails, saved), { status, fields }, "error");
  }
  if ("error" in outcome) return `it failed with ${JSON.stringify(outcome.error)}`;
  if (save !== undefined) saved[save] = outcome.result;
  return expect === undefined ? null : difference(filledIn(expect, saved), outcome.result);
}

async function act({ platform, proxy }: World, step: Act, saved: JsonObject): Promise<string | null> {
  if ("wait" in step) await Bun.sleep(step.wait);
  else if ("network" in step) {
    if (step.network === "lose an answer") proxy.loseAnswers(1);
    else proxy.refuse(step.network === "refuse");
  } else if ("server" in step) {
    await platform.kill("SIGKILL");
    await platform.restart();
  } else {
    const { method, path, body } = step.service;
    const init = body === undefined ? {} : { body: JSON.stringify(filledIn(body as JsonValue, saved)) };
    const answer = await fetch(platform.url + String(filledIn(path, saved)), {
      method,
      headers: { "X-Platform-Service-Key": platform.serviceKey, "Content-Type": "application/json" },
      ...init,
    });
    if (!answer.ok) return `the server answered ${answer.status} ${await answer.text()}`;
  }
  return null;
}
