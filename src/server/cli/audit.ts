import { Command } from "@commander-js/extra-typings";
import { isIsoDateTime, parseIsoDateTime } from "../../kernel/time/iso-datetime.ts";
import { entriesOf } from "../areas/audit/offline.ts";
import { requireDataDirectory } from "./data-directory.ts";
import { CommandError, UsageError } from "./errors.ts";
import { AUDIT_PAGE_ENTRIES } from "./limits.ts";
import { dataOption, keyOption, option, urlOption } from "./options.ts";
import { printAnswer } from "./output.ts";
import { type Remote, remoteOf } from "./remote.ts";

export const auditCommand = new Command("audit")
  .description("Prints the audit log as NDJSON, newest first")
  .addOption(dataOption)
  .addOption(urlOption)
  .addOption(keyOption)
  .addOption(option("--actor <NAME>", "Only what this key, user or kind of actor did"))
  .addOption(option("--action <ACTION>", "Only this action, or those that begin so"))
  .addOption(option("--target <PATH>", "Only this target, or what is below it"))
  .addOption(option("--after <TIME>", "Only from this moment on: ISO 8601, or milliseconds since 1970"))
  .action(async ({ data, url, key, actor, action, target, after }) => {
    const remote = remoteOf({ url, key });
    if (remote !== null) return printRemote(remote, { actor, action, target, after });
    requireDataDirectory(data);
    const filter = {
      actor: actor ?? null,
      action: action ?? null,
      target: target ?? null,
      request: null,
      after: moment(after),
    };
    for await (const entry of entriesOf(data, filter)) await printAnswer(JSON.stringify(entry));
  });

async function printRemote(remote: Remote, filter: Record<string, string | undefined>): Promise<void> {
  for (let cursor: string | null = ""; cursor !== null; ) {
    const query = new URLSearchParams({ limit: String(AUDIT_PAGE_ENTRIES) });
    for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, value);
    if (cursor !== "") query.set("cursor", cursor);
    const page = await fetchPage(remote, `/api/admin/audit?${query}`);
    for (const entry of page.entries) await printAnswer(JSON.stringify(entry));
    cursor = page.cursor;
  }
}

interface Page {
  entries: unknown[];
  cursor: string | null;
}

async function fetchPage({ send, key }: Remote, path: string): Promise<Page> {
  const answer = await send(path, { headers: { "x-platform-service-key": key } });
  const body = (await answer.json().catch(() => ({}))) as Partial<Page> & { message?: string };
  if (!answer.ok || body.entries === undefined) {
    throw new CommandError(`the server refused: ${answer.status} ${body.message ?? ""}`.trim());
  }
  return { entries: body.entries, cursor: body.cursor ?? null };
}

function moment(given: string | undefined): number | null {
  if (given === undefined) return null;
  if (/^\d{1,15}$/.test(given)) return Number(given);
  const at = isIsoDateTime(given) ? parseIsoDateTime(given) : Number.NaN;
  if (Number.isNaN(at)) throw new UsageError(`--after must be ISO 8601 or milliseconds since 1970, got "${given}"`);
  return at;
}
