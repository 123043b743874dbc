import { existsSync } from "node:fs";
import { systemIds } from "../../kernel/ids.ts";
import { rotateServiceKey, storedServiceKey } from "../config/secrets/secrets.ts";
import { declareCommand } from "./command.ts";
import { CommandError } from "./errors.ts";
import { dataOption } from "./options.ts";
import { printAnswer, printNote } from "./output.ts";

export const keysCommand = declareCommand({
  meta: { name: "keys", description: "Prints the root service key of a data directory" },
  args: {
    data: dataOption,
    rotate: { type: "boolean", description: "Replace the key; a running server uses the new one from its next start" },
  },
  async run({ args }) {
    if (!existsSync(args.data)) throw new CommandError(`There is no data directory at ${args.data}`);
    const key = args.rotate === true ? rotateServiceKey(args.data, systemIds) : storedServiceKey(args.data);
    if (key === null) {
      throw new CommandError(`${args.data} has no service key: start the server once, or use --rotate to generate one`);
    }
    const environmentKey = process.env["PLATFORM_SERVICE_KEY"] ?? "";
    if (environmentKey !== "" && environmentKey !== key) {
      await printNote(
        "PLATFORM_SERVICE_KEY is set: a server that is started with it uses that key instead of this one.",
      );
    }
    await printAnswer(key);
  },
});
