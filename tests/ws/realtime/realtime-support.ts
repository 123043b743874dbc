import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { openSocket, type SignedIn, type TestPlatform, type TestSocket } from "../../support/index.ts";

export interface ChangeEvent extends JsonObject {
  type: "db_change";
  channel: string;
  table: string;
  changeType: "added" | "modified" | "removed";
  docId: string;
  seq: number;
}

export interface Subscribed extends JsonObject {
  type: "subscribed";
  seq: number;
}

/** An unauthenticated connection. */
export const connectAnonymously = (platform: TestPlatform, channel?: string): Promise<TestSocket> =>
  openSocket(`${platform.wsUrl}/api/realtime${channel === undefined ? "" : `?channel=${encodeURIComponent(channel)}`}`);

/** An authenticated connection. */
export async function connect(platform: TestPlatform, user: SignedIn, channel?: string): Promise<TestSocket> {
  const socket = await connectAnonymously(platform, channel);
  socket.send({ type: "auth", token: user.token });
  await socket.expect({ type: "auth_success", userId: user.id });
  return socket;
}

export async function subscribe(socket: TestSocket, channel: string, more: JsonObject = {}): Promise<Subscribed> {
  socket.send({ type: "subscribe", channel, ...more });
  const answer = await socket.expect({ type: "subscribed", channel });
  return answer as Subscribed; // of its type, as just expected
}

/** Waits until messages sent before have been handled, where none of them waits for a rule. */
export async function settled(socket: TestSocket): Promise<void> {
  socket.send({ type: "ping" });
  await socket.expect({ type: "pong" });
}
