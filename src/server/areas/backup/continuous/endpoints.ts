import { Type } from "typebox";
import type { Clock } from "../../../../kernel/clock.ts";
import { AppError, badField, notFound } from "../../../../kernel/errors.ts";
import { nullable } from "../../../../kernel/schema/types.ts";
import { isoTime } from "../../../../kernel/time/iso-datetime.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { Reply } from "../../../http/reply.ts";
import { momentIn } from "./restore/moment.ts";
import type { TenantRestores } from "./restore/tenants.ts";
import type { ContinuousBackup } from "./service.ts";
import { openStore } from "./store/store.ts";

const TAG = "Administration";
const Time = Type.String({ format: "date-time" });

interface EndpointDeps {
  /** null: none is declared, or this is a drill. */
  backup: Pick<ContinuousBackup, "verify" | "state" | "settings" | "place"> | null;
  /** null: as `backup`. */
  restores: Pick<TenantRestores, "restore" | "timeline"> | null;
  isDrill: boolean;
  clock: Clock;
  /** Writes an entry of the audit log, and resolves when it is on disk. */
  audit: { record(change: { action: string; target: string; after?: unknown }): Promise<void> };
}

const Span = { from: Time, to: Time };
const Shown = Type.Object(
  {
    place: Type.String({ description: "Where it is stored, in words" }),
    everyMs: Type.Integer(),
    keepDays: Type.Integer(),
    ok: Type.Boolean(),
    lagMs: Type.Integer({ description: "Age of the oldest commit or content that is not in the store; 0: all are" }),
    lagBytes: Type.Integer(),
    lastAt: nullable(Time),
    verifiedAt: nullable(Time),
    verified: nullable(Type.Boolean({ description: "Whether the last verification succeeded; null: there was none" })),
    message: nullable(Type.String({ description: "A problem, or why there is no history" })),
    history: nullable(
      Type.Object(
        {
          spans: Type.Array(Type.Object(Span), {
            description:
              "Times in which there are moments, oldest first: one for all files; of one, each time that it was made",
          }),
          gaps: Type.Array(Type.Object({ ...Span, file: Type.String(), reason: Type.String() }), {
            description: "Times in them of which moments are missing: the newest 100, oldest first",
          }),
          copies: Type.Array(Type.Object({ at: Time, files: Type.Integer(), bytes: Type.Integer() }), {
            description: "Full copies by minute: the newest 200, oldest first",
          }),
          files: Type.Integer({ description: "Databases that are not removed" }),
          bytes: Type.Integer({ description: "Bytes of all copies and entries" }),
        },
        {
          description:
            "Moments that can be restored; null: the place cannot be read, or the first copies are not complete",
        },
      ),
    ),
  },
  { description: "How far it is, and what can be restored" },
);

const Restored = Type.Object(
  {
    at: Type.String({ format: "date-time", description: "The moment" }),
    tables: Type.Record(
      Type.String(),
      Type.Object({
        // biome-ignore lint/suspicious/noThenProperty: a number, and the name that the answer has
        then: Type.Integer({ description: "Records at that moment" }),
        now: Type.Integer({ description: "Records before the restore" }),
      }),
    ),
  },
  { description: "Records by table" },
);

export function continuousEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  const { backup, isDrill, clock, audit } = deps;
  const verify = endpoint(
    "POST /api/admin/backups/continuous/verify",
    {
      tag: TAG,
      summary: "Verify the continuous backup",
      description:
        "Restores every database from the place into a scratch folder, as of a commit, and compares it with the live one, page by " +
        "page. `checks.continuous` of `GET /api/health?full` has the result. 404 without `backups.continuous`, 409 while one runs, " +
        "503 in a drill.",
      caller: "serviceKey",
      place: "core",
      answers: { 202: Type.Object({ startedAt: Time }, { description: "It goes on after the answer" }) },
      errors: [404, 409, 503],
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, ["backups", "*", "*", "write"]);
      query();
      if (isDrill) throw new AppError(503, "This server runs as a drill: it makes and verifies no backups");
      if (backup === null) throw notFound("The config declares no backups.continuous");
      backup.verify();
      await audit.record({ action: "backup.verify", target: "backups/continuous" });
      return new Reply(202, { startedAt: isoTime(clock.now()) });
    },
  );
  return [stateEndpoint(deps), verify, restoreEndpoint(deps)];
}

function stateEndpoint({ backup, restores, isDrill, clock }: EndpointDeps): Endpoint {
  return endpoint(
    "GET /api/admin/backups/continuous",
    {
      tag: TAG,
      summary: "Get how far the continuous backup is, and what can be restored",
      description:
        "Of one database with `file`. 404 without `backups.continuous` and for an unknown `file`, 503 in a drill.",
      caller: "serviceKey",
      place: "core",
      query: {
        file: Type.Optional(
          Type.String({
            description: "Path of a database without `.db`; `databases/` may be left out: `workspaces/w42`",
          }),
        ),
      },
      answers: { 200: Shown },
      errors: [404, 503],
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, ["backups", "*", "*", "read"]);
      const { file = null } = query();
      if (isDrill) throw new AppError(503, "This server runs as a drill: it reads no continuous backup");
      if (backup === null || restores === null) throw notFound("The config declares no backups.continuous");
      const found = await restores.timeline(file).catch((cause: unknown) => {
        if (cause instanceof AppError && cause.status === 503) return cause.message;
        throw cause;
      });
      const [history, reason] = typeof found === "string" ? [null, found] : [found, null];
      const { ok, lagMs, lagBytes, lastAt, verifiedAt, verified, message } = backup.state;
      const place = openStore(backup.place, clock).name;
      const times = { lastAt: timeOf(lastAt), verifiedAt: timeOf(verifiedAt) };
      const state = { ok, lagMs, lagBytes, ...times, verified, message: message ?? reason };
      return { place, ...backup.settings, ...state, history };
    },
  );
}

const timeOf = (at: number | null): string | null => (at === null ? null : isoTime(at));

function restoreEndpoint({ restores, isDrill, audit }: EndpointDeps): Endpoint {
  return endpoint(
    "POST /api/admin/instances/:namespace/:id/restore",
    {
      tag: TAG,
      summary: "Give an instance the content of an earlier moment",
      description:
        "From the continuous backup. The present content stays in it: a restore can be undone by another one. An instance that was " +
        "deleted is made again. Requests to it wait meanwhile, 503 after 20 seconds, and subscriptions get `resync`. Files of its " +
        "records come back, except those of buckets with a `backend`. With `preview` nothing changes. For the root key. 409 while " +
        "it is restored, 503 in a drill and while the place fails.",
      caller: "serviceKey",
      place: "instance",
      refusesScopedKeys: true,
      path: { namespace: "A declared namespace with instances", id: "The instance id, of a deleted one too" },
      body: Type.Object({
        at: Type.String({
          description: "ISO 8601 with a zone, up to milliseconds; after the last moment it is the last",
        }),
        preview: Type.Optional(Type.Boolean()),
      }),
      answers: { 200: Restored },
      errors: [404, 409, 503],
    },
    async ({ params: { namespace, id }, query, body }) => {
      query();
      const { at, preview = false } = await body();
      const moment = momentIn(at);
      if (moment === null) {
        throw badField("at", "pattern_mismatch", `at must be a time with a zone, as 2026-11-26T14:03:19Z, got "${at}"`);
      }
      if (isDrill) throw new AppError(503, "This server runs as a drill: it restores nothing");
      if (restores === null) throw notFound("The config declares no backups.continuous");
      const outcome = await restores.restore({ namespace, instanceId: id }, { at: moment, isPreview: preview });
      if (!preview) {
        await audit.record({ action: "instance.restore", target: `db/${namespace}/${id}`, after: { at: outcome.at } });
      }
      return outcome;
    },
  );
}
