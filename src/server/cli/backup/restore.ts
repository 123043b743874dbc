import { restoreBackup } from "../../areas/backup/restore/restore.ts";
import { plural } from "../amounts.ts";
import { declareCommand } from "../command.ts";
import { dataOption } from "../options.ts";
import { printNote } from "../output.ts";
import { abortOnStop, explained, sizeText } from "./backup.ts";

export const restoreCommand = declareCommand({
  meta: { name: "restore", description: "Unpacks a backup into a new or empty data directory" },
  args: {
    file: { type: "positional", description: "A file that platform backup has written", required: true },
    data: dataOption,
  },
  async run({ args }) {
    const signal = abortOnStop();
    const { header, fileCount, contentBytes, hasSecrets } = await explained(signal, "restore", () =>
      restoreBackup({ file: args.file, dataDirectory: args.data, signal }),
    );
    const content = `${plural(fileCount, "file")}, ${sizeText(contentBytes)}`;
    await printNote(`restored ${args.data}: ${content}, as of ${header.createdAt}`);
    if (!hasSecrets) {
      await printNote(
        "The backup has no secrets, as its server had them in its environment: start this one with the same PLATFORM_SERVICE_KEY and PLATFORM_JWT_SECRET.",
      );
    }
    return 0;
  },
});
