import { existsSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import { systemIds } from "../../kernel/ids.ts";
import { rotateServiceKey, storedServiceKey } from "../config/secrets/secrets.ts";
import { CommandError } from "./errors.ts";
import { dataOption } from "./options.ts";
import { printAnswer, printNote } from "./output.ts";

export const keysCommand = new Command("keys")
  .description("Prints the root service key of a data directory")
  .addOption(dataOption)
  .option("--rotate", "Replace the key; a running server uses the new one from its next start")
  .action(async ({ data, rotate }) => {
    if (!existsSync(data)) throw new CommandError(`There is no data directory at ${data}`);
    const key = rotate === true ? rotateServiceKey(data, systemIds) : storedServiceKey(data);
    if (key === null) {
      throw new CommandError(`${data} has no service key: start the server once, or use --rotate to generate one`);
    }
    const environmentKey = process.env["PLATFORM_SERVICE_KEY"] ?? "";
    if (environmentKey !== "" && environmentKey !== key) {
      await printNote(
        "PLATFORM_SERVICE_KEY is set: a server that is started with it uses that key instead of this one.",
      );
    }
    await printAnswer(key);
  });
