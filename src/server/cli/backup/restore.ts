import { Command } from "@commander-js/extra-typings";
import { systemClock } from "../../../kernel/clock.ts";
import { SECOND_MS } from "../../../kernel/time/duration.ts";
import { restoreBackup } from "../../areas/backup/archive/restore.ts";
import { readHistory } from "../../areas/backup/continuous/restore/history.ts";
import { type RestoreProgress, restoreContinuous } from "../../areas/backup/continuous/restore/restore.ts";
import { openStore, type Store } from "../../areas/backup/continuous/store/store.ts";
import type { ClusterConfig, PlatformConfig } from "../../config/types.ts";
import { CommandError, UsageError } from "../errors.ts";
import { dataOption, option } from "../options.ts";
import { plural, printAnswer, printNote } from "../output.ts";
import { abortOnStop, explained, sizeText } from "./backup.ts";
import { isArchive, momentArgument, placeOf } from "./place.ts";

/** Interval of a restore's progress messages. */
const PROGRESS_EVERY_MS = 5 * SECOND_MS;
const NAMES_SHOWN_MAX = 20;

const configOption = option(
  "--config <FILE>",
  "A config whose backups.continuous is the place, or whose cluster it is",
);
const PLACE =
  "A folder, or s3://BUCKET/PREFIX with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION and AWS_ENDPOINT_URL";

export const restoreCommand = new Command("restore")
  .description("Unpacks a backup, or a moment of a continuous one, into a new or empty data directory")
  .argument("[PLACE]", `A file that platform backup has written; or of a continuous backup: ${PLACE}`)
  .addOption(dataOption)
  .addOption(configOption)
  .option("--at <TIME>", "The moment of a continuous backup, as 2026-11-26T14:03:19Z; by default the newest")
  .option(
    "--only <NAME>",
    "A database of a continuous backup, by its path without .db; can be given several times",
    (name: string, names: string[]) => [...names, name],
    [] as string[],
  )
  .action(async (place, { data, config, at, only }) => {
    const moment = at === undefined ? null : momentArgument(at);
    if (place !== undefined && isArchive(place)) {
      if (moment !== null || only.length > 0) {
        throw new UsageError("--at and --only are for a continuous backup, and this is a file");
      }
      await restoreArchive(place, data);
      return;
    }
    const cluster = place === undefined && config !== undefined ? (await configOf(config)).cluster : undefined;
    if (cluster === undefined || moment !== null || only.length > 0) {
      await restoreMoment(await storeOf(place, config), { data, moment, only });
      return;
    }
    await restoreCluster(cluster, data);
  });

async function restoreArchive(file: string, data: string): Promise<void> {
  const signal = abortOnStop();
  const { header, fileCount, contentBytes, hasSecrets } = await explained(signal, "restore", () =>
    restoreBackup({ file, dataDirectory: data, signal }),
  );
  const content = `${plural(fileCount, "file")}, ${sizeText(contentBytes)}`;
  await printNote(`restored ${data}: ${content}, as of ${header.createdAt}`);
  if (!hasSecrets) await printNote(NO_SECRETS);
}

const NO_SECRETS =
  "The backup has no secrets, as its server had them in its environment: start this one with the same PLATFORM_SERVICE_KEY and PLATFORM_JWT_SECRET.";

async function restoreMoment(
  store: Store,
  { data, moment, only }: { data: string; moment: number | null; only: readonly string[] },
): Promise<void> {
  const signal = abortOnStop();
  const startedAt = performance.now();
  let shownAt = startedAt;
  const onProgress = ({ bytes, bytesInAll, files }: RestoreProgress): void => {
    const now = performance.now();
    if (now - shownAt < PROGRESS_EVERY_MS) return;
    shownAt = now;
    const inAll = Math.max(bytes, bytesInAll);
    const leftS = Math.ceil(((now - startedAt) * (inAll / Math.max(1, bytes) - 1)) / SECOND_MS);
    void printNote(
      `${sizeText(bytes)} of ${sizeText(inAll)} read, for ${plural(files, "database")}: about ${leftS} s left`,
    );
  };
  const restored = await explained(signal, "restore", () =>
    restoreContinuous({ store, dataDirectory: data, at: moment, only, signal, onProgress }),
  );
  const asOf = new Date(restored.asOf).toISOString();
  if (restored.isAfterLast) await printNote(`nothing later is stored: this is the newest moment, ${asOf}`);
  await printNote(`restored ${data}: ${plural(restored.fileCount, "file")}, as of ${asOf}`);
  const { missing, elsewhereCount } = restored;
  if (missing.length > 0) {
    await printNote(`not stored yet, and so not restored: ${plural(missing.length, "content")} of stored files`);
    for (const path of missing.slice(0, NAMES_SHOWN_MAX)) await printNote(`  ${path}`);
  }
  if (elsewhereCount > 0) {
    await printNote(`${plural(elsewhereCount, "stored file")} not in it: their buckets keep them in object stores`);
  }
  if (only.length === 0 && !restored.hasSecrets) await printNote(NO_SECRETS);
}

/** Restores the newest state of a cluster: that of its object store, and what its log has since. */
async function restoreCluster(cluster: ClusterConfig, data: string): Promise<void> {
  const { followLog, lookAtStore, storeOfCluster } = await import("../../platform/cluster/restore-cluster.ts");
  const signal = new AbortController().signal;
  const store = await explained(signal, "restore", () => storeOfCluster(cluster));
  const before = await explained(signal, "restore", () => lookAtStore(store));
  await restoreMoment(store, { data, moment: null, only: [] });
  await explained(signal, "restore", () => followLog(cluster, data, before));
  await printNote("and what the log has since");
}

/** Loads a config. */
async function configOf(file: string): Promise<PlatformConfig> {
  const { loadConfig } = await import("../../config/loading/load.ts");
  const platformModule = await import("../../../index.ts");
  return (await loadConfig(file, platformModule)).config;
}

/** Opens the store that a command names. Errors: UsageError if it names none, or two. */
async function storeOf(place: string | undefined, config: string | undefined): Promise<Store> {
  if ((place === undefined) === (config === undefined)) throw new UsageError("give a PLACE, or --config FILE");
  if (place !== undefined) return openStore(placeOf(place, process.env), systemClock);
  const { backups, cluster } = await configOf(config ?? "");
  if (cluster !== undefined) {
    const { storeOfCluster } = await import("../../platform/cluster/restore-cluster.ts");
    return await storeOfCluster(cluster);
  }
  const continuous = backups?.continuous;
  if (continuous === undefined) throw new CommandError(`${config} declares no backups.continuous`);
  return openStore(continuous.to, systemClock);
}

export const historyCommand = new Command("history")
  .description("Says what can be restored from a continuous backup")
  .argument("[PLACE]", PLACE)
  .addOption(configOption)
  .option("--json", "Prints JSON", false)
  .action(async (place, { config, json }) => {
    const history = await readHistory(await storeOf(place, config));
    if (json) {
      await printAnswer(JSON.stringify(history, null, 2));
      return;
    }
    const { from, to, gaps, bytes, files, verifiedAt } = history;
    const lines = [
      `moments from ${from} to ${to}, ${sizeText(bytes)}, ${verifiedAt === null ? "not verified" : `verified ${verifiedAt}`}`,
      ...gaps.map((gap) => `gap in ${gap.file} from ${gap.from} to ${gap.to} (${gap.reason})`),
      ...files.map((one) => `${one.file}  ${one.from} to ${one.to}  ${sizeText(one.bytes)}`),
    ];
    await printAnswer(lines.join("\n"));
  });
