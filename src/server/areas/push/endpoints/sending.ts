import { Type } from "typebox";
import { requireServiceKey } from "../../../access/service-key-right.ts";
import type { RecordChange } from "../../../db/index.ts";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import { OK } from "../../../http/reply.ts";
import { BODY_MAX_BYTES, SEND_MANY_BODY_MAX_BYTES } from "../limits.ts";
import { messageOf } from "../message.ts";
import { Broadcast, Send, SendMany, SendToToken, SendToTopic } from "../schemas.ts";
import { type PushService, TOPIC_OF_ALL } from "../service.ts";

const BY_SENDER = {
  tag: "Push",
  caller: "serviceKey",
  place: "core",
  missingKeyStatus: 403,
  bodyMaxBytes: BODY_MAX_BYTES,
} as const;
const SEND = ["push", "*", "*", "send"] as const;
const SUCCESS = { success: true } as const;

const COUNTS = {
  sent: Type.Integer({ minimum: 0, description: "Devices" }),
  failed: Type.Integer({ minimum: 0, description: "Devices, including removed ones" }),
};
const Sent = Type.Object(COUNTS);
const SentOk = Type.Object({ ok: Type.Literal(true), ...COUNTS });
const Accepted = Type.Object({ success: Type.Literal(true) }, { description: "The message is queued" });
const IN_THE_LOG = "The answer does not wait for the devices; the log has the result for each of them.";

/**
 * Endpoints that send messages. `audit` records what service keys send; a change of data is recorded in its own transaction.
 * [PU9]–[PU13] [AL13]
 */
export const sendingEndpoints = (service: PushService, audit: RecordChange): readonly Endpoint[] => [
  ...toUsers(service, audit),
  toToken(service, audit),
  ...toTopics(service, audit),
];

const SENT = "push.send";

const toUsers = (service: PushService, audit: RecordChange): readonly Endpoint[] => [
  endpoint(
    "POST /api/push/send",
    {
      ...BY_SENDER,
      summary: "Send to all devices of a user",
      description: "Answered when the result for each device is known.",
      body: Send,
      answers: { 200: SentOk },
      errors: [404, 503],
    },
    async ({ principal, body }) => {
      requireServiceKey(principal, SEND);
      const { userId, ...members } = await body();
      const counts = await service.send(userId, messageOf(members));
      await audit({ action: SENT, target: `push/users/${userId}`, after: counts });
      return { ...OK, ...counts };
    },
  ),
  endpoint(
    "POST /api/push/send-many",
    {
      ...BY_SENDER,
      summary: "Send to all devices of several users",
      description: "Users without devices are skipped. Answered when the result for each device is known.",
      bodyMaxBytes: SEND_MANY_BODY_MAX_BYTES,
      body: SendMany,
      answers: { 200: SentOk },
      errors: [503],
    },
    async ({ principal, body }) => {
      requireServiceKey(principal, SEND);
      const { userIds, ...members } = await body();
      const counts = await service.sendMany(userIds, messageOf(members));
      await audit({ action: SENT, target: "push/users", after: { users: userIds, ...counts } });
      return { ...OK, ...counts };
    },
  ),
];

const toToken = (service: PushService, audit: RecordChange): Endpoint =>
  endpoint(
    "POST /api/push/send-to-token",
    {
      ...BY_SENDER,
      summary: "Send to a token, registered or not",
      body: SendToToken,
      answers: { 200: Sent },
      errors: [503],
    },
    async ({ principal, body }) => {
      requireServiceKey(principal, SEND);
      const { token, platform, payload } = await body();
      const counts = await service.sendToToken(token, platform ?? "web", messageOf(payload, "payload."));
      await audit({ action: SENT, target: "push/tokens", after: counts });
      return counts;
    },
  );

const toTopics = (service: PushService, audit: RecordChange): readonly Endpoint[] => [
  endpoint(
    "POST /api/push/send-to-topic",
    {
      ...BY_SENDER,
      summary: "Send to all devices subscribed to a topic",
      description: IN_THE_LOG,
      body: SendToTopic,
      answers: { 200: Accepted },
      errors: [503],
    },
    async ({ principal, body }) => {
      requireServiceKey(principal, SEND);
      const { topic, payload } = await body();
      await service.sendToTopic(topic, messageOf(payload, "payload."));
      await audit({ action: SENT, target: `push/topics/${topic}` });
      return SUCCESS;
    },
  ),
  endpoint(
    "POST /api/push/broadcast",
    {
      ...BY_SENDER,
      summary: "Send to all devices subscribed to the topic `all`",
      description: IN_THE_LOG,
      body: Broadcast,
      answers: { 200: Accepted },
      errors: [503],
    },
    async ({ principal, body }) => {
      requireServiceKey(principal, SEND);
      const { payload } = await body();
      await service.sendToTopic(TOPIC_OF_ALL, messageOf(payload, "payload."));
      await audit({ action: SENT, target: `push/topics/${TOPIC_OF_ALL}` });
      return SUCCESS;
    },
  ),
];
