import { join } from "node:path";
import { roomsLayout } from "../../../schema/migrations/index.ts";
import { noteRevocation } from "../../kernel/answer-gate.ts";
import { VERSION } from "../../kernel/version.ts";
import { createServiceKeys, type ServiceKeys } from "../access/keys/service-keys.ts";
import { SERVER } from "../access/principal.ts";
import { createPrincipals, type Principals } from "../access/principals.ts";
import { createTokenVerifier } from "../access/tokens.ts";
import { type AdminArea, createAdminArea } from "../areas/admin/index.ts";
import { type AnalyticsArea, createAnalyticsArea } from "../areas/analytics/index.ts";
import { type AuditArea, createAuditArea } from "../areas/audit/index.ts";
import { type AuthArea, createAuthArea } from "../areas/auth/index.ts";
import { type ContinuousArea, createContinuousArea } from "../areas/backup/continuous/index.ts";
import { type BackupsArea, createBackupsArea } from "../areas/backup/index.ts";
import { type ClientFilesArea, createClientFilesArea } from "../areas/client-files/index.ts";
import { type ConfigEditorArea, createConfigEditorArea } from "../areas/config-editor/index.ts";
import { createSqlArea, type SqlArea } from "../areas/d1/index.ts";
import type { FunctionsArea } from "../areas/functions/index.ts";
import { createKeyValueArea, type KeyValueArea } from "../areas/kv/index.ts";
import { createPushArea, moveDevices, type PushArea } from "../areas/push/index.ts";
import { RealtimeArea } from "../areas/realtime/index.ts";
import { RoomsArea } from "../areas/rooms/index.ts";
import { countFilesOf, createStorageArea, moveFilesOf, type StorageArea } from "../areas/storage/index.ts";
import { createSystemArea, type SystemArea } from "../areas/system/index.ts";
import { ownFigures } from "../areas/system/processes.ts";
import { createTablesArea, type TablesArea } from "../areas/tables/index.ts";
import type { TlsArea } from "../areas/tls/index.ts";
import { createTriggersArea, type TriggersArea } from "../areas/triggers/index.ts";
import {
  adminUser,
  createUsersArea,
  type FollowingRecords,
  followAccounts,
  type UsersArea,
} from "../areas/users/index.ts";
import { createVectorArea, type VectorArea } from "../areas/vectorize/index.ts";
import { defineWebhooks } from "../areas/webhooks/index.ts";
import type { AppAccess } from "../config/app/index.ts";
import { scheduledBackups } from "../config/sections/backups.ts";
import { usersPlace } from "../config/sections/users-table.ts";
import type { PlatformConfig } from "../config/types.ts";
import { layOut } from "../db/index.ts";
import { RATE_LIMITS } from "../http/rate-limit.ts";
import { createJobsArea, type JobsArea } from "../jobs/index.ts";
import { Sockets } from "../sockets/index.ts";
import type { Base } from "./base.ts";
import { gatedApp } from "./gated-app.ts";
import type { Phase, Stoppable, Stopping } from "./stopping.ts";
import { createUserAccess } from "./user-access.ts";
import { openVectorLibrary, type VectorLibrary, vectorIndexes } from "./vector-library.ts";

/** The open areas by name. */
export interface Areas {
  audit: AuditArea;
  jobs: JobsArea;
  /** The records that follow accounts. */
  userRecords: FollowingRecords;
  auth: AuthArea;
  access: { serviceKeys: ServiceKeys; principals: Principals };
  admin: AdminArea;
  sockets: Sockets;
  users: UsersArea;
  vectorLibrary: VectorLibrary;
  tables: TablesArea;
  kv: KeyValueArea;
  d1: SqlArea;
  vectorize: VectorArea;
  rooms: RoomsArea;
  storage: StorageArea;
  realtime: RealtimeArea;
  analytics: AnalyticsArea;
  push: PushArea;
  backups: BackupsArea;
  continuous: ContinuousArea;
  triggers: TriggersArea;
  /** The TLS area; null without `server.tls`. */
  tls: Stoppable & { readonly area: TlsArea | null };
  system: SystemArea;
  configEditor: ConfigEditorArea;
  clientFiles: ClientFilesArea;
  /** The area of routes; null without `routes`. */
  functions: Stoppable & { readonly area: FunctionsArea | null };
}

/** The context in which an area is opened. */
interface Context {
  config: PlatformConfig;
  base: Base;
  /** The areas opened before. Functions that run later may use all of them. */
  areas: Areas;
  app: AppAccess;
}

type Opening<Area> = (context: Context) => Area | Promise<Area>;

interface Definition<Area> {
  open: Opening<Area>;
  stop: { phase: Phase; part: (area: Area) => Stoppable } | null;
}

/** Returns a digest of what decides about the records that a constant rule shows: the declared tables, and this version. */
function viewsKeyOf({ databases, realtime }: PlatformConfig): string {
  const declared = JSON.stringify([VERSION, databases, realtime], (_, value: unknown) =>
    typeof value === "function" || value instanceof RegExp || typeof value === "bigint" ? String(value) : value,
  );
  return new Bun.CryptoHasher("sha256").update(declared).digest("base64");
}

/** An area that has nothing to stop. */
const lasting = <Area>(open: Opening<Area>): Definition<Area> => ({ open, stop: null });

const stopping = <Area extends Stoppable>(phase: Phase, open: Opening<Area>): Definition<Area> => ({
  open,
  stop: { phase, part: (area) => area },
});

/** Every area, in the order in which they open: how it opens, and the phase of a stop in which it ends. */
const AREAS: { readonly [Name in keyof Areas]: Definition<Areas[Name]> } = {
  audit: stopping("records", ({ config, base }) =>
    createAuditArea({ ...base, file: base.systemFile, days: config.audit?.days }),
  ),
  jobs: stopping("requests", ({ config, base, app }) =>
    createJobsArea({
      ...base,
      jobs: config.jobs ?? {},
      cron: config.cron ?? {},
      app: () => app,
      audit: (change) => base.audit.record(change),
    }),
  ),
  userRecords: stopping("accounts", ({ config, base }) => {
    const users = usersPlace(config.auth);
    const place = users === null ? null : `${users.namespace}.${users.table}`;
    return followAccounts({ file: base.systemFile, place, logger: base.logger });
  }),
  auth: stopping("accounts", ({ config, base, areas, app }) =>
    createAuthArea({
      ...base,
      queue: areas.jobs.queue,
      config: config.auth ?? {},
      rateLimits: config.rateLimits,
      file: base.systemFile,
      secret: base.secrets.jwtSecret,
      notes: {
        isWatched: (event) => areas.triggers.accounts.isWatched(event),
        note: (tx, { account, ...change }) => areas.triggers.accounts.note(tx, { ...change, user: adminUser(account) }),
      },
      onWrongGuess: ({ userId, email, way }) =>
        base.audit.failed(userId === null ? "users" : `users/${userId}`, { email, way }),
      lookups: () => areas.tables.lookups,
      app: () => app,
      userOf: adminUser,
      records: areas.userRecords,
      holdings: {
        countFiles: countFilesOf,
        move(tx, of) {
          const isDone = moveFilesOf(tx, of);
          moveDevices.run(tx, of);
          return isDone;
        },
      },
    }),
  ),
  access: lasting(({ config, base: { secrets, clock }, areas }) => {
    const secret = secrets.jwtSecret;
    const declared = config.serviceKeys ?? {};
    const serviceKeys = createServiceKeys({ rootKey: secrets.serviceKey, secret, declared, clock });
    const principals = createPrincipals({
      serviceKeys,
      tokens: createTokenVerifier({ secret, keys: areas.auth.tokenKeys, issuers: areas.auth.issuers, clock }),
      sessions: areas.auth.sessions,
      administrators: () => areas.admin.sessions,
      account: areas.auth.accounts.get,
    });
    return { serviceKeys, principals };
  }),
  admin: lasting(({ config, base, areas }) =>
    createAdminArea({
      ...base,
      isEnabled: config.admin !== false,
      file: base.systemFile,
      secret: base.secrets.jwtSecret,
      serviceKeys: areas.access.serviceKeys,
    }),
  ),
  sockets: lasting(
    ({ base, areas }) =>
      new Sockets({
        ...base,
        server: base.listener.sockets,
        principals: areas.access.principals,
        sessions: areas.auth.sessions,
      }),
  ),
  users: lasting(({ config, base: { clock, gate }, areas }) => {
    const { auth, access } = areas;
    const place = usersPlace(config.auth);
    return createUsersArea({
      accounts: auth.accounts,
      config: config.auth ?? {},
      limit: auth.limit,
      requirePresent: access.principals.requirePresent,
      clock,
      gate,
      sources: {
        async *records(...asked) {
          if (place !== null) yield* areas.tables.exportedRecords(place, ...asked);
        },
        files: (...asked) => areas.storage.exportedFiles(...asked),
      },
    });
  }),
  vectorLibrary: stopping("records", ({ config, base }) => openVectorLibrary(config, base.dataDirectory)),
  tables: stopping("hooks", ({ config, base, areas, app }) => {
    return createTablesArea({
      ...base,
      databases: config.databases ?? {},
      directory: join(base.dataDirectory, "databases"),
      viewsKey: viewsKeyOf(config),
      requirePresent: areas.access.principals.requirePresent,
      app: () => app,
      onCommit: (address, groups) => areas.sockets.rights.committed(address, groups),
      onChange(address, groups, seqs) {
        // First: deliveries must follow the current rights.
        areas.sockets.rights.announced(address, groups);
        areas.realtime.publishChanges(address, groups, seqs);
      },
      onDelete(address) {
        areas.sockets.rights.deleted(address);
        areas.realtime.endInstance(address);
        areas.storage.recordFiles.instanceChanged(address);
      },
      onReplace(address) {
        areas.sockets.rights.deleted(address);
        areas.realtime.restartInstance(address);
        areas.storage.recordFiles.instanceChanged(address);
      },
      queue: areas.jobs.queue,
      embeddingsLimit: config.rateLimits?.embeddings ?? RATE_LIMITS.embeddings,
      vectorLibrary: () => areas.vectorLibrary.path,
      prepareJob: (name, data, options) => areas.jobs.prepare(name, data, options),
      audit: (change) => base.audit.record(change),
      account: areas.auth.accounts.get,
      files: () => areas.storage.recordFiles,
      accounts: () => areas.userRecords.accounts(),
      accountsChanged: () => areas.userRecords.carriedOut(),
      serviceKey: areas.access.serviceKeys.named,
      secret: base.secrets.jwtSecret,
      publicUrl: config.server?.publicUrl?.replace(/\/$/, "") ?? null,
      outbox: (address) => base.outboxes.optionsOf({ kind: "tables", ...address }),
    });
  }),
  kv: stopping("resources", ({ config, base }) =>
    createKeyValueArea({ ...base, namespaces: Object.keys(config.kv ?? {}) }),
  ),
  d1: stopping("resources", ({ config, base, areas }) =>
    createSqlArea({
      ...base,
      audit: (change) => base.audit.record(change),
      databases: Object.keys(config.d1 ?? {}),
      tables: (address) => areas.tables.stored(address),
    }),
  ),
  vectorize: stopping("resources", ({ config, base, areas }) =>
    createVectorArea({ ...base, indexes: vectorIndexes(config), extensionPath: areas.vectorLibrary.path }),
  ),
  rooms: stopping(
    "rooms",
    ({ config, base, areas, app }) =>
      new RoomsArea({
        ...base,
        config: config.rooms ?? {},
        sockets: areas.sockets,
        sessions: areas.auth.sessions,
        file: base.engine.open(join(base.dataDirectory, "rooms.db"), { migrate: layOut(roomsLayout) }),
        lookups: areas.tables.lookups,
        audit: (change) => base.audit.record(change),
        app: () => app,
      }),
  ),
  storage: stopping("accounts", ({ config, base, areas }) =>
    createStorageArea({
      ...base,
      buckets: config.storage?.buckets ?? {},
      thumbs: config.storage?.thumbs,
      objectStores: base.isDrill ? { mode: "readOnly" } : { mode: "own", takeOver: base.takeOver },
      file: base.systemFile,
      onContent: (path) => base.capture?.content(path),
      secret: base.secrets.jwtSecret,
      account: areas.auth.accounts.get,
      serviceKey: areas.access.serviceKeys.named,
      references: () => areas.tables.fileReferences,
      define: areas.jobs.queue.define,
      requirePresent: areas.access.principals.requirePresent,
      publicUrl: config.server?.publicUrl,
      notes: {
        isWatched: (bucket, event) => areas.triggers.files.isWatched(bucket, event),
        note: (tx, change) => areas.triggers.files.note(tx, change),
      },
      lookups: areas.tables.lookups,
      rights: areas.sockets.rights,
    }),
  ),
  realtime: stopping(
    "realtime",
    ({ config, base, areas }) =>
      new RealtimeArea({
        ...base,
        config: config.realtime ?? {},
        sockets: areas.sockets,
        tables: areas.tables.door,
        lookups: areas.tables.lookups,
      }),
  ),
  analytics: stopping("records", ({ config, base }) =>
    createAnalyticsArea({
      ...base,
      config,
      requestLog: config.analytics?.requestLog !== false,
      slowMs: config.analytics?.slowMs,
      isDevelopment: base.guide !== null,
      trackLimit: config.rateLimits?.events ?? RATE_LIMITS.events,
    }),
  ),
  push: stopping("requests", ({ config, base, areas }) =>
    createPushArea({
      ...base,
      queue: areas.jobs.queue,
      config: config.push ?? {},
      file: base.systemFile,
      audit: (change) => base.audit.record(change),
    }),
  ),
  backups: stopping("requests", ({ config, base, areas }) => {
    const { schedules, queue } = areas.jobs;
    const area = createBackupsArea({
      ...base,
      config: scheduledBackups(config.backups),
      isContinuous: base.continuous !== undefined,
      schedules,
      queue,
      principals: areas.access.principals,
    });
    base.health.add("backup", () => {
      const { lastBackupAt, lastBackupVerifiedAt, hasLastFailed } = area.load;
      const timeOf = (at: number): string | null => (at === 0 ? null : new Date(at).toISOString());
      return {
        ok: !hasLastFailed && !area.isOverdue(),
        lastAt: timeOf(lastBackupAt),
        verifiedAt: timeOf(lastBackupVerifiedAt),
      };
    });
    return area;
  }),
  continuous: stopping("copies", ({ base, areas }) =>
    createContinuousArea({
      ...base,
      config: base.continuous,
      tenants: () => ({
        ...areas.tables.tenants,
        replace: (address, { database, claims, fetchFiles }) =>
          areas.storage.recordFiles.restoring(address, claims, async () => {
            await fetchFiles();
            await areas.tables.tenants.replace(address, database);
          }),
      }),
    }),
  ),
  triggers: stopping("records", async ({ config, base, areas, app }) => {
    const { queue } = areas.jobs;
    defineWebhooks({ ...base, webhooks: config.webhooks ?? {}, queue });
    const triggers = createTriggersArea({
      ...base,
      config,
      queue,
      pass: areas.jobs.pass,
      filters: areas.tables.filters,
      tableFile: areas.tables.file,
      app: () => app,
    });
    // What a crash has left of merges of accounts is done here: it sets triggers off.
    const users = usersPlace(config.auth);
    areas.triggers = triggers;
    if (users !== null) {
      const records = areas.tables.accountRecords(users);
      await areas.userRecords.attach(records, areas.auth.accounts.changeAsked);
    }
    await areas.tables.begin();
    return triggers;
  }),
  tls: stopping("requests", async ({ config, base }) => {
    const { tls, publicUrl } = config.server ?? {};
    // Loaded here: a server without it pays nothing.
    const area =
      tls === undefined
        ? null
        : (await import("../areas/tls/index.ts")).createTlsArea({ ...base, config: tls, publicUrl });
    return { area, stop: (): void | Promise<void> => area?.stop() };
  }),
  clientFiles: lasting(() => createClientFilesArea()),
  system: stopping("realtime", ({ config, base, areas }) => {
    const { isDrill, clock, engine, health, logs, dataDirectory, foreground, workers } = base;
    const { realtime, rooms, analytics, backups, continuous, jobs } = areas;
    return createSystemArea({
      config,
      isDrill,
      clock,
      health,
      logs,
      sockets: areas.sockets,
      watched: { dataDirectory, engine, jobs: () => jobs.load },
      keyUse: areas.access.serviceKeys.lastUsed,
      processes: async () => [
        await ownFigures(() => foreground.answered - (workers?.answered ?? 0)),
        ...(workers?.figures() ?? []),
      ],
      load: () => ({
        ...engine.load,
        ...backups.load,
        continuous: continuous.state(),
        jobs: jobs.load,
        realtimeSockets: realtime.openSockets,
        roomSockets: rooms.openSockets,
        rooms: rooms.liveRooms,
        droppedRequests: analytics.droppedRequests,
      }),
    });
  }),
  configEditor: lasting(({ base: { configFile, dataDirectory, audit } }) =>
    createConfigEditorArea({ file: configFile, dataDirectory, audit: (change) => audit.record(change) }),
  ),
  functions: stopping("hooks", async ({ config, base, areas, app }) => {
    if (config.routes === undefined) return { area: null, stop() {} };
    // Loaded here: most configs have no routes.
    const { createFunctionsArea } = await import("../areas/functions/index.ts");
    const { server: sockets, meter, rights } = areas.sockets;
    const area = await createFunctionsArea({
      ...base,
      routes: config.routes,
      app,
      lookups: areas.tables.lookups,
      sockets,
      meter,
      rights,
      sessions: areas.auth.sessions,
      principals: areas.access.principals,
    });
    return { area, stop: area.stop };
  }),
};

/** Creates the server's own access to the areas, for hooks, rooms and embedders. Frozen, as all of them share it. [CF205] */
const createAppAccess = (areas: Areas): AppAccess =>
  Object.freeze<AppAccess>({
    db: (namespace, instanceId) => areas.tables.serverAccessor(namespace, instanceId),
    storage: (bucket) => areas.storage.accessor(SERVER, bucket),
    kv: (name) => areas.kv.accessor(name),
    sql: (name) => areas.d1.accessor(name),
    vectors: (name) => areas.vectorize.accessor(name),
    broadcast: (channel, event, payload) => areas.realtime.broadcast(channel, event, payload),
    as: (auth) => createUserAccess(areas, auth),
    get jobs() {
      return Object.freeze(areas.jobs.accessor);
    },
    get mail() {
      return Object.freeze(areas.auth.mail);
    },
    get push() {
      return Object.freeze(areas.push.accessor);
    },
    get users() {
      return Object.freeze(areas.users.accessor);
    },
  });

/** Opens all areas, and registers how they stop. Errors: those of the first area that does not open. */
export async function openAreas(
  config: PlatformConfig,
  base: Base,
  stops: Stopping,
): Promise<{ areas: Areas; app: AppAccess }> {
  // Filled in the order of AREAS.
  const areas = {} as Areas;
  const app = base.gate === null ? createAppAccess(areas) : gatedApp(createAppAccess(areas), base.gate);
  const open = async <Name extends keyof Areas>(name: Name): Promise<void> => {
    const { open: opening, stop }: Definition<Areas[Name]> = AREAS[name];
    const area = await opening({ config, base, areas, app });
    areas[name] = area;
    if (stop !== null) stops.add(stop.phase, name, stop.part(area));
  };
  // AREAS has the keys of Areas, as its type says.
  for (const name of Object.keys(AREAS) as (keyof Areas)[]) await open(name);
  if (base.gate !== null) {
    // Whoever takes a right away is answered when no node uses it any more.
    areas.auth.sessions.onEnd(noteRevocation);
    areas.auth.sessions.onUserChange(noteRevocation);
  }
  await areas.jobs.start();
  return { areas, app };
}
