// Public exports of "platform/client".
export { allOf, anyOf, field, none, not, some } from "../kernel/records/filter-group.ts";
export type { RecordFile } from "../server/config/records.ts";
export type { Analytics, EventProperties } from "./analytics.ts";
export type {
  Auth,
  Factor,
  Identity,
  MfaChallenge,
  Passkey,
  SessionInfo,
  SignInResult,
  SignUpResult,
  User,
} from "./auth/types.ts";
export type { Broadcast, ChannelStatus, Presence, PresentUser } from "./channels/types.ts";
export { type Client, createClient } from "./client.ts";
export type { ClientOptions } from "./context.ts";
export { type CookieOptions, type CookieStore, cookieStore } from "./cookies.ts";
export type { LiveQuery, LiveStatus } from "./live/types.ts";
export type { Offline, OfflineOptions } from "./offline/types.ts";
export type { DeviceToken, Push, RegisteredDevice } from "./push.ts";
export type { Room, RoomPlayer, RoomStatus, Rooms } from "./rooms/types.ts";
export type {
  Bucket,
  FileEntry,
  FileMetadata,
  FilePage,
  Uploadable,
  UploadOptions,
  UploadProgress,
} from "./storage/types.ts";

export { memoryStore, type Store } from "./store.ts";
export type { QueryDescription } from "./tables/description.ts";
export type { TableWrite, WriteOperation } from "./tables/writes.ts";
export { deleteField, increment } from "./tables/writes.ts";
export { type ErrorCode, type FieldProblem, PlatformError } from "./transport/errors.ts";
export type {
  Found,
  ListOptions,
  NumberedPage,
  Page,
  PageOptions,
  Query,
  Queryable,
  SearchOptions,
  SearchResults,
  WriteCounts,
} from "./types/query.ts";
export type { InsertOf, RecordOf } from "./types/records.ts";
export type { Database, Operation, Table } from "./types/table.ts";
