import { Type } from "typebox";
import { requireJsonSize } from "../../../../kernel/fields.ts";
import { actorOf } from "../../../access/principal.ts";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { BODY_MAX_BYTES, METADATA_MAX_BYTES } from "../limits.ts";
import { DeviceRecord, deviceRecord, SetMetadata } from "../schemas.ts";
import type { PushService } from "../service.ts";

const BY_ADMINISTRATOR = { tag: "Push", caller: "serviceKey", place: "core", missingKeyStatus: 403 } as const;

/** The devices of a user. [PU14] */
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
