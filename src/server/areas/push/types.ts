import type { JsonObject } from "../../../kernel/json/json.ts";
import type { PushPlatform } from "../../config/app/index.ts";

/** A validated message. Absent members are null; the values of `data` are text, as providers require. */
export interface Message {
  /** null only if `silent`. */
  title: string | null;
  body: string | null;
  image: string | null;
  sound: string | null;
  badge: number | null;
  data: Readonly<Record<string, string>>;
  /** Shows no notification; the app gets `data` only. */
  silent: boolean;
  /** A device that was offline gets only the last of several messages with the same value. */
  collapseId: string | null;
  /** Seconds that the provider keeps the message for an offline device; null: the provider's default. */
  ttl: number | null;
  /** Raw members of the FCM message, which override all others. */
  fcm: JsonObject;
}

/** The recipient of a message: a registered device, or a token (`userId` null). */
export interface Target {
  userId: string | null;
  token: string;
  platform: PushPlatform;
}

/** The result of one call to a provider. */
export type CallResult =
  | { kind: "sent" }
  /** A drill sends nothing; it is counted and logged as sent, with this note. */
  | { kind: "held"; note: string }
  /** The token is no longer valid: its device is removed. */
  | { kind: "unregistered"; error: string }
  | { kind: "failed"; error: string }
  /** No connection, or no answer in time: other messages to this service would fail too. */
  | { kind: "unreachable"; error: string }
  /** Another attempt may succeed; `retryAfterMs` null: no `Retry-After`. */
  | { kind: "busy"; error: string; retryAfterMs: number | null };

/** FCM or Web Push: one call for one device. An exception counts as a failure. */
export interface Provider {
  /** The service that delivers to the target. All targets of a site are unavailable together. */
  siteOf(target: Target): string;
  send(target: Target, message: Message, signal: AbortSignal): Promise<CallResult>;
}

export type LogStatus = "sent" | "failed" | "removed";

/** The result for one target. */
export interface Outcome {
  target: Target;
  status: LogStatus;
  error: string | null;
}

/** Numbers of targets. */
export interface Counts {
  sent: number;
  failed: number;
}
