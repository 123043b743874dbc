// The only file that does something when it is imported.
const { runCommandLine } = await import("./server/cli/index.ts");
process.exit(await runCommandLine(process.argv.slice(2)));
