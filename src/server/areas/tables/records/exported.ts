import { AppError } from "../../../../kernel/errors.ts";
import { Scheduler } from "../../../../kernel/time/scheduler.ts";
import { callerNameOf, type Principal } from "../../../access/principal.ts";
import type { TableAddress } from "../../../access/table-door.ts";
import type { TableRecord } from "../../../config/types.ts";
import type { TableModel } from "../model/model.ts";
import type { TableService } from "../service.ts";
import { type Course, type ReferringPlace, referringIds } from "./far-referrers.ts";

/** Validity of the URLs of exported files. */
const URLS_SECONDS = 3_600;
/** Name of the share of long reads of callers without a name. */
const NOBODY = "export";

/** A record that belongs to the export of a user. `place` is as in `shared/films`, and in an instance `shared/red/films`. */
export interface ExportedRecord {
  place: string;
  record: TableRecord;
}

interface ExportDeps {
  service: Pick<TableService, "get" | "signing" | "modelOf">;
  /** The file with the table of users. */
  own: ReferringPlace;
  /** Returns the files of other namespaces in which records may refer to the user. */
  others(course: Course): AsyncIterable<ReferringPlace>;
}

const turns = new Scheduler();

/**
 * Yields the user's record in the table of users and the records that refer to it, table by table, as far as the caller may read
 * them. Each is read through the rules on its own, so memory holds one record and a page of ids. A record that changes meanwhile is
 * there as it was when its turn came.
 */
export async function* exportedRecords(
  deps: ExportDeps,
  principal: Principal,
  userId: string,
  signal: AbortSignal,
): AsyncGenerator<ExportedRecord, void> {
  const pace = turns.pace();
  const course = { pace, signal };
  const readable = async (place: ReferringPlace, model: TableModel, id: string): Promise<ExportedRecord | null> => {
    signal.throwIfAborted();
    if (pace.isDue()) await pace.next();
    const { namespace, instanceId } = place;
    const record = await readAs(deps.service, { principal, signal }, { namespace, instanceId, table: model.name }, id);
    return record === null ? null : { place: placeOf(place, model), record };
  };
  async function* referring(place: ReferringPlace, models: ReadonlySet<TableModel>): AsyncGenerator<ExportedRecord> {
    for (const model of models) {
      for await (const id of referringIds(place, { model, id: userId }, course)) {
        if (model === users && id === userId) continue;
        const found = await readable(place, model, id);
        if (found !== null) yield found;
      }
    }
  }
  const { own } = deps;
  const users = own.target.model;
  await pace.next();
  const self = await readable(own, users, userId);
  if (self !== null) yield self;
  // The users themselves first: a place is never left and entered again.
  yield* referring(own, new Set([users, ...tablesOf(own)]));
  for await (const place of deps.others(course)) yield* referring(place, tablesOf(place));
}

const tablesOf = ({ target }: ReferringPlace): Set<TableModel> =>
  new Set(target.model.incoming.map(({ from }) => from));

const placeOf = ({ namespace, instanceId }: ReferringPlace, { name }: TableModel): string =>
  [namespace, ...(instanceId === null ? [] : [instanceId]), name].join("/");

/** Reads a record with its files' URLs signed; null where the caller may not, or it is gone. */
async function readAs(
  service: ExportDeps["service"],
  { principal, signal }: { principal: Principal; signal: AbortSignal },
  address: TableAddress,
  id: string,
): Promise<TableRecord | null> {
  const asked = {
    principal,
    callerName: callerNameOf(principal, () => NOBODY),
    signal,
    query: () => ({ signFiles: URLS_SECONDS }),
    peek: () => String(URLS_SECONDS),
  };
  try {
    const modelOf = () => service.modelOf(address);
    return await service.signing.read(asked, modelOf, (reading) => {
      return service.get({ ...reading, query: () => ({}) }, address, id);
    });
  } catch (cause) {
    if (cause instanceof AppError && [401, 403, 404].includes(cause.status)) return null;
    throw cause;
  }
}
