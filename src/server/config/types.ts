// The types of a config, for the areas and the authors of configs.
export type * from "./context.ts";
export type * from "./identity.ts";
export type * from "./records.ts";
export type {
  AcceptedInvitation,
  AuthConfig,
  CaptchaConfig,
  MailContent,
  MailTemplate,
  OAuthProvider,
  SignUpFacts,
  TokensConfig,
} from "./sections/auth.ts";
export type { IssuedProfile, IssuerConfig } from "./sections/auth-issuers.ts";
export type { PagesConfig } from "./sections/auth-pages.ts";
export type { PhonesConfig, PhoneText, SendText, TextContext } from "./sections/auth-phones.ts";
export type { BackupsConfig, BackupsPlace, ContinuousConfig, ScheduledBackupsConfig } from "./sections/backups.ts";
export type { ClusterConfig } from "./sections/cluster.ts";
export type { VectorMetric } from "./sections/declared.ts";
export type { CronConfig, CronJobConfig, CronRun } from "./sections/functions/cron.ts";
export type { Job, JobConfig, JobsConfig } from "./sections/functions/jobs.ts";
export type {
  FunctionsApi,
  RouteAccess,
  RouteAccessContext,
  RouteContext,
  Routes,
} from "./sections/functions/routes.ts";
export type { SiteConfig } from "./sections/functions/site.ts";
export type {
  AccountEvent,
  AccountSource,
  BucketSource,
  ChangedBy,
  EventSource,
  FileEvent,
  Subject,
  TableEvent,
  TableSource,
} from "./sections/functions/sources.ts";
export type { TriggerConfig, TriggerRun } from "./sections/functions/triggers.ts";
export type { WebhookConfig } from "./sections/functions/webhooks.ts";
export type { AcmeConfig, CertificateFiles } from "./sections/network/tls.ts";
export type { PageTexts } from "./sections/page-texts.ts";
export type { PlatformConfig } from "./sections/platform.ts";
export type { PushConfig } from "./sections/push.ts";
export type { RealtimeConfig } from "./sections/realtime.ts";
export type * from "./sections/room-handlers.ts";
export type { RoomConfig, RoomsConfig } from "./sections/rooms.ts";
export type { RateLimit, RateLimitGroup } from "./sections/server.ts";
export type { ServiceKeyConfig } from "./sections/service-keys.ts";
export type { BucketConfig, BucketRule, FileFacts, ObjectStore, StorageConfig } from "./sections/storage.ts";
export type { NamespaceConfig } from "./sections/tables/databases.ts";
export type { Field, FieldType, Reference } from "./sections/tables/fields.ts";
export type {
  Embedding,
  FullTextSearch,
  Index,
  Migration,
  Rule,
  TableAccess,
  TableConfig,
  TableHooks,
  UpdateRule,
} from "./sections/tables/tables.ts";
export type { ViewConfig } from "./sections/tables/views.ts";
export type { UsersAccess, UsersConfig } from "./sections/users-table.ts";
