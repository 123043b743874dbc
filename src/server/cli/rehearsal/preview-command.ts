import { Command } from "@commander-js/extra-typings";
import * as platformModule from "../../../index.ts";
import { reasonOf } from "../../../kernel/errors.ts";
import type { Tried } from "../../areas/config-editor/index.ts";
import { loadConfig } from "../../config/loading/load.ts";
import { ConfigError } from "../../config/problems.ts";
import { printAnswer } from "../output.ts";
import { PREVIEW_JOB_COMMAND, type PreviewJob } from "./protocol.ts";
import { rehearseData } from "./report.ts";
import { rehearseRoutes } from "./routes.ts";

/** Loads a config and compares it with the stored records. The job is on standard input. */
export const previewJobCommand = new Command(PREVIEW_JOB_COMMAND)
  .description("Tries the text of a config")
  .action(async () => {
    // The server that started this process wrote it.
    const { file, dataDirectory } = JSON.parse(await Bun.stdin.text()) as PreviewJob;
    await printAnswer(JSON.stringify(await tried(file, dataDirectory)));
    // A config may have left timers.
    process.exit(0);
  });

async function tried(file: string, dataDirectory: string): Promise<Tried> {
  try {
    const { config } = await loadConfig(file, platformModule);
    await rehearseRoutes(config, file);
    const report = rehearseData(config, dataDirectory);
    return { problems: [], data: { files: report.looked, unfit: report.unfit, notes: report.lines() } };
  } catch (cause) {
    const problems = cause instanceof ConfigError && cause.problems.length > 0 ? [...cause.problems] : null;
    return { problems: problems ?? [{ path: "", message: reasonOf(cause) }], data: null };
  }
}
