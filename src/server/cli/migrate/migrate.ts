import { statSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import { CommandError, UsageError } from "../errors.ts";
import { option } from "../options.ts";
import { printAnswer, printNote } from "../output.ts";
import { unpackBackup } from "./pocketbase/archive.ts";
import { move, planMove } from "./pocketbase/move.ts";
import { openPbData } from "./pocketbase/source.ts";

export const migrateCommand = new Command("migrate")
  .description("Makes a config and a data directory from what another backend has: PocketBase")
  .argument("<SOURCE>", "A pb_data folder, or a backup zip of PocketBase")
  .addOption(option("--into <DIR>", "The new folder, for platform.config.ts, data and report.md"))
  .option("--plan", "Print the config and the report, and write nothing")
  .action(async (place, { into, plan }) => {
    if (plan !== true && into === undefined)
      throw new UsageError("--into names the folder to make, or --plan prints it");
    const stats = statSync(place, { throwIfNoEntry: false });
    if (stats === undefined) throw new CommandError(`There is no file or folder ${place}`);
    const unpacked = stats.isDirectory() ? null : await unpackBackup(place);
    try {
      await migrate(unpacked?.folder ?? place, { into, isPlan: plan === true });
    } finally {
      unpacked?.dispose();
    }
  });

async function migrate(folder: string, { into, isPlan }: { into: string | undefined; isPlan: boolean }): Promise<void> {
  const source = openPbData(folder);
  try {
    if (isPlan || into === undefined) {
      const { text, report } = planMove(source);
      await printAnswer(`${text}\n${report().trimEnd()}`);
      return;
    }
    const isSame = await move(source, into);
    await printNote(`wrote ${into}: read report.md, then platform check --config ${into}/platform.config.ts`);
    if (!isSame) throw new CommandError("Not all is as it was: report.md names the counts and hashes that differ");
  } finally {
    source.close();
  }
}
