// A library of passkeys looks for it when it is evaluated, and in the executable no import of a later module comes before.
import "reflect-metadata";

// The only file that does something when it is imported.
const { runCommandLine } = await import("./cli/index.ts");
process.exit(await runCommandLine(process.argv.slice(2)));
