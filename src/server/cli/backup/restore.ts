import { Command } from "@commander-js/extra-typings";
import { restoreBackup } from "../../areas/backup/archive/restore.ts";
import { plural } from "../amounts.ts";
import { dataOption } from "../options.ts";
import { printNote } from "../output.ts";
import { abortOnStop, explained, sizeText } from "./backup.ts";

export const restoreCommand = new Command("restore")
  .description("Unpacks a backup into a new or empty data directory")
  .argument("<FILE>", "A file that platform backup has written")
  .addOption(dataOption)
  .action(async (file, { data }) => {
    const signal = abortOnStop();
    const { header, fileCount, contentBytes, hasSecrets } = await explained(signal, "restore", () =>
      restoreBackup({ file, dataDirectory: data, signal }),
    );
    const content = `${plural(fileCount, "file")}, ${sizeText(contentBytes)}`;
    await printNote(`restored ${data}: ${content}, as of ${header.createdAt}`);
    if (!hasSecrets) {
      await printNote(
        "The backup has no secrets, as its server had them in its environment: start this one with the same PLATFORM_SERVICE_KEY and PLATFORM_JWT_SECRET.",
      );
    }
  });
