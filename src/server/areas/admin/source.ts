import { join } from "node:path";
import { type Pack, readPack } from "../../http/packed/pack.ts";

const SCRIPT = join(import.meta.dir, "../../../../scripts/client/build.ts");

/** The path of the pages: in the executable, or, for a server that runs from its sources, built when these have changed. */
export async function pathOfPages(): Promise<string> {
  if (!Bun.isStandaloneExecutable) return built();
  return (await import("platform:dashboard", { with: { type: "file" } })).default;
}

export const readPages = async (): Promise<Pack> => readPack(await pathOfPages());

async function built(): Promise<string> {
  const child = Bun.spawn([process.execPath, SCRIPT, "dashboard"], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`The dashboard cannot be built:\n${errors}`);
  return output.trim();
}
