import { Console } from "node:console";
import { Writable } from "node:stream";
import type { Logger } from "../../../kernel/logger.ts";
import { errorOutput } from "../output.ts";
import { StandardOutput } from "../standard-output.ts";

/**
 * Lets `console` of a config's code write as the log does: Bun's own waits for the reader of standard output, and the whole
 * server with it.
 */
export function redirectConsole(logger: Logger): StandardOutput {
  const output = new StandardOutput(1);
  output.onLost = (lines) => logger.warn("Lines of standard output are lost, as it could not be written", { lines });
  const redirected = new Console({
    stdout: writableOf(output),
    stderr: writableOf(errorOutput),
    colorMode: process.stdout.isTTY === true && process.env["NO_COLOR"] === undefined,
  });
  Object.assign(console, redirected);
  return output;
}

const writableOf = (output: StandardOutput): Writable =>
  new Writable({
    decodeStrings: false,
    write(text: string, _encoding, written) {
      output.write(text);
      written();
    },
  });
