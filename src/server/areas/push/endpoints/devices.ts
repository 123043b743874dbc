import { Type } from "typebox";
import { requireJsonSize } from "../../../../kernel/fields.ts";
import { actorOf } from "../../../access/principal.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { DeviceRecord } from "../../../config/shapes/push.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { BODY_MAX_BYTES, METADATA_MAX_BYTES } from "../limits.ts";
import { deviceRecord, OfToken, OfTopic, Registration, SetMetadata } from "../schemas.ts";
import type { PushService } from "../service.ts";

const BY_USER = { tag: "Push", caller: "user", place: "core", bodyMaxBytes: BODY_MAX_BYTES } as const;

const Ok = Type.Literal(true);
const Count = Type.Integer({ minimum: 0, description: "Devices" });
const Registered = Type.Object(
  { ...DeviceRecord.properties, userId: Type.String() },
  { description: "The registered device" },
);

/** Endpoints that an app calls for its signed-in user. [PU7] */
export function clientEndpoints(service: PushService): readonly Endpoint[] {
  return [
    endpoint(
      "POST /api/push/register",
      {
        ...BY_USER,
        summary: "Register a device or its new token",
        description: "A new device is subscribed to the topic `all`. A token of another device moves to this device.",
        body: Registration,
        answers: { 200: Registered },
      },
      async ({ principal, body }) => {
        const { id } = principal.auth;
        const device = await service.register(id, await body());
        return { ...deviceRecord(device), userId: id };
      },
    ),
    endpoint(
      "POST /api/push/unregister",
      {
        ...BY_USER,
        summary: "Remove your device with this token",
        body: OfToken,
        answers: { 200: Type.Object({ ok: Ok }, { description: "Also if you have no such device" }) },
      },
      async ({ principal, body }) => {
        const { token } = await body();
        await service.unregister(principal.auth.id, token);
        return OK;
      },
    ),
    endpoint(
      "POST /api/push/topic/subscribe",
      {
        ...BY_USER,
        summary: "Subscribe all of your devices to a topic",
        body: OfTopic,
        answers: { 200: Type.Object({ ok: Ok, subscribed: Count, failed: Count }) },
        errors: [404],
      },
      async ({ principal, body }) => {
        const { topic } = await body();
        return { ...OK, ...(await service.subscribe(principal.auth.id, topic)) };
      },
    ),
    endpoint(
      "POST /api/push/topic/unsubscribe",
      {
        ...BY_USER,
        summary: "Unsubscribe all of your devices from a topic",
        body: OfTopic,
        answers: { 200: Type.Object({ ok: Ok, unsubscribed: Count, failed: Count }) },
        errors: [404],
      },
      async ({ principal, body }) => {
        const { topic } = await body();
        return { ...OK, ...(await service.unsubscribe(principal.auth.id, topic)) };
      },
    ),
  ];
}

const BY_ADMINISTRATOR = { tag: "Push", caller: "serviceKey", place: "core", missingKeyStatus: 403 } as const;

/** Endpoints for the devices of a user, for administrators. [PU14] */
export function administrationEndpoints(service: PushService): readonly Endpoint[] {
  return [
    endpoint(
      "PATCH /api/push/tokens",
      {
        ...BY_ADMINISTRATOR,
        summary: "Replace the metadata of a device",
        bodyMaxBytes: BODY_MAX_BYTES,
        body: SetMetadata,
        answers: { 200: Type.Object({ ok: Type.Literal(true) }) },
        errors: [404],
      },
      async ({ principal, body }) => {
        requireServiceKey(principal, ["push", "*", "*", "write"]);
        const { userId, deviceId, metadata } = await body();
        requireJsonSize("metadata", metadata, METADATA_MAX_BYTES);
        await service.setMetadata(userId, deviceId, metadata, actorOf(principal));
        return OK;
      },
    ),
    endpoint(
      "GET /api/push/tokens",
      {
        ...BY_ADMINISTRATOR,
        summary: "List the devices of a user",
        query: { userId: Type.String({ minLength: 1 }) },
        answers: {
          200: Type.Object({ tokens: Type.Array(DeviceRecord) }, { description: "In order of first registration" }),
        },
        errors: [400],
      },
      ({ principal, query }) => {
        requireServiceKey(principal, ["push", "*", "*", "read"]);
        const { userId } = query();
        return { tokens: service.devices(userId).map(deviceRecord) };
      },
    ),
  ];
}
