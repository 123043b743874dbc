import { restoreBackup } from "../backup/restore/restore.ts";
import { abortOnStop, explained } from "./backup.ts";
import { declareCommand } from "./command.ts";
import { dataOption } from "./options.ts";
import { printNote } from "./output.ts";
import { plural, sizeText } from "./transfer/amounts.ts";

export const restoreCommand = declareCommand({
  meta: { name: "restore", description: "Unpacks a backup into a data directory that is empty or not there yet" },
  args: {
    file: { type: "positional", description: "What platform backup has written", required: true },
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
        "The server had its secrets from its environment: start this one with the same PLATFORM_SERVICE_KEY and PLATFORM_JWT_SECRET.",
      );
    }
    return 0;
  },
});
