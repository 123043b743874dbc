// A library of passkeys looks for it when it is evaluated, and in the executable no import of a later module comes before.
import "reflect-metadata";
import { QUERY_PROCESS_COMMAND, runQueryProcess } from "./d1/query-process.ts";

// The only file that does something when it is imported.
const [command, ...rest] = process.argv.slice(2);
if (Bun.isStandaloneExecutable && command === QUERY_PROCESS_COMMAND) {
  const [path, role] = rest;
  if (path !== undefined && (role === "reader" || role === "writer")) await runQueryProcess(path, role);
} else {
  // Not needed by a query process, which starts quicker without.
  const { runCommandLine } = await import("./cli/index.ts");
  process.exit(await runCommandLine(process.argv.slice(2)));
}
