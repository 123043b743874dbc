import { type Static, type TSchema, Type } from "typebox";
import { nullable } from "../../../../kernel/schema/types.ts";
import { isoTime } from "../../../../kernel/time/iso-datetime.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { DeviceRecord, LogRecord, PushPlatform, PushStatus } from "../../../config/shapes/push.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import {
  DEVICES_LISTED_DEFAULT,
  DEVICES_LISTED_MAX,
  LOGS_LIMIT_DEFAULT,
  LOGS_LIMIT_MAX,
  TOPICS_LISTED_DEFAULT,
  TOPICS_LISTED_MAX,
} from "../limits.ts";
import type { ListedDevice, PushLists } from "../lists.ts";
import { deviceRecord, logRecord } from "../schemas.ts";

const Time = Type.String({ format: "date-time" });
const Device = Type.Object({
  userId: Type.String(),
  ...DeviceRecord.properties,
  metadata: Type.Record(Type.String(), Type.Unknown()),
  topics: Type.Array(Type.String()),
  registeredAt: Time,
});
const Cursor = nullable(Type.String());
const page = <Items extends TSchema>(name: string, items: Items, description: string) =>
  Type.Object({ [name]: items, cursor: Cursor }, { description });

const limitOf = (defaultCount: number, max: number) =>
  Type.Optional(Type.Integer({ minimum: 1, default: defaultCount, description: `More counts as ${max}` }));
/** Cursor: the number of a row. */
const Before = Type.Optional(Type.String({ pattern: "^[0-9]{1,15}$", description: "`cursor` of the previous page" }));

const BY_ADMINISTRATOR = { caller: "serviceKey", place: "core", errors: [400] } as const;
const READ = ["push", "*", "*", "read"] as const;

const listed = ({ userId, metadata, topics, registeredAt, ...device }: ListedDevice): Static<typeof Device> => ({
  userId,
  ...deviceRecord(device),
  metadata,
  topics,
  registeredAt: isoTime(registeredAt),
});
const placeOf = (cursor: string | undefined): number | null => (cursor === undefined ? null : Number(cursor));
const cursorOf = (next: number | null): string | null => (next === null ? null : String(next));

/** Endpoints that list devices, topics and the log, for administrators. [PU15] [PU320] */
export function listEndpoints(lists: PushLists): readonly Endpoint[] {
  return [devices(lists), topics(lists), logs(lists)];
}

const devices = (lists: PushLists): Endpoint =>
  endpoint(
    "GET /api/admin/push/devices",
    {
      ...BY_ADMINISTRATOR,
      tag: "Administration",
      summary: "List devices: all, of a user, with a token, on a platform, of a topic",
      query: {
        userId: Type.Optional(Type.String({ minLength: 1 })),
        token: Type.Optional(Type.String({ minLength: 1 })),
        platform: Type.Optional(PushPlatform),
        topic: Type.Optional(Type.String({ minLength: 1 })),
        limit: limitOf(DEVICES_LISTED_DEFAULT, DEVICES_LISTED_MAX),
        cursor: Before,
      },
      answers: {
        200: page(
          "devices",
          Type.Array(Device),
          "Newest first. Where few devices match, a page may be short and go on",
        ),
      },
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, READ);
      const { userId = null, token = null, platform = null, topic = null, limit, cursor } = query();
      const range = {
        before: placeOf(cursor),
        limit: Math.min(limit ?? DEVICES_LISTED_DEFAULT, DEVICES_LISTED_MAX),
      };
      const { rows, next } = await lists.devices({ userId, token, platform, topic }, range);
      return { devices: rows.map(listed), cursor: cursorOf(next) };
    },
  );

const topics = (lists: PushLists): Endpoint =>
  endpoint(
    "GET /api/admin/push/topics",
    {
      ...BY_ADMINISTRATOR,
      tag: "Administration",
      summary: "List topics with the number of their devices",
      query: {
        prefix: Type.Optional(Type.String({ description: "Topics that begin with this" })),
        limit: limitOf(TOPICS_LISTED_DEFAULT, TOPICS_LISTED_MAX),
        cursor: Type.Optional(Type.String({ description: "`cursor` of the previous page" })),
      },
      answers: {
        200: page(
          "topics",
          Type.Array(Type.Object({ topic: Type.String(), devices: Type.Integer() })),
          "By name. A topic without devices is none",
        ),
      },
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, READ);
      const { prefix = "", limit = TOPICS_LISTED_DEFAULT, cursor = "" } = query();
      const found = await lists.topics({ prefix, after: cursor, limit: Math.min(limit, TOPICS_LISTED_MAX) });
      const last = found.topics.at(-1)?.topic ?? null;
      return { topics: found.topics, cursor: found.hasMore ? last : null };
    },
  );

const logs = (lists: PushLists): Endpoint =>
  endpoint(
    "GET /api/push/logs",
    {
      ...BY_ADMINISTRATOR,
      tag: "Push",
      missingKeyStatus: 403,
      summary: "List the results of the last 24 hours",
      query: {
        userId: Type.Optional(Type.String({ description: "Only messages to this user" })),
        status: Type.Optional(PushStatus),
        limit: limitOf(LOGS_LIMIT_DEFAULT, LOGS_LIMIT_MAX),
        cursor: Before,
      },
      answers: {
        200: page("logs", Type.Array(LogRecord), "Newest first. Where few rows match, a page may be short and go on"),
      },
    },
    async ({ principal, query }) => {
      requireServiceKey(principal, READ);
      const { userId = null, status = null, limit = LOGS_LIMIT_DEFAULT, cursor } = query();
      const range = { before: placeOf(cursor), limit: Math.min(limit, LOGS_LIMIT_MAX) };
      const { rows, next } = await lists.logs({ userId, status }, range);
      return { logs: rows.map(logRecord), cursor: cursorOf(next) };
    },
  );
