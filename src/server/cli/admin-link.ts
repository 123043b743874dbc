import { existsSync } from "node:fs";
import { systemIds } from "../../kernel/ids.ts";
import { addressOf, linkAt } from "../areas/admin/session/links.ts";
import { declareCommand } from "./command.ts";
import { isInUse } from "./data-directory.ts";
import { CommandError, UsageError } from "./errors.ts";
import { dataOption, isHttpUrl } from "./options.ts";
import { printAnswer, printNote } from "./output.ts";

const PORT_DEFAULT_URL = "http://127.0.0.1:8787";

/** What the path and the code are appended to. */
const isAddress = (text: string): boolean => isHttpUrl(text) && !/[?#]/.test(text);

export const adminLinkCommand = declareCommand({
  meta: { name: "admin-link", description: "Prints a link that signs in to the dashboard, once and for ten minutes" },
  args: {
    data: dataOption,
    url: { type: "string", description: "Where you reach the server; by default where it listens", valueHint: "URL" },
  },
  async run({ args }) {
    if (!existsSync(args.data)) throw new CommandError(`There is no data directory at ${args.data}`);
    const address = args.url ?? addressOf(args.data) ?? PORT_DEFAULT_URL;
    if (!isAddress(address))
      throw new UsageError(`--url must be an http or https URL without a query, got "${address}"`);
    await printAnswer(linkAt(address.replace(/\/$/, ""), args.data, { ids: systemIds }));
    if (!isInUse(args.data)) await printNote(`No server runs on ${args.data}: the link works once one is started.`);
    return 0;
  },
});
