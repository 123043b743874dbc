import { existsSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import { systemIds } from "../../kernel/ids.ts";
import { rotateServiceKey, storedServiceKey } from "../config/secrets/secrets.ts";
import { askForTokenKey, cancelTokenKey, isTokenKeyAwaited, signingKeyId } from "../config/secrets/token-rotation.ts";
import { isInUse } from "./data-directory.ts";
import { CommandError, UsageError } from "./errors.ts";
import { TOKEN_KEY_PAUSE_MS, TOKEN_KEY_WAIT_MS } from "./limits.ts";
import { dataOption } from "./options.ts";
import { printAnswer, printNote } from "./output.ts";

export const keysCommand = new Command("keys")
  .description("Prints the root service key of a data directory")
  .addOption(dataOption)
  .option("--rotate", "Replace the key; a running server uses the new one from its next start")
  .option("--rotate-tokens", "Have a new key sign access tokens (`auth.tokens`), also of a running server")
  .action(async ({ data, rotate, rotateTokens }) => {
    if (!existsSync(data)) throw new CommandError(`There is no data directory at ${data}`);
    if (rotateTokens === true) {
      if (rotate === true) throw new UsageError("--rotate and --rotate-tokens are two commands");
      return renewTokenKey(data);
    }
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

/** Has a new key sign access tokens and prints its id. Errors: a running server does not take the request. */
async function renewTokenKey(data: string): Promise<void> {
  askForTokenKey(data);
  if (!isInUse(data)) {
    return printNote(`No server runs on ${data}: the next start makes the key, if the config declares auth.tokens.`);
  }
  const giveUpAt = performance.now() + TOKEN_KEY_WAIT_MS;
  while (isTokenKeyAwaited(data)) {
    if (performance.now() > giveUpAt) {
      cancelTokenKey(data);
      throw new CommandError("The server has made no new key: does its config declare auth.tokens? Its log says more");
    }
    await Bun.sleep(TOKEN_KEY_PAUSE_MS);
  }
  await printAnswer(signingKeyId(data));
}
