import { requireJsonSize } from "../../../kernel/fields.ts";
import { jsonCopy } from "../../../kernel/json/copy.ts";
import { createParser } from "../../../kernel/schema/parser.ts";
import type { PushAccessor, PushMessage } from "../../config/app/index.ts";
import { SERVER_ACTOR } from "../../db/index.ts";
import { METADATA_MAX_BYTES } from "./limits.ts";
import { type Message, messageOf } from "./message.ts";
import { Broadcast, deviceRecord, Recipients, SendToToken, SendToTopic, SetMetadata } from "./schemas.ts";
import { type PushService, TOPIC_OF_ALL } from "./service.ts";

const recipients = createParser(Recipients);
const broadcast = createParser(Broadcast);
const sendToToken = createParser(SendToToken);
const sendToTopic = createParser(SendToTopic);
const setMetadata = createParser(SetMetadata);

/** Creates `app.push`: the operations and checks of the endpoints, except that a user without devices is no error. [PU32] */
export function createPushAccessor(service: PushService): PushAccessor {
  const checked = (message: PushMessage): Message =>
    messageOf(broadcast.parse({ payload: jsonCopy(message) }).payload, "payload.");

  return {
    async send(userId, message) {
      const { userIds } = recipients.parse({ userIds: [userId] });
      return service.sendMany(userIds, checked(message));
    },
    async sendMany(userIds, message) {
      const { userIds: ids } = recipients.parse({ userIds: [...userIds] });
      return service.sendMany(ids, checked(message));
    },
    async sendToToken(token, message, options = {}) {
      const { payload, platform } = sendToToken.parse({ token, ...options, payload: jsonCopy(message) });
      return service.sendToToken(token, platform ?? "web", messageOf(payload, "payload."));
    },
    async sendToTopic(topic, message) {
      const { payload } = sendToTopic.parse({ topic, payload: jsonCopy(message) });
      await service.sendToTopic(topic, messageOf(payload, "payload."));
    },
    async broadcast(message) {
      await service.sendToTopic(TOPIC_OF_ALL, checked(message));
    },
    async devices(userId) {
      return service.devices(userId).map((device) => ({ ...deviceRecord(device), metadata: device.metadata }));
    },
    async setMetadata(userId, deviceId, metadata) {
      const given = setMetadata.parse({ userId, deviceId, metadata: jsonCopy(metadata) });
      requireJsonSize("metadata", given.metadata, METADATA_MAX_BYTES);
      await service.setMetadata(userId, deviceId, given.metadata, SERVER_ACTOR);
    },
  };
}
