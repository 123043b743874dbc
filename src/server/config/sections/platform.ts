import { type Static, Type } from "typebox";
import { related } from "../shape/schema.ts";
import { type AuthConfig, AuthSection } from "./auth.ts";
import { checkIssuers } from "./auth-issuers.ts";
import { checkPages } from "./auth-pages.ts";
import { checkPhoneFactor } from "./auth-phones.ts";
import { Backups, type BackupsConfig } from "./backups.ts";
import { type ClusterConfig, ClusterSection, checkCluster } from "./cluster.ts";
import { Declared, Vectorize } from "./declared.ts";
import { Cron, type CronConfig } from "./functions/cron.ts";
import { Jobs, type JobsConfig } from "./functions/jobs.ts";
import { RoutesSection } from "./functions/routes.ts";
import { Site } from "./functions/site.ts";
import { checkSources } from "./functions/sources.ts";
import { Triggers } from "./functions/triggers.ts";
import { Webhooks } from "./functions/webhooks.ts";
import { Push, type PushConfig } from "./push.ts";
import { Realtime, type RealtimeConfig } from "./realtime.ts";
import { Rooms, type RoomsConfig } from "./rooms.ts";
import { Analytics, Api, Audit, Cors, RateLimits, Server } from "./server.ts";
import { ServiceKeys } from "./service-keys.ts";
import { Storage, type StorageConfig } from "./storage.ts";
import { Databases } from "./tables/databases.ts";
import { checkFileFields } from "./tables/file-fields.ts";

/** The whole config. Each section has its own file: no area may import another, and hooks see all of them. */
const Sections = Type.Object({
  server: Type.Optional(Server),
  cors: Type.Optional(Cors),
  databases: Type.Optional(Databases),
  storage: Type.Optional(Type.Unsafe<StorageConfig>(Storage)),
  auth: Type.Optional(Type.Unsafe<AuthConfig>(AuthSection)),
  kv: Type.Optional(Declared),
  d1: Type.Optional(Declared),
  vectorize: Type.Optional(Vectorize),
  rooms: Type.Optional(Type.Unsafe<RoomsConfig>(Rooms)),
  realtime: Type.Optional(Type.Unsafe<RealtimeConfig>(Realtime)),
  push: Type.Optional(Type.Unsafe<PushConfig>(Push)),
  jobs: Type.Optional(Type.Unsafe<JobsConfig>(Jobs)),
  cron: Type.Optional(Type.Unsafe<CronConfig>(Cron)),
  analytics: Type.Optional(Analytics),
  audit: Type.Optional(Audit),
  /** Scheduled and continuous backups. None by default. */
  backups: Type.Optional(Type.Unsafe<BackupsConfig>(Backups)),
  /** Several nodes with one backend. None by default. */
  cluster: Type.Optional(Type.Unsafe<ClusterConfig>(ClusterSection)),
  triggers: Type.Optional(Triggers),
  webhooks: Type.Optional(Webhooks),
  rateLimits: Type.Optional(RateLimits),
  serviceKeys: Type.Optional(ServiceKeys),
  api: Type.Optional(Api),
  /** Whether agents reach the server at `/mcp`; false by default. `dev` serves it for the key that it prints, unless it is false. */
  mcp: Type.Optional(Type.Boolean()),
  /** Whether there is a dashboard, and sign-in with a service key in a browser; true by default. */
  admin: Type.Optional(Type.Boolean()),
  /** Endpoints of your own under `/api/functions`. */
  routes: Type.Optional(RoutesSection),
  /** Files of a web page at `/`. */
  site: Type.Optional(Site),
});

export const Platform = related(Sections, (config, report) => {
  checkSources(config, report);
  checkFileFields(config, report);
  checkPages(config, report);
  checkPhoneFactor(config, report);
  checkIssuers(config, report);
  checkCluster(config, report);
});
/** Everything that a platform serves. The comments of members give their defaults. */
export interface PlatformConfig extends Static<typeof Sections> {}
