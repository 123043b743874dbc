import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "@commander-js/extra-typings";
import { systemClock } from "../../../kernel/clock.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import { VERSION } from "../../../kernel/version.ts";
import { readHistory } from "../../areas/backup/continuous/restore/history.ts";
import { restoreContinuous } from "../../areas/backup/continuous/restore/restore.ts";
import { openStore } from "../../areas/backup/continuous/store/store.ts";
import { isInUse, requireDataDirectory } from "../data-directory.ts";
import { dataOption } from "../options.ts";
import { printAnswer } from "../output.ts";
import { DOCTOR_CHECKS, type DoctorCheck } from "./checks.ts";
import { type Finding, finding, type Patient } from "./patient.ts";

const EXIT_UNHEALTHY = 1;

export const doctorCommand = new Command("doctor")
  .description("Looks for what is wrong in a data directory, beside a running or a stopped server; changes nothing")
  .addOption(dataOption)
  .option(
    "--config <FILE>",
    "A config whose backups.continuous is checked too: everything that the newest moment needs",
  )
  .option("--json", "Print one JSON object")
  .action(async ({ data, config, json = false }) => {
    requireDataDirectory(data);
    const isRunning = isInUse(data);
    const checks: Record<string, Finding> = {};
    for (const { name, look } of config === undefined ? DOCTOR_CHECKS : [...DOCTOR_CHECKS, placeCheck(config)]) {
      const finding = await examined(look, { dataDirectory: data, isRunning });
      if (finding === null) continue;
      checks[name] = finding;
      if (!json) await printAnswer(lineOf(name, finding));
    }
    const isHealthy = Object.values(checks).every(({ ok }) => ok);
    const status = isHealthy ? "ok" : "unhealthy";
    const server = isRunning ? "running" : "stopped";
    if (json) await printAnswer(JSON.stringify({ status, server, version: VERSION, checks }, null, 2));
    else await printAnswer(`${data} is ${isHealthy ? "healthy" : "not healthy"}; its server is ${server}.`);
    if (!isHealthy) process.exitCode = EXIT_UNHEALTHY;
  });

const placeCheck = (config: string): DoctorCheck => ({ name: "continuous", look: () => checkPlace(config) });

/** Runs a check; null: there is nothing that it could check. One that throws, such as for an unreadable `system.db`, becomes a finding: the others still run. */
async function examined(look: DoctorCheck["look"], patient: Patient): Promise<Finding | null> {
  try {
    return await look(patient);
  } catch (cause) {
    return finding([`cannot be checked: ${reasonOf(cause)}`]);
  }
}

function lineOf(name: string, { ok, problems, ...figures }: Finding): string {
  const facts = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`);
  const lines = [`${ok ? "ok     " : "PROBLEM"} ${name.padEnd(12)} ${facts.join(", ")}`.trimEnd()];
  for (const problem of problems) lines.push(`        - ${problem}`);
  return lines.join("\n");
}

/**
 * Restores the newest moment of the continuous backup that a config declares into a temporary folder, which reads and hashes everything
 * that it needs. null: none is declared.
 */
async function checkPlace(configFile: string): Promise<Finding | null> {
  const { loadConfig } = await import("../../config/loading/load.ts");
  const { config } = await loadConfig(configFile, await import("../../../index.ts"));
  const continuous = config.backups?.continuous;
  if (continuous === undefined) return null;
  const store = openStore(continuous.to, systemClock);
  const { to, gaps, bytes } = await readHistory(store);
  const folder = mkdtempSync(join(tmpdir(), "platform-doctor-"));
  try {
    const dataDirectory = join(folder, "data");
    const { signal } = new AbortController();
    const restored = await restoreContinuous({ store, dataDirectory, at: null, only: [], signal, onProgress() {} });
    const problems = restored.missing.map((path) => `${path} is not stored yet`);
    const hasBackend = Object.values(config.storage?.buckets ?? {}).some(({ backend }) => backend !== undefined);
    if (restored.elsewhereCount > 0 && !hasBackend) {
      problems.push(`${restored.elsewhereCount} contents of files that system.db names are missing`);
    }
    return finding(problems, { to, files: restored.fileCount, bytes, gaps: gaps.length });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
