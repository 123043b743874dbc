import type { JsonValue } from "../../../kernel/json/json.ts";
import type { MaybePromise, OrNothing } from "../../../kernel/maybe-promise.ts";
import type { Auth } from "../identity.ts";
import type { AuthConfig, SignUpFacts } from "../sections/auth.ts";
import type { FunctionsApi } from "../sections/functions/routes.ts";
import type { PlatformConfig } from "../sections/platform.ts";
import type { RealtimeConfig } from "../sections/realtime.ts";
import type { Player, Room } from "../sections/room-handlers.ts";
import type { RoomConfig } from "../sections/rooms.ts";
import type { BucketConfig, FileFacts, StorageConfig } from "../sections/storage.ts";
import type { NamespaceConfig } from "../sections/tables/databases.ts";
import type { TableAccess, TableConfig } from "../sections/tables/tables.ts";
import type { AppOf, HookContextOf, RuleContextOf } from "./access.ts";
import type { AnyNames, ConfigTypes } from "./declared.ts";
import type { TypedCron, TypedJob } from "./jobs.ts";
import type { RecordOf, WrittenOf } from "./records.ts";
import type { TypedRule, TypedUpdateRule } from "./rules.ts";
import type { TypedTrigger, TypedWebhook } from "./triggers.ts";
import type { SchemaShape, TypedUsersTable, WithUsers } from "./users.ts";
import type { AnyViews, TypedViews, WithViews } from "./views.ts";

interface TypedAccess<R, Context> extends Pick<TableAccess, "upsert"> {
  read?: TypedRule<R, Context>;
  insert?: TypedRule<R, Context>;
  update?: TypedUpdateRule<R, Context>;
  delete?: TypedRule<R, Context>;
}

interface TypedHooks<R, Context> {
  beforeInsert?: (auth: Auth | null, record: R, context: Context) => MaybePromise<OrNothing<WrittenOf<R>>>;
  beforeUpdate?: (
    auth: Auth | null,
    record: R,
    changes: WrittenOf<R>,
    context: Context,
  ) => MaybePromise<OrNothing<WrittenOf<R>>>;
  beforeDelete?: (auth: Auth | null, record: R, context: Context) => MaybePromise<void>;
  afterInsert?: (auth: Auth | null, record: R, context: Context) => MaybePromise<void>;
  afterUpdate?: (auth: Auth | null, record: R, before: R, context: Context) => MaybePromise<void>;
  afterDelete?: (auth: Auth | null, record: R, context: Context) => MaybePromise<void>;
}

interface TypedTable<Schema, Tables, Namespaces, Jobs>
  extends Omit<TableConfig, "schema" | "access" | "hooks" | "isUsers" | "view"> {
  schema?: Schema & SchemaShape;
  access?: TypedAccess<NoInfer<RecordOf<Schema>>, RuleContextOf<NoInfer<Namespaces>, NoInfer<Tables>>>;
  hooks?: TypedHooks<NoInfer<RecordOf<Schema>>, HookContextOf<NoInfer<Namespaces>, NoInfer<Tables>, NoInfer<Jobs>>>;
}

type TypedInstanceRule<Context> =
  | boolean
  | ((auth: Auth | null, instanceId: string, context: Context) => MaybePromise<boolean>);

interface TypedInstanceAccess<Context> {
  create?: TypedInstanceRule<Context>;
  open?: TypedInstanceRule<Context>;
}

/** `Seen`: the tables of the namespace as rules see them, with that of users. */
interface TypedNamespace<Tables, Seen, Namespaces, Jobs> extends Omit<NamespaceConfig, "tables" | "views" | "access"> {
  access?: TypedInstanceAccess<RuleContextOf<NoInfer<Namespaces>, NoInfer<Seen>>>;
  tables: { [Table in keyof Tables]: TypedTable<Tables[Table], Seen, Namespaces, Jobs> };
  /** Results of SQL over the tables: see `ViewConfig`. */
  views?: AnyViews;
}

type SeenIn<All, Name> = Name extends keyof All ? All[Name] : unknown;

/** The context of a rule that is about no record or instance. */
type FreeContext<Namespaces> = RuleContextOf<NoInfer<Namespaces>, Record<never, never>>;

type TypedBucketRule<Context> =
  | boolean
  | ((auth: Auth | null, file: FileFacts, context: Context) => MaybePromise<boolean>);

interface TypedBucket<Namespaces> extends Omit<BucketConfig, "access"> {
  access?: {
    read?: TypedBucketRule<FreeContext<Namespaces>>;
    write?: TypedBucketRule<FreeContext<Namespaces>>;
    delete?: TypedBucketRule<FreeContext<Namespaces>>;
  };
}

interface TypedStorage<Buckets, Namespaces> extends Omit<StorageConfig, "buckets"> {
  buckets: { [Bucket in keyof Buckets]: TypedBucket<Namespaces> };
}

/**
 * A room with typed actions. `Actions`: the handlers as written. The parameter of each is the type that clients send, unchecked at
 * run time.
 */
interface TypedRoom<Actions, Namespaces> extends Omit<RoomConfig, "access" | "actions"> {
  actions?: Actions & AnyActions;
  access?: {
    join?: boolean | ((auth: Auth, roomId: string, context: FreeContext<Namespaces>) => MaybePromise<boolean>);
    action?: (
      auth: Auth,
      roomId: string,
      actionType: string,
      payload: JsonValue,
      context: FreeContext<Namespaces>,
    ) => MaybePromise<boolean>;
  };
}

interface TypedActions {
  // A method, so that a handler may declare its payload's type.
  handle(room: Room, player: Player, payload: JsonValue): MaybePromise<OrNothing<JsonValue>>;
}
interface AnyActions {
  [action: string]: TypedActions["handle"];
}

interface TypedRealtime<Namespaces> extends Omit<RealtimeConfig, "access"> {
  access?: {
    /** The rule of broadcasts: see `RealtimeConfig`. */
    broadcast?:
      | boolean
      | ((auth: Auth, channel: string, event: string, context: FreeContext<Namespaces>) => MaybePromise<boolean>);
    /** The rule of presence: see `RealtimeConfig`. */
    presence?: boolean | ((auth: Auth, channel: string, context: FreeContext<Namespaces>) => MaybePromise<boolean>);
  };
}

interface TypedAuth<All, In extends string, Table extends string, Own> extends Omit<AuthConfig, "signup" | "users"> {
  /** The rule of sign-up: see `AuthConfig`. */
  signup?: boolean | ((facts: SignUpFacts, context: FreeContext<All>) => MaybePromise<boolean>);
  /** A table with one record for each account: see `AuthConfig`. */
  users?: TypedUsersTable<In, Table, Own, All>;
}

type TypedSections =
  | "auth"
  | "routes"
  | "databases"
  | "storage"
  | "rooms"
  | "realtime"
  | "triggers"
  | "webhooks"
  | "jobs"
  | "cron";

/** `PlatformConfig` whose rules and hooks know the tables of the config, their fields and their types. */
export interface TypedConfig<
  Namespaces,
  Buckets = AnyNames,
  Rooms = AnyNames,
  Triggers = AnyNames,
  Webhooks = AnyNames,
  Jobs = AnyNames,
  Api = unknown,
  In extends string = never,
  Table extends string = "users",
  Own = unknown,
  Views = unknown,
  /** The namespaces with the table of users, which rules look up. */
  All = WithUsers<Namespaces, In, Table, Own>,
  /** The namespaces with their views too, which `app` reads. */
  Read = WithViews<All, Views>,
> extends Omit<PlatformConfig, TypedSections> {
  databases?:
    | { [Namespace in keyof Views]: TypedViews<Views[Namespace], SeenIn<All, Namespace>, All> }
    | { [Namespace in keyof Namespaces]: TypedNamespace<Namespaces[Namespace], SeenIn<All, Namespace>, All, Jobs> };
  storage?: TypedStorage<Buckets, All>;
  rooms?: { [Room in keyof Rooms]: TypedRoom<Rooms[Room], All> };
  /** Adds routes: see `PlatformConfig`. */
  routes?: (api: FunctionsApi<AppOf<NoInfer<Read>>>) => MaybePromise<Api>;
  realtime?: TypedRealtime<All>;
  auth?: TypedAuth<All, In, Table, Own>;
  triggers?: { [Name in keyof Triggers]: TypedTrigger<Triggers[Name], All, Buckets, Jobs> };
  jobs?: { [Name in keyof Jobs]: TypedJob<Jobs[Name], Read, Jobs> };
  cron?: { [name: string]: TypedCron<Read, Jobs> };
  webhooks?: { [Name in keyof Webhooks]: TypedWebhook<Webhooks[Name], All, Buckets> };
}

/** A config that carries its types. `Types` exists for the compiler only. */
export interface DefinedConfig<Types extends ConfigTypes = ConfigTypes> extends PlatformConfig {
  readonly "~types"?: Types;
}
