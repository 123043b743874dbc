import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { declareCommand } from "../command.ts";
import { printAnswer } from "../output.ts";
import gitignore from "./gitignore.txt" with { type: "text" };
import starterConfig from "./platform-config.txt" with { type: "text" };
import declarations from "./platform-declarations.txt" with { type: "text" };
import starterTsconfig from "./tsconfig.txt" with { type: "text" };

const FILES = [
  { name: "platform.config.ts", text: starterConfig },
  // The types of "platform", so that an editor completes and checks the config with nothing installed.
  { name: "platform.d.ts", text: declarations },
  { name: "tsconfig.json", text: starterTsconfig },
  // Data and secrets stand beside the config.
  { name: ".gitignore", text: gitignore },
] as const;

export const initCommand = declareCommand({
  meta: {
    name: "init",
    description: "Writes a starter config, and the types with which an editor completes it",
  },
  args: {
    dir: { type: "positional", description: "The directory to write to", required: false, default: "." },
  },
  async run({ args }) {
    mkdirSync(args.dir, { recursive: true });
    for (const { name, text } of FILES) {
      const path = join(args.dir, name);
      await printAnswer(writeNew(path, text) ? `wrote ${path}` : `kept ${path}, which exists`);
    }
    await printAnswer("Read the guide with: platform docs; platform dev serves it at /docs");
    await printAnswer(
      `Start it with: platform dev${args.dir === "." ? "" : ` --config ${quoted(join(args.dir, FILES[0].name))}`}`,
    );
  },
});

/** For a shell, which takes a path with a space for two words. */
const quoted = (path: string): string => (/^[\w./\\:-]+$/.test(path) ? path : `"${path}"`);

/** false when the file exists; it is not changed. */
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
