import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "@commander-js/extra-typings";
import { VERSION } from "../../kernel/version.ts";
import { pathOfPart, readPack } from "../areas/client-files/index.ts";
import { option } from "./options.ts";
import { printAnswer } from "./output.ts";

export const clientCommand = new Command("client")
  .description("Writes what a server serves below /client: the npm package, and the module")
  .addOption(option("--out <DIR>", "The directory to write to").default("./client"))
  .action(async ({ out }) => {
    const { header, plainOf } = await readPack(await pathOfPart("module"));
    mkdirSync(out, { recursive: true });
    const write = async (name: string, content: Blob): Promise<void> =>
      writeFileSync(join(out, name), new Uint8Array(await content.arrayBuffer()));
    await write("platform.tgz", Bun.file(await pathOfPart("package")));
    for (const [name, file] of Object.entries(header)) await write(name, await plainOf(file));
    await printAnswer(
      `${join(out, "platform.tgz")}: platform ${VERSION}. Install it with: npm install ${join(out, "platform.tgz")}`,
    );
  });
