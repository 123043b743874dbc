import { Type } from "typebox";
import { notFound } from "../../../kernel/errors.ts";
import { nullable } from "../../../kernel/schema/types.ts";
import { isoTime } from "../../../kernel/time/iso-datetime.ts";
import type { ServiceKeyPrincipal } from "../../access/keys/service-keys.ts";
import type { Principal } from "../../access/principal.ts";
import { requireServiceKey } from "../../access/service-key-right.ts";
import type { ScheduledBackupsConfig } from "../../config/types.ts";
import { answerFile } from "../../http/bodies/file-answer.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { Reply } from "../../http/reply.ts";
import { timeOfOwn } from "./destination/names.ts";
import type { BackupsService, Links, ListedBackup, Run } from "./service.ts";

const TAG = "Administration";
const CONTENT_TYPE = "application/zstd";
const RUNS = "/api/admin/backups/runs";

const Time = Type.String({ format: "date-time" });
const Backup = Type.Object({
  name: Type.String(),
  createdAt: Time,
  size: Type.Integer({ description: "Bytes" }),
  verifiedAt: nullable(Type.String({ format: "date-time", description: "When it last held; null: unknown" })),
  failed: Type.Boolean({ description: "It did not hold when it was made" }),
});
const RunRecord = Type.Object(
  {
    id: Type.String(),
    action: Type.Enum(["create", "verify"]),
    backup: nullable(Type.String({ description: "Its name, once it has one" })),
    state: Type.Enum(["waiting", "running", "done", "failed"]),
    startedAt: nullable(Time),
    endedAt: nullable(Time),
    error: nullable(Type.String()),
    files: nullable(Type.Integer({ description: "In the backup" })),
    contentBytes: nullable(Type.Integer({ description: "Of these files" })),
    databases: nullable(Type.Integer({ description: "Those that were checked; null: the backup was not verified" })),
  },
  { description: "It goes on after the answer" },
);
const Listing = Type.Object(
  {
    place: Type.String({ description: "Where they are stored, in words" }),
    schedule: nullable(Type.String()),
    keep: Type.Integer({ description: "The newest backups that are kept" }),
    continuous: Type.Boolean({ description: "Whether there is a continuous backup as well; false in a drill" }),
    backups: Type.Array(Backup, { description: "Newest first" }),
    runs: Type.Array(RunRecord, { description: "Since the start, newest first" }),
  },
  { description: "The backups, and what has been done with them since the start" },
);
const NAME = { name: "The name of a backup" };
const Bytes = Type.String({ format: "binary" });

type Action = "read" | "write" | "download";
const requireRight = (principal: Principal, action: Action): void =>
  requireServiceKey(principal, ["backups", "*", "*", action]);

interface EndpointDeps {
  service: BackupsService;
  links: Links;
  config: Pick<ScheduledBackupsConfig, "keep"> & { schedule: string | null; continuous: boolean };
  /** Writes an entry of the audit log, and resolves when it is on disk. */
  audit(change: { action: string; target: string; after?: unknown }): Promise<void>;
}

export function backupEndpoints(deps: EndpointDeps): readonly Endpoint[] {
  return [...readEndpoints(deps), ...runEndpoints(deps), ...downloadEndpoints(deps)];
}

function readEndpoints({ service, config: { schedule, keep, continuous } }: EndpointDeps): readonly Endpoint[] {
  const list = endpoint(
    "GET /api/admin/backups",
    {
      tag: TAG,
      summary: "List the backups",
      caller: "serviceKey",
      place: "core",
      answers: { 200: Listing },
      errors: [503],
    },
    async ({ principal, query }) => {
      requireRight(principal, "read");
      query();
      const backups = await service.list();
      const place = service.destination.name;
      return { place, schedule, keep, continuous, backups: backups.map(backupOf), runs: service.runs().map(runOf) };
    },
  );
  const run = endpoint(
    `GET ${RUNS}/:id`,
    {
      tag: TAG,
      summary: "Get how far a backup or verification is",
      caller: "serviceKey",
      place: "core",
      path: { id: "The id of a run since the start; the newest 20 are known" },
      answers: { 200: RunRecord },
      errors: [404],
    },
    ({ principal, params: { id }, query }) => {
      requireRight(principal, "read");
      query();
      const found = service.runs().find((one) => one.id === id);
      if (found === undefined) throw notFound(`There is no run "${id}" since the start`);
      return runOf(found);
    },
  );
  return [list, run];
}

function runEndpoints({ service, audit }: EndpointDeps): readonly Endpoint[] {
  const begun = (run: Run): Reply => new Reply(202, runOf(run), { location: `${RUNS}/${run.id}` });
  const create = endpoint(
    "POST /api/admin/backups",
    {
      tag: TAG,
      summary: "Make a backup now",
      description:
        "Into the place of the scheduled ones, with the same rotation; without `backups` in the config into `backups/` of the " +
        "data directory, where the newest 3 are kept. 409 while one is made or verified, 503 in a drill.",
      caller: "serviceKey",
      place: "core",
      answers: { 202: RunRecord },
      errors: [409, 503],
    },
    async ({ principal, query }) => {
      requireRight(principal, "write");
      query();
      const run = await service.create();
      await audit({ action: "backup.create", target: "backups", after: { run: run.id } });
      return begun(run);
    },
  );
  const verify = endpoint(
    "POST /api/admin/backups/:name/verify",
    {
      tag: TAG,
      summary: "Restore a backup into a scratch folder and check everything in it",
      description: "As `platform verify-backup` does. 409 while a backup is made or verified, 503 in a drill.",
      caller: "serviceKey",
      place: "core",
      path: NAME,
      answers: { 202: RunRecord },
      errors: [404, 409, 503],
    },
    async ({ principal, params: { name }, query }) => {
      requireRight(principal, "write");
      query();
      const run = await service.verify(name);
      await audit({ action: "backup.verify", target: `backups/${name}`, after: { run: run.id } });
      return begun(run);
    },
  );
  return [create, verify];
}

function downloadEndpoints({ service, links, audit }: EndpointDeps): readonly Endpoint[] {
  const link = endpoint(
    "POST /api/admin/backups/:name/link",
    {
      tag: TAG,
      summary: "Get a link with which a browser downloads a backup",
      description: "It counts once, within a minute. `HEAD` does not use it up.",
      caller: "serviceKey",
      place: "core",
      path: NAME,
      answers: {
        200: Type.Object({ path: Type.String({ description: "Of this server, with a query" }), expiresAt: Time }),
      },
      errors: [404, 503],
    },
    async ({ principal, params, query }) => {
      requireRight(principal, "download");
      query();
      const { name } = await service.find(params.name);
      await audit({ action: "backup.download", target: `backups/${name}` });
      // The server itself makes no requests.
      const { ticket, expiresAt } = links.issue(name, principal as ServiceKeyPrincipal);
      return { path: `/api/admin/backups/${name}?ticket=${ticket}`, expiresAt: isoTime(expiresAt) };
    },
  );
  const download = endpoint(
    "GET /api/admin/backups/:name",
    {
      tag: TAG,
      summary: "Download a backup",
      description: "It contains the server's secrets: who may download it may do everything.",
      caller: "rules",
      place: "core",
      path: NAME,
      query: { ticket: Type.Optional(Type.String({ description: "Of a link" })) },
      headers: [{ name: "Range" }, { name: "If-None-Match" }, { name: "If-Range" }],
      answers: {
        200: { description: "The archive", schema: Bytes, contentType: CONTENT_TYPE },
        206: { description: "The bytes of the range", schema: Bytes, contentType: CONTENT_TYPE },
        304: { description: "The archive has this ETag" },
      },
      errors: [400, 404, 416, 503],
    },
    async ({ principal, params, peek, query, request, address }) => {
      const ticket = peek("ticket");
      if (ticket === null) requireRight(principal, "download");
      // Download managers and previews of links ask for the size first, which transfers nothing.
      else if (request.method === "HEAD") links.check(ticket, params.name, address);
      else links.take(ticket, params.name, address);
      query();
      const { name, sizeBytes } = await service.find(params.name);
      // For a link, the entry was written when the key asked for it.
      if (ticket === null) await audit({ action: "backup.download", target: `backups/${name}` });
      return answerFile(request, {
        etag: `"${name}-${sizeBytes}"`,
        size: sizeBytes,
        lastModified: new Date(timeOfOwn(name) ?? 0),
        headers: {
          "content-type": CONTENT_TYPE,
          "content-disposition": `attachment; filename="${name}"`,
          "cache-control": "private, no-store",
        },
        body: (range) => service.destination.body(name, range),
      });
    },
  );
  return [link, download];
}

const backupOf = ({ name, at, sizeBytes, verifiedAt, isFailed }: ListedBackup) => ({
  name,
  createdAt: isoTime(at),
  size: sizeBytes,
  verifiedAt: timeOrNull(verifiedAt),
  failed: isFailed,
});

const runOf = ({ id, action, name, state, startedAt, endedAt, error, found }: Run) => ({
  id,
  action,
  backup: name,
  state,
  startedAt: timeOrNull(startedAt),
  endedAt: timeOrNull(endedAt),
  error,
  files: found?.fileCount ?? null,
  contentBytes: found?.contentBytes ?? null,
  databases: found?.databaseCount ?? null,
});

const timeOrNull = (at: number | null): string | null => (at === null ? null : isoTime(at));
