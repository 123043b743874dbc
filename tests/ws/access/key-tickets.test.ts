import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  createAdministrator,
  type HttpClient,
  openSocket,
  SERVICE_KEY,
  signIn,
  type TestPlatform,
  type TestSocket,
  testPlatform,
} from "../../support/index.ts";

const key = (name: string) => `${name}-key-0123456789abcdefghijklmnopqrstuv`;
const scoped = (name: string, scopes: string[]) =>
  `${name}: { key: "${key(name)}", scopes: ${JSON.stringify(scopes)} }`;
const CONFIG = `{
  databases: { shared: { tables: {
    notes: { schema: { text: { type: "string" }, owner: { type: "string" } }, access: { read: (auth) => auth !== null && [["owner", "==", auth.id]] } },
    secrets: { schema: { text: { type: "string" } } },
  } } },
  realtime: { access: { presence: () => false, broadcast: (auth, channel) => channel === "broadcast:public" } },
  rooms: { game: {} },
  serviceKeys: {
    ${scoped("notes", ["db:shared:notes:read"])},
    ${scoped("listener", ["realtime:*:*:read"])},
    ${scoped("sender", ["realtime:*:*:broadcast"])},
  },
}`;
const TICKET = "/api/admin/socket-ticket";

let platform: TestPlatform;
const sockets: TestSocket[] = [];
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
});
afterAll(async () => {
  for (const socket of sockets) socket.terminate();
  await platform.stop();
});

async function connect(path = "/api/realtime"): Promise<TestSocket> {
  const socket = await openSocket(`${platform.wsUrl}${path}`);
  sockets.push(socket);
  return socket;
}
const ticketOf = async (client: HttpClient): Promise<string> => {
  const { status, body } = await client.post<{ ticket: string }>(TICKET);
  expect(status).toBe(200);
  return body.ticket;
};
/** A connection with the rights of this caller's key. */
async function connectAs(client: HttpClient): Promise<TestSocket> {
  const socket = await connect();
  socket.send({ type: "auth", token: await ticketOf(client) });
  await socket.expect({ type: "auth_success", userId: null });
  return socket;
}

test("[AD13] [RT250] a ticket gives one connection the rights of its key: every record, whoever owns it", async () => {
  const socket = await connectAs(await createAdministrator(platform, SERVICE_KEY));
  for (const table of ["notes", "secrets"]) {
    socket.send({ type: "subscribe", channel: `realtime:shared:${table}` });
    await socket.expect({ type: "subscribed" });
    await platform.service.post(`/api/db/shared/tables/${table}`, { text: "one" });
    await socket.nextOf("db_change");
  }
});

test("[RT250] scopes decide what a key's connection may subscribe to, and send", async () => {
  const ask = async (
    socket: TestSocket,
    message: { type: string; channel: string; [member: string]: string | object },
  ) => {
    socket.send({ ...message, ...(message.type === "subscribe" ? {} : { requestId: "1" }) });
    const answer = await socket.next();
    return answer["type"] === "error" ? answer["code"] : answer["type"];
  };
  const subscribe = (socket: TestSocket, channel: string) => ask(socket, { type: "subscribe", channel });
  const send = (socket: TestSocket) =>
    ask(socket, { type: "broadcast", channel: "broadcast:inner", event: "x", data: { a: 1 } });
  const [notes, listener, sender] = await Promise.all(
    ["notes", "listener", "sender"].map((name) => connectAs(platform.withKey(key(name)))),
  );
  if (notes === undefined || listener === undefined || sender === undefined) throw new Error("no sockets");
  expect(await subscribe(notes, "realtime:shared:notes")).toBe("subscribed");
  expect(await subscribe(notes, "realtime:shared:secrets")).toBe("SUBSCRIBE_DENIED");
  expect(await subscribe(notes, "broadcast:public")).toBe("SUBSCRIBE_DENIED");
  expect(await subscribe(notes, "presence:lobby")).toBe("SUBSCRIBE_DENIED");
  expect(await send(notes)).toBe("ACCESS_DENIED");
  expect(await subscribe(listener, "realtime:shared:notes")).toBe("SUBSCRIBE_DENIED");
  expect(await subscribe(listener, "broadcast:inner")).toBe("subscribed");
  expect(await subscribe(listener, "presence:lobby")).toBe("subscribed");
  listener.send({ type: "track", channel: "presence:lobby", state: {} });
  await listener.nextOf("error");
  expect(await subscribe(sender, "broadcast:inner")).toBe("SUBSCRIBE_DENIED");
  expect(await send(sender)).toBe("done");
  expect(await listener.nextOf("broadcast_event")).toMatchObject({ event: "x" });
});

test("[AD13] a ticket counts once, and for nothing but a connection to realtime", async () => {
  const ticket = await ticketOf(platform.service);
  expect((await platform.as(ticket).get("/api/auth/admin/users")).status).toBe(401);
  expect((await platform.as(ticket).get("/api/db/shared/tables/secrets")).status).toBe(401);
  expect((await platform.withKey(ticket).get("/api/auth/admin/users")).status).toBe(401);
  const room = await connect("/api/room?namespace=game&id=one");
  room.send({ type: "auth", token: ticket });
  expect(JSON.stringify(await room.next())).toContain("AUTH_FAILED");

  const sockets = await Promise.all([connect(), connect(), connect()]);
  for (const socket of sockets) socket.send({ type: "auth", token: ticket });
  const answers = await Promise.all(sockets.map((socket) => socket.next()));
  expect(answers.map(({ type }) => type).sort()).toEqual(["auth_error", "auth_error", "auth_success"]);
  const invented = await connect();
  invented.send({ type: "auth", token: "ticket_nonsense" });
  await invented.expect({ type: "auth_error" });

  const user = await signIn(platform);
  expect((await user.post(TICKET)).status).toBe(401);
  expect((await platform.post(TICKET)).status).toBe(401);
  const acting = { headers: { "x-platform-act-as": user.id } };
  expect((await platform.service.post(TICKET, undefined, acting)).status).toBe(401);
});

test("[AD13] [RT250] a connection of a key stays one of that key, and one of a user becomes none", async () => {
  const user = await signIn(platform);
  const ofKey = await connectAs(platform.service);
  const refusedOnKey = [user.token, await ticketOf(platform.withKey(key("notes")))];
  for (const token of refusedOnKey) {
    ofKey.send({ type: "auth", token });
    await ofKey.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
  }
  ofKey.send({ type: "auth", anonymous: true });
  await ofKey.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
  ofKey.send({ type: "auth", token: await ticketOf(platform.service) });
  await ofKey.expect({ type: "auth_refreshed", revokedChannels: [] });

  const ofUser = await connect();
  ofUser.send({ type: "auth", token: user.token });
  await ofUser.expect({ type: "auth_success", userId: user.id });
  ofUser.send({ type: "auth", token: await ticketOf(platform.service) });
  await ofUser.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
});

test("[AD14] a connection ends with the session that its ticket came from, and others go on", async () => {
  const ending = await createAdministrator(platform, SERVICE_KEY);
  const lasting = await createAdministrator(platform, SERVICE_KEY);
  const [ended, other] = [await connectAs(ending), await connectAs(lasting)];
  const unused = await ticketOf(ending);
  expect((await ending.delete("/api/admin/session")).status).toBe(204);
  await ended.expect({ type: "error", code: "SESSION_REVOKED" });
  expect((await ended.closed).code).toBe(4003);
  other.send({ type: "ping" });
  await other.expect({ type: "pong" });
  // A ticket that was waiting has no longer a session either.
  const late = await connect();
  late.send({ type: "auth", token: unused });
  await late.expect({ type: "auth_error" });
});
