import type { JsonObject } from "../../../kernel/json/json.ts";
import type { PushOptions, PushPlatform } from "../shapes/push.ts";

export type { PushOptions, PushPlatform };

/** A notification. With `silent`, nothing is shown and the app receives only `data`. */
export type PushMessage = PushOptions &
  ({ title: string; body: string; silent?: boolean } | { silent: true; title?: string; body?: string });

export interface PushDevice {
  /** The deviceId of the registration. */
  id: string;
  token: string;
  platform: PushPlatform;
  metadata: JsonObject;
  createdAt: string;
}

/** Push notifications. Errors: 503 when neither FCM nor Web Push is configured. */
export interface PushAccessor {
  /** Sends to every device of the user, and resolves when all have been tried; `{ sent: 0, failed: 0 }` when there is none. */
  send(userId: string, message: PushMessage): Promise<{ sent: number; failed: number }>;
  sendMany(userIds: readonly string[], message: PushMessage): Promise<{ sent: number; failed: number }>;
  /** Sends to a token, registered or not; `platform` is `web` by default. */
  sendToToken(
    token: string,
    message: PushMessage,
    options?: { platform?: PushPlatform },
  ): Promise<{ sent: number; failed: number }>;
  /** Sends to a topic; resolves when the message is queued. */
  sendToTopic(topic: string, message: PushMessage): Promise<void>;
  broadcast(message: PushMessage): Promise<void>;
  devices(userId: string): Promise<PushDevice[]>;
  /** Replaces the metadata; 16 KB of JSON at most. Errors: 404. */
  setMetadata(userId: string, deviceId: string, metadata: JsonObject): Promise<void>;
}
