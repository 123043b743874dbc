import { createElement, type ReactNode } from "react";
import { renderToString } from "react-dom/server";
import { createClient, memoryStore } from "../../src/client/index.ts";
import {
  PlatformProvider,
  useAuth,
  useLive,
  usePresence,
  useRecord,
  useRoom,
  useSearch,
  useUpload,
} from "../../src/client/react/index.ts";
import type config from "./react-config.ts";

// What react.test.ts renders as a server does. It prints the HTML, and what was sent meanwhile.

const sent: string[] = [];
globalThis.fetch = Object.assign(async (url: RequestInfo | URL) => {
  sent.push(String(url));
  throw new TypeError("There is no network here");
}, globalThis.fetch);
class NoSocket {
  constructor(url: string) {
    sent.push(url);
    throw new Error("There is no network here");
  }
}
globalThis.WebSocket = NoSocket as unknown as typeof WebSocket;

const client = createClient<typeof config>({ url: "http://127.0.0.1:9", store: memoryStore() });
const films = client.db("shared").table("films");

function Page(): ReactNode {
  const live = useLive(films.sort("title"));
  const none = useLive(null);
  const { record } = useRecord(films, "f1");
  const found = useSearch(films, "a film");
  const { user } = useAuth();
  const room = useRoom(client.rooms("quiz"), "friday");
  const presence = usePresence(client.presence<{ mood: string }>("lobby"), { mood: "fine" });
  const { status } = useUpload(client.storage("files"));
  const all = [
    live.status,
    none.items.length,
    record,
    found.items.length,
    user?.id,
    room.status,
    presence.users.length,
    status,
  ];
  return createElement("p", null, JSON.stringify(all));
}

const user = { id: "ann" } as NonNullable<typeof client.auth.user>;
const html = renderToString(createElement(PlatformProvider, { client, user }, createElement(Page)));
// Whatever was begun would be sent by now.
await new Promise((resolve) => setTimeout(resolve, 50));
console.log(JSON.stringify({ html, sent }));
client.close();
