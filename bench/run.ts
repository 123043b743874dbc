import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { analytics } from "./sections/analytics.ts";
import { keyValue, realtime, rooms, vectors } from "./sections/areas.ts";
import { authentication } from "./sections/auth.ts";
import { backups } from "./sections/backup.ts";
import { client } from "./sections/client.ts";
import { cluster } from "./sections/cluster.ts";
import { continuous } from "./sections/continuous.ts";
import { dashboard } from "./sections/dashboard.ts";
import { functions } from "./sections/functions.ts";
import { largeTables } from "./sections/large-tables.ts";
import { lists } from "./sections/lists.ts";
import { peers } from "./sections/peers.ts";
import { processSection } from "./sections/process.ts";
import { productData } from "./sections/product-data.ts";
import { push } from "./sections/push.ts";
import { relatedRecords } from "./sections/related.ts";
import { relations } from "./sections/relations.ts";
import { routes } from "./sections/routes.ts";
import { rules } from "./sections/rules.ts";
import { safeWrites } from "./sections/safe-writes.ts";
import { stalls } from "./sections/stalls.ts";
import { storage } from "./sections/storage.ts";
import { tables } from "./sections/tables.ts";
import { tls } from "./sections/tls.ts";
import { workers } from "./sections/workers.ts";
import { executableToMeasure } from "./support/executable.ts";
import { busyNote, sectionText, withSection } from "./support/report.ts";
import type { Bench, Section } from "./support/section.ts";

// `npm run bench` measures the compiled executable and writes bench/RESULTS.md. `npm run bench -- tables process` measures some
// sections and keeps the others. PLATFORM_EXECUTABLE names an existing executable instead of building one.

const SECTIONS: readonly Section[] = [
  tables,
  peers,
  safeWrites,
  relatedRecords,
  largeTables,
  lists,
  workers,
  rules,
  relations,
  productData,
  processSection,
  authentication,
  tls,
  storage,
  keyValue,
  vectors,
  realtime,
  rooms,
  push,
  functions,
  routes,
  analytics,
  backups,
  continuous,
  cluster,
  client,
  dashboard,
  stalls,
];
const RESULTS = resolve(import.meta.dir, "RESULTS.md");

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !SECTIONS.some((section) => section.name === name));
if (unknown.length > 0) {
  console.error(`There is no part "${unknown[0]}": ${SECTIONS.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}

const executable = executableToMeasure();
// Makes tests/support measure this executable too.
process.env["PLATFORM_EXECUTABLE"] = executable;

const temporary = mkdtempSync(join(tmpdir(), "platform-bench-"));
const bench: Bench = {
  executable,
  directory(name) {
    const path = join(temporary, name);
    mkdirSync(path, { recursive: true });
    return path;
  },
  note: (text) => console.error(`measuring ${text}`),
};
// Read once, before the first section: afterwards the machine is busy with our own work.
const measured = { day: new Date().toISOString().slice(0, 10), busyNote: await busyNote() };
try {
  for (const section of SECTIONS.filter(({ name }) => asked.length === 0 || asked.includes(name))) {
    const text = sectionText(section, await section.run(bench), measured);
    console.log(text);
    const report = existsSync(RESULTS) ? readFileSync(RESULTS, "utf8") : "";
    writeFileSync(RESULTS, withSection(report, section.title, text));
  }
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
process.exit(0);
