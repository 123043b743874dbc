import type { PushPlatform } from "../config/app-access.ts";
import type { JsonObject } from "../kernel/json.ts";

/** A message, checked. Absent members are null; `data` holds text alone, as providers carry it. */
export interface Message {
  /** null only when `silent`. */
  title: string | null;
  body: string | null;
  image: string | null;
  sound: string | null;
  badge: number | null;
  data: Readonly<Record<string, string>>;
  /** Nothing is shown: the app gets `data` alone. */
  silent: boolean;
  /** Of messages with the same one, a device that was away gets the last. */
  collapseId: string | null;
  /** Seconds that the provider keeps it for a device that is away; null: as long as the provider does. */
  ttl: number | null;
  /** Raw members of an FCM message, over everything else. */
  fcm: JsonObject;
}

/** What a message is sent to: a registered device, or a bare token (`userId` null). */
export interface Target {
  userId: string | null;
  token: string;
  platform: PushPlatform;
}

export interface Device extends Target {
  /** Order of the first registration. */
  seq: number;
  userId: string;
  deviceId: string;
  metadata: JsonObject;
  createdAt: number;
}

/** What a provider made of one call. */
export type CallResult =
  | { kind: "sent" }
  /** Counted and logged as sent, with this note: a drill sends nothing. */
  | { kind: "held"; note: string }
  /** The token is no more: the device goes. */
  | { kind: "unregistered"; error: string }
  | { kind: "failed"; error: string }
  /** No connection, or no answer in time: other messages to this service would fare the same. */
  | { kind: "unreachable"; error: string }
  /** Another try may succeed; `retryAfterMs` null: the provider names no pause. */
  | { kind: "busy"; error: string; retryAfterMs: number | null };

/** FCM, Web Push: one call for one device. What it throws counts as failed. */
export interface Provider {
  /** The service that the target is reached by; the same for all that are out together. */
  siteOf(target: Target): string;
  send(target: Target, message: Message, signal: AbortSignal): Promise<CallResult>;
}

export type LogStatus = "sent" | "failed" | "removed";

/** What became of a message for one target. */
export interface Outcome {
  target: Target;
  status: LogStatus;
  error: string | null;
}

/** Spec: Push log entry. */
export interface LogEntry {
  id: string;
  userId: string | null;
  status: LogStatus;
  platform: string;
  title: string;
  body: string;
  timestamp: string;
  error: string | null;
}

/** How many got it, and how many did not. */
export interface Counts {
  sent: number;
  failed: number;
}

/** Spec: Device token record; a registration is answered with the user's id as well. */
export const deviceRecord = ({ deviceId, token, platform, createdAt }: Device) => ({
  id: deviceId,
  token,
  platform,
  createdAt: new Date(createdAt).toISOString(),
});
