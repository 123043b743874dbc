import { join } from "node:path";

/** The parts of the client. `module`: the file that pages load (see pack.ts); `package`: the npm package. */
export type ClientPart = "module" | "package";

const SCRIPT = join(import.meta.dir, "../../../../scripts/client/build.ts");

/** Returns the path of a part: in the executable, or, for a server that runs from its sources, rebuilt when these have changed. */
export async function pathOfPart(part: ClientPart): Promise<string> {
  if (!Bun.isStandaloneExecutable) return built(part);
  const { default: path } =
    part === "module"
      ? await import("platform:client-module", { with: { type: "file" } })
      : await import("platform:client-package", { with: { type: "file" } });
  return path;
}

async function built(part: ClientPart): Promise<string> {
  const child = Bun.spawn([process.execPath, SCRIPT, part], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`The client cannot be built:\n${errors}`);
  return output.trim();
}
