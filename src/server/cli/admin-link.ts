import { existsSync } from "node:fs";
import { Command } from "@commander-js/extra-typings";
import { systemIds } from "../../kernel/ids.ts";
import { addressOf, linkAt } from "../areas/admin/links.ts";
import { isInUse } from "./data-directory.ts";
import { CommandError, UsageError } from "./errors.ts";
import { dataOption, isHttpUrl, option } from "./options.ts";
import { printAnswer, printNote } from "./output.ts";

const PORT_DEFAULT_URL = "http://127.0.0.1:8787";

/** Whether the text is an address to which the path and the code can be appended. */
const isAddress = (text: string): boolean => isHttpUrl(text) && !/[?#]/.test(text);

export const adminLinkCommand = new Command("admin-link")
  .description("Prints a link that signs in to the dashboard, once and for ten minutes")
  .addOption(dataOption)
  .addOption(option("--url <URL>", "Where you reach the server; by default where it listens"))
  .action(async ({ data, url }) => {
    if (!existsSync(data)) throw new CommandError(`There is no data directory at ${data}`);
    const address = url ?? addressOf(data) ?? PORT_DEFAULT_URL;
    if (!isAddress(address))
      throw new UsageError(`--url must be an http or https URL without a query, got "${address}"`);
    await printAnswer(linkAt(address.replace(/\/$/, ""), data, { ids: systemIds }));
    if (!isInUse(data)) await printNote(`No server runs on ${data}: the link works once one is started.`);
  });
