import { measureKeyValue } from "../cases/kv.ts";
import type { Bench, Result, Section } from "../support/section.ts";
import { milliseconds, perSecond } from "../support/statistics.ts";

const TARGET_RATIO = 0.7;

function result(name: string, measured: number, p99Ms: number, floor: number): Result {
  const ratio = measured / floor;
  return {
    ...{ name, measured: perSecond(measured), p50: null, p99: milliseconds(p99Ms), floor: perSecond(floor), ratio },
    ...{ target: `≥ ${TARGET_RATIO} of the floor`, isMet: ratio >= TARGET_RATIO },
  };
}

export const keyValue: Section = {
  name: "kv",
  title: "Key-value",
  about:
    "Get and set of small values under 10,000 keys with a service key, 32 clients. The floor is a bare Bun server with the same " +
    "statements on a file of its own, where each set commits and syncs by itself.",
  async run(bench: Bench): Promise<Result[]> {
    bench.note("key-value: get and set");
    // What the tests' support starts.
    process.env["PLATFORM_EXECUTABLE"] = bench.executable;
    const figures = await measureKeyValue();
    return [
      result("get", figures.getPerSecond, figures.getP99Ms, figures.getFloorPerSecond),
      result("set (durable)", figures.setPerSecond, figures.setP99Ms, figures.setFloorPerSecond),
    ];
  },
};
