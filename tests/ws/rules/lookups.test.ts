import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  type TestSocket,
  testPlatform,
} from "../../support/index.ts";
import { connect } from "../realtime/realtime-support.ts";

let platform: TestPlatform;
let member: SignedIn;
let stranger: SignedIn;
const MEMBERS = "/api/db/shared/tables/members";

const CONFIG = `
  const isIn = (auth, { db, namespace, instanceId }) =>
    auth !== null && namespace === null && instanceId === null && db("shared").table("members").get(auth.id) !== null;
  export default {
    databases: { shared: { tables: {
      members: { schema: { room: { type: "string" } }, access: { read: true } },
      posts: {
        schema: { text: { type: "string" } },
        access: { read: (auth, _post, { table }) => auth !== null && table("members").get(auth.id) !== null, insert: true },
      },
      greedy: {
        access: { read: (auth, _one, { table }) => {
          for (let n = 0; n < 1_001; n++) table("members").get("m" + n);
          return true;
        } },
      },
    } } },
    realtime: { access: {
      presence: (auth, channel, context) => isIn(auth, context),
      broadcast: (auth, channel, event, context) => isIn(auth, context),
    } },
    rooms: { game: {
      access: {
        join: (auth, id, context) => isIn(auth, context) || id === "open",
        action: (auth, id, type, payload, context) => isIn(auth, context),
      },
      actions: { hello: () => "hi" },
    } },
  };`;

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [member, stranger] = await Promise.all([signIn(platform), signIn(platform)]);
  expect((await platform.service.post(MEMBERS, { id: member.id })).status).toBe(201);
});
afterAll(() => platform.stop());

async function asked(user: SignedIn, channel: string): Promise<unknown> {
  const socket = await connect(platform, user);
  socket.send({ type: "subscribe", channel });
  const { type, code } = await socket.next();
  await socket.close();
  return code ?? type;
}

async function enterRoom(user: SignedIn, id: string): Promise<TestSocket> {
  const socket = await openSocket(`${platform.wsUrl}/api/room?namespace=game&id=${id}`);
  socket.send({ type: "auth", token: user.token });
  await socket.nextOf("auth_success");
  socket.send({ type: "join" });
  return socket;
}

test("[RT200] the rules of presence, broadcasts and tables look up other records", async () => {
  for (const channel of ["presence:x", "broadcast:x", "posts"]) {
    const name = channel === "posts" ? "realtime:shared:posts" : channel;
    expect([channel, await asked(member, name)]).toEqual([channel, "subscribed"]);
    expect([channel, await asked(stranger, name)]).toEqual([channel, "SUBSCRIBE_DENIED"]);
  }
});

test("[RT201] a subscription whose rule makes more than 1,000 lookups is denied", async () => {
  expect(await asked(member, "realtime:shared:greedy")).toBe("SUBSCRIBE_DENIED");
  expect((await member.get("/api/db/shared/tables/greedy")).status).toBe(200);
});

test("[RM200] the rules of joins and actions look up other records", async () => {
  const denied = await enterRoom(stranger, "closed");
  await denied.expect({ code: "JOIN_DENIED" });
  const socket = await enterRoom(stranger, "open");
  await socket.nextOf("sync");
  socket.send({ type: "send", actionType: "hello", payload: {}, requestId: "1" });
  expect((await socket.nextOf("action_error"))["message"]).toBe("Access denied");
  expect((await platform.service.post(MEMBERS, { id: stranger.id })).status).toBe(201);
  socket.send({ type: "send", actionType: "hello", payload: {}, requestId: "2" });
  await socket.nextOf("action_result");
  expect((await platform.service.delete(`${MEMBERS}/${stranger.id}`)).status).toBe(200);
  await Promise.all([denied.close(), socket.close()]);
});
