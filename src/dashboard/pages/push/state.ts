import type { PushLog, PushPlatform } from "../../../client/admin/push.ts";

/** What the page shows; all of it is in its address. */
export interface PushState {
  view: View;
  user: string;
  token: string;
  platform: PushPlatform;
  topic: string;
  status: PushLog["status"];
  /** The beginning of topics. */
  q: string;
  /** The token of the open device. */
  device: string;
  /** Whom the open test message is for. */
  to: Recipient;
}

export type View = "devices" | "topics" | "log";

/** `user:ID`, `token:PLATFORM:TOKEN`, `topic:NAME`; empty: nobody yet. */
export type Recipient = string;

export const PLATFORMS: readonly PushPlatform[] = ["android", "ios", "web"];
export const STATUSES: readonly PushLog["status"][] = ["sent", "failed", "removed"];

export type Change = (
  next: { [Name in keyof PushState]?: PushState[Name] | undefined },
  options?: { replace?: boolean },
) => void;
