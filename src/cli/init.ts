import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { declareCommand } from "./command.ts";
import { printAnswer } from "./output.ts";
import starterConfig from "./starter/platform-config.txt" with { type: "text" };
import declarations from "./starter/platform-declarations.txt" with { type: "text" };
import starterTsconfig from "./starter/tsconfig.txt" with { type: "text" };

const FILES = [
  { name: "platform.config.ts", text: starterConfig },
  // Says what "platform" exports, so that an editor completes and checks the config without anything installed.
  { name: "platform.d.ts", text: declarations },
  { name: "tsconfig.json", text: starterTsconfig },
] as const;

export const initCommand = declareCommand({
  meta: {
    name: "init",
    description: "Writes a commented starter config, and the types that make an editor complete it",
  },
  args: {
    dir: { type: "positional", description: "Where to", required: false, default: "." },
  },
  async run({ args }) {
    mkdirSync(args.dir, { recursive: true });
    for (const { name, text } of FILES) {
      const path = join(args.dir, name);
      await printAnswer(writeNew(path, text) ? `wrote ${path}` : `kept ${path}, which is there already`);
    }
    await printAnswer(
      `Start it with: platform dev${args.dir === "." ? "" : ` --config ${join(args.dir, FILES[0].name)}`}`,
    );
  },
});

/** false when something of that name is there already, which stays as it is. */
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
