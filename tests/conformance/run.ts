// Runs the conformance suite against an adapter: bun tests/conformance/run.ts COMMAND… . The server is PLATFORM_EXECUTABLE, else the sources.
import { startAdapter } from "./adapter.ts";
import { runScenario, startWorld } from "./runner.ts";
import { readScenarios } from "./scenario.ts";

const [world, adapter] = await Promise.all([startWorld(), startAdapter(Bun.argv.slice(2))]);
const counts = { passed: 0, failed: 0, skipped: 0 };
for (const scenario of readScenarios()) {
  if (scenario.needs?.some((need) => !adapter.supports.includes(need))) {
    console.log(`left out  ${scenario.name}`);
    counts.skipped++;
    continue;
  }
  try {
    await runScenario(world, adapter, scenario);
    console.log(`passed    ${scenario.name}`);
    counts.passed++;
  } catch (error) {
    console.log(`FAILED    ${scenario.name}\n          ${error instanceof Error ? error.message : error}`);
    counts.failed++;
  }
}
await adapter.end();
await world.stop();
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed === 0 ? 0 : 1);
