import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "@commander-js/extra-typings";
import { readGuide } from "../../areas/site/guide/source.ts";
import { printAnswer } from "../output.ts";
import gitignore from "./gitignore.txt" with { type: "text" };
import starterConfig from "./platform-config.txt" with { type: "text" };
import declarations from "./platform-declarations.txt" with { type: "text" };
import starterTsconfig from "./tsconfig.txt" with { type: "text" };

const FILES = [
  { name: "platform.config.ts", text: starterConfig },
  // Types of "platform", with which an editor completes and checks the config without an installation.
  { name: "platform.d.ts", text: declarations },
  { name: "tsconfig.json", text: starterTsconfig },
  // Data and secrets are beside the config.
  { name: ".gitignore", text: gitignore },
] as const;

export const initCommand = new Command("init")
  .description("Writes a starter config, and the types with which an editor completes it")
  .argument("[DIR]", "The directory to write to", ".")
  .option("--agents", "Also writes AGENTS.md, which teaches an assistant this project")
  .action(async (directory, { agents: isForAgents = false }) => {
    mkdirSync(directory, { recursive: true });
    const notes = isForAgents ? [{ name: "AGENTS.md", text: (await readGuide()).get("agents.md") ?? "" }] : [];
    for (const { name, text } of [...FILES, ...notes]) {
      const path = join(directory, name);
      await printAnswer(writeNew(path, text) ? `wrote ${path}` : `kept ${path}, which exists`);
    }
    await printAnswer("Read the guide with: platform docs; platform dev serves it at /docs");
    await printAnswer(
      `Start it with: platform dev${directory === "." ? "" : ` --config ${quoted(join(directory, FILES[0].name))}`}`,
    );
  });

/** Quotes a path for a shell, which splits at spaces. */
const quoted = (path: string): string => (/^[\w./\\:-]+$/.test(path) ? path : `"${path}"`);

/** Writes a new file; false when it exists, in which case it stays unchanged. */
function writeNew(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: "wx" });
    return true;
  } catch (cause) {
    // The error of a system call carries its code.
    if ((cause as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw cause;
  }
}
