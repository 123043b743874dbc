import type { PushAccessor, PushMessage } from "../config/app-access.ts";
import type { JsonObject } from "../kernel/json.ts";
import { jsonCopy } from "../kernel/json-copy.ts";
import { parseBroadcast, parseMetadata, parseRecipients, parseSendToToken, parseSendToTopic } from "./requests.ts";
import { type PushService, TOPIC_OF_ALL } from "./service.ts";
import { deviceRecord } from "./types.ts";

/**
 * `app.push`: the same service, its arguments checked as a request's are. A user without devices is no error here: a hook
 * does not want to fail because somebody has no phone. Decisions 12.
 */
export function createPushAccessor(service: PushService): PushAccessor {
  const payloadOf = (message: PushMessage): { payload: JsonObject } => ({
    payload: jsonCopy(message),
  });

  return {
    async send(userId, message) {
      return service.sendMany(parseRecipients({ userIds: [userId] }), parseBroadcast(payloadOf(message)));
    },
    async sendMany(userIds, message) {
      return service.sendMany(parseRecipients({ userIds: [...userIds] }), parseBroadcast(payloadOf(message)));
    },
    async sendToToken(token, message, options = {}) {
      const { platform, message: checked } = parseSendToToken({ token, ...options, ...payloadOf(message) });
      return service.sendToToken(token, platform, checked);
    },
    async sendToTopic(topic, message) {
      service.sendToTopic(topic, parseSendToTopic({ topic, ...payloadOf(message) }).message);
    },
    async broadcast(message) {
      service.sendToTopic(TOPIC_OF_ALL, parseBroadcast(payloadOf(message)));
    },
    async devices(userId) {
      return service.devices(userId).map((device) => ({ ...deviceRecord(device), metadata: device.metadata }));
    },
    async setMetadata(userId, deviceId, metadata) {
      const checked = parseMetadata({ userId, deviceId, metadata: jsonCopy(metadata) });
      await service.setMetadata(checked.userId, checked.deviceId, checked.metadata);
    },
  };
}
