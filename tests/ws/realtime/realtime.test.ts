import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { VERSION } from "../../../src/kernel/version.ts";
import { maskedFrame } from "../../support/frames.ts";
import { type SignedIn, signIn, signToken, type TestPlatform, testPlatform } from "../../support/index.ts";
import { connectTo } from "../../support/tls/connect.ts";
import { connect, connectAnonymously, settled, subscribe } from "./realtime-support.ts";

const CONFIG = `{
  databases: {
    shared: { tables: {
      posts: { schema: { title: { type: "string" } }, access: { read: true, insert: true } },
      staff: { schema: { note: { type: "string" } }, access: { read: (auth) => auth?.role === "editor", insert: true } },
      claimed: { schema: { note: { type: "string" } }, access: { read: (auth) => auth?.custom.vip === true, insert: true } },
      closed: { schema: { note: { type: "string" } } },
    } },
    clubs: { instance: true, access: { create: true, open: (auth, id) => id !== "secret" },
      tables: { members: { schema: { name: { type: "string" } }, access: { read: true, insert: true } } } },
  },
  realtime: {
    messageRate: 10_000,
    access: {
      presence: (auth, channel) => !channel.startsWith("presence:vip") || auth.custom.vip === true,
      broadcast: (auth, channel, event) => {
        if (channel === "broadcast:broken") throw new Error("a rule that fails");
        if (channel === "broadcast:news") return event === "" || auth.role === "editor";
        return channel !== "broadcast:secret";
      },
    },
  },
}`;

let platform: TestPlatform;
let user: SignedIn;
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  user = await signIn(platform);
});
afterAll(() => platform.stop());

describe("connection", () => {
  test("[RT1] auth answers auth_success, for an invalid token auth_error, which another auth may follow", async () => {
    const socket = await connectAnonymously(platform);
    socket.send({ type: "auth", token: "nonsense" });
    expect(await socket.next()).toEqual({ type: "auth_error", message: "Invalid token" });
    socket.send({ type: "auth", token: await signToken({ sub: user.id, sid: "gone" }, { expiresInSeconds: -5 }) });
    expect(await socket.next()).toEqual({ type: "auth_error", message: "Token expired" });
    socket.send({ type: "auth", token: await signToken({ sub: user.id, sid: "gone" }) });
    await socket.expect({ type: "auth_error", message: "Invalid token" });
    socket.send({ type: "auth" });
    await socket.expect({ type: "auth_error", message: "token is required" });
    socket.send({ type: "auth", token: user.token });
    expect(await socket.next()).toEqual({ type: "auth_success", userId: user.id, version: VERSION });
    await socket.close();
  });

  test("[RT4] a refresh ends subscriptions that are no longer allowed, and a failed one changes nothing", async () => {
    const vip = await signIn(platform, { claims: { vip: true } });
    const watcher = await connect(platform, user);
    await subscribe(watcher, "presence:open");
    const socket = await connect(platform, vip);
    await subscribe(socket, "realtime:shared:posts");
    await subscribe(socket, "realtime:shared:claimed");
    await subscribe(socket, "presence:vip");
    await socket.expect({ type: "presence_sync" });

    socket.send({ type: "auth", token: "nonsense" });
    await socket.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
    socket.send({ type: "auth", token: user.token });
    await socket.expect({ type: "error", code: "AUTH_REFRESH_FAILED" });
    socket.send({ type: "auth", token: vip.token });
    expect(await socket.next()).toEqual({ type: "auth_refreshed", userId: vip.id, revokedChannels: [] });
    await user.post("/api/db/shared/tables/claimed", { note: "still seen" });
    await socket.expect({ type: "db_change", channel: "realtime:shared:claimed" });

    await platform.service.put(`/api/auth/admin/users/${vip.id}/claims`, { vip: false });
    const { body } = await platform.post<{ accessToken: string }>("/api/auth/refresh", {
      refreshToken: vip.refreshToken,
    });
    socket.send({ type: "auth", token: body.accessToken });
    expect(await socket.next()).toEqual({
      type: "auth_refreshed",
      userId: vip.id,
      revokedChannels: ["realtime:shared:claimed", "presence:vip"],
    });
    await user.post("/api/db/shared/tables/claimed", { note: "not for you" });
    await user.post("/api/db/shared/tables/posts", { title: "for all" });
    await socket.expect({ type: "db_change", channel: "realtime:shared:posts" });
    expect(socket.pending).toEqual([]);
    await Promise.all([socket.close(), watcher.close()]);
  });

  test("[RT6] a role takes effect at once for live subscriptions", async () => {
    const editor = await signIn(platform, { role: "editor" });
    const socket = await connect(platform, editor);
    await subscribe(socket, "realtime:shared:staff");
    await platform.service.patch(`/api/auth/admin/users/${editor.id}`, { displayName: "Still an editor" });
    await user.post("/api/db/shared/tables/staff", { note: "one" });
    await socket.expect({ type: "db_change", data: { note: "one" } });
    await platform.service.patch(`/api/auth/admin/users/${editor.id}`, { role: "user" });
    await socket.expect({ type: "auth_refreshed", revokedChannels: ["realtime:shared:staff"] });
    await user.post("/api/db/shared/tables/staff", { note: "two" });
    await settled(socket);
    socket.send({ type: "subscribe", channel: "realtime:shared:staff" });
    await socket.expect({ type: "error", code: "SUBSCRIBE_DENIED" });
    await socket.close();
  });

  test("[SK1] long messages beyond 1 MiB at once are dropped, short ones are not, and the connection stays open", async () => {
    const [socket, reader] = [await connect(platform, user), await connect(platform, user)];
    await subscribe(reader, "broadcast:long");
    const text = "x".repeat(250_000);
    const events = Array.from({ length: 12 }, (_, index) => `e${index}`);
    for (const event of events) socket.send({ type: "broadcast", channel: "broadcast:long", event, data: { text } });
    socket.send({ type: "broadcast", channel: "broadcast:long", event: "short", data: {} });
    const heard: unknown[] = [];
    while (heard.at(-1) !== "short") heard.push((await reader.next())["event"]);
    // A slow machine may let through some more than the first four.
    expect(heard.slice(0, 4)).toEqual(events.slice(0, 4));
    const droppedCount = events.length + 1 - heard.length;
    expect(droppedCount).toBeGreaterThan(0);
    for (let count = 0; count < droppedCount; count++) {
      await socket.expect({
        type: "error",
        code: "RATE_LIMITED",
        message: "Too many long messages; this one is dropped",
      });
    }
    await settled(socket);
    await Promise.all([socket.close(), reader.close()]);
  });

  test("[SK2] messages that arrive together with slow ones are answered in order", async () => {
    const socket = await connect(platform, user);
    const filters = Array.from({ length: 5 }, (_, n) => [
      "title",
      "in",
      Array.from({ length: 900 }, (_, m) => `${n} ${m}`),
    ]);
    await subscribe(socket, "realtime:shared:posts");
    for (let count = 0; count < 20; count++) {
      // Some are compiled, some are equal to what is in force.
      const orFilters = [["title", "==", `${Math.floor(count / 2)}`]];
      socket.send({ type: "update_filters", channel: "realtime:shared:posts", filters, orFilters });
      socket.send({ type: "subscribe", channel: `nothing:${count}` });
    }
    for (let count = 0; count < 20; count++) {
      expect(await socket.next()).toMatchObject({ type: "filters_updated", serverFilter: true });
      expect(await socket.next()).toMatchObject({ code: "INVALID_CHANNEL", channel: `nothing:${count}` });
    }
    await socket.close();
  });

  test("[SK11] numbers that a double holds arrive as they are", async () => {
    const socket = await connect(platform, user);
    await subscribe(socket, "presence:numbers");
    await socket.expect({ type: "presence_sync", users: [] });
    for (const held of ["9007199254740992", "1152921504606847000", "1e300"]) {
      socket.send(`{"type":"track","channel":"presence:numbers","state":{"x":${held}}}`);
      await socket.expect({ channel: "presence:numbers", state: { x: Number(held) } });
    }
    socket.send(
      `{"type":"broadcast","channel":"broadcast:a","event":"e","data":{"a":[1,{"id":12345678901234567891}]}}`,
    );
    await socket.expect({ message: "data.a.1.id is an integer that a double cannot hold exactly" });
    await socket.close();
  });

  test("[SK11] [RT8] malformed messages are refused, and the connection stays open", async () => {
    const socket = await connect(platform, user);
    for (const message of [
      {},
      { type: "sing" },
      { type: 7 },
      { type: "subscribe" },
      { type: "subscribe", channel: 7 },
      { type: "subscribe", channel: "realtime:shared:posts", since: "soon" },
      { type: "unsubscribe" },
      { type: "update_filters" },
      { type: "track", state: {} },
      { type: "track", channel: "presence:x" },
      { type: "track", channel: "presence:x", state: [] },
      { type: "untrack" },
      { type: "auth", token: "x", user: "u" },
      { type: "subscribe", channel: "realtime:shared:posts", filter: [] },
      { type: "unsubscribe", channel: "realtime:shared:posts", requestId: "1" },
      { type: "update_filters", channel: "realtime:shared:posts", orfilters: null },
      { type: "track", channel: "presence:x", state: {}, ttl: 5 },
      { type: "broadcast", channel: "broadcast:x", event: "e", payload: {} },
      { type: "broadcast", channel: "broadcast:x", data: {} },
      { type: "broadcast", channel: "broadcast:x", event: "", data: {} },
      { type: "broadcast", channel: "broadcast:x", event: "e" },
      { type: "broadcast", channel: "broadcast:x", event: "e", data: "text" },
      { type: "broadcast", channel: "broadcast:x", event: "e", data: {}, excludeSelf: "no" },
    ]) {
      socket.send(message);
      expect(await socket.next()).toMatchObject({ type: "error", code: "INVALID_MESSAGE" });
    }
    socket.send({ type: "subscribe", channel: "realtime:shared:posts", filter: [] });
    await socket.expect({ message: `filter is not a member of "subscribe"`, channel: "realtime:shared:posts" });
    socket.send({ type: "ping", sentAt: 5 });
    await socket.expect({ type: "pong" });
    socket.send({ type: "broadcast", channel: "broadcast:x", event: "e", data: { text: "x".repeat(300_000) } });
    await socket.expect({ type: "error", code: "MESSAGE_TOO_LARGE" });
    await settled(socket);
    await socket.close();
  });

  test("[RT10] a connection has at most 200 subscriptions and 100 tracked channels", async () => {
    const socket = await connect(platform, user);
    for (let count = 0; count < 100; count++) await subscribe(socket, `broadcast:b${count}`);
    for (let count = 0; count < 100; count++) await subscribe(socket, "broadcast:same", { id: `b${count}` });
    socket.send({ type: "subscribe", channel: "broadcast:more" });
    await socket.expect({ type: "error", code: "TOO_MANY_SUBSCRIPTIONS", channel: "broadcast:more" });
    socket.send({ type: "unsubscribe", channel: "broadcast:b0" });
    await subscribe(socket, "broadcast:more");
    await subscribe(socket, "broadcast:more");
    for (let count = 0; count < 101; count++) {
      socket.send({ type: "track", channel: `presence:p${count}`, state: {} });
    }
    await socket.expect({ type: "error", code: "TOO_MANY_TRACKED" });
    await settled(socket);
    await socket.close();
  });

  test("[SK15] a client that does not read is closed, and the others get everything", async () => {
    const reader = await connect(platform, user);
    await subscribe(reader, "broadcast:flood");
    const slow = connectTo(platform.url);
    const upgrade = ["GET /api/realtime HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"];
    const key = ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
    slow.write(`${[...upgrade, ...key].join("\r\n")}\r\n\r\n`);
    await new Promise((resolve) => slow.once("data", resolve));
    slow.write(maskedFrame(JSON.stringify({ type: "auth", token: user.token })));
    slow.write(maskedFrame(JSON.stringify({ type: "subscribe", channel: "broadcast:flood" })));
    slow.write(maskedFrame(JSON.stringify({ type: "track", channel: "presence:slow", state: {} })));
    await subscribe(reader, "presence:slow");
    const sync = await reader.next<{ users: unknown[] }>();
    if (sync.users.length === 0) await reader.expect({ type: "presence_join" });
    slow.pause();

    // Each is 200 KB: more than the kernel's buffers and 1 MiB in all.
    const payload = { text: "x".repeat(200_000) };
    for (let count = 0; count < 100; count++) {
      const sent = await platform.service.post("/api/realtime/broadcast", {
        channel: "broadcast:flood",
        event: `e${count}`,
        payload,
      });
      expect(sent.status).toBe(200);
    }
    let events = 0;
    let hasSlowLeft = false;
    while (events < 100 || !hasSlowLeft) {
      const message = await reader.next();
      if (message["type"] === "broadcast_event") expect(message["event"]).toBe(`e${events++}`);
      else if (message["type"] === "presence_leave") hasSlowLeft = true;
    }
    // What it was sent can still be read, and ends with the close frame.
    let tail = Buffer.alloc(0);
    slow.on("data", (chunk: Buffer) => {
      tail = Buffer.concat([tail, chunk]).subarray(-64);
    });
    slow.resume();
    await new Promise((resolve) => slow.once("end", resolve));
    expect(tail.includes(Buffer.from([1013 >> 8, 1013 & 255]))).toBe(true);
    slow.destroy();
    await reader.close();
  });
});

describe("channels and rights", () => {
  test("[RT13] the message says which channels there are, and that of track and broadcast which they take", async () => {
    const socket = await connect(platform, user);
    const refusal = async (message: JsonObject) => {
      socket.send(message);
      const { code, message: text } = await socket.next();
      return `${code}: ${text}`;
    };
    expect(await refusal({ type: "subscribe", channel: "realtime:clubs:members" })).toBe(
      'INVALID_CHANNEL: There is no channel "realtime:clubs:members": expected realtime:NAMESPACE:TABLE, realtime:NAMESPACE:INSTANCE:TABLE where it has instances, presence:NAME or broadcast:NAME',
    );
    expect(await refusal({ type: "track", channel: "broadcast:chat", state: {} })).toBe(
      'INVALID_CHANNEL: "broadcast:chat" is no channel for this: expected presence:NAME',
    );
    expect(await refusal({ type: "broadcast", channel: "presence:lobby", event: "e", data: {} })).toBe(
      'INVALID_CHANNEL: "presence:lobby" is no channel for this: expected broadcast:NAME',
    );
    expect(await refusal({ type: "track", state: {} })).toBe(
      "INVALID_MESSAGE: channel is required, here or as ?channel= in the address of the connection",
    );
  });

  test("[RT13] channels of no known pattern, and undeclared tables, are INVALID_CHANNEL", async () => {
    const socket = await connect(platform, user);
    for (const channel of [
      ...["lobby", "", "realtime", "realtime:", "realtime:shared", "realtime:shared:nothing", "realtime:nowhere:posts"],
      ...["realtime:shared:posts:", "realtime:clubs:members", "realtime:clubs:a:nothing", "realtime:clubs::members"],
      ...[
        "realtime:clubs:a:members:id",
        "realtime:clubs:not an id:members",
        "presence:",
        "broadcast:",
        `broadcast:${"x".repeat(600)}`,
        "Realtime:shared:posts",
      ],
    ]) {
      socket.send({ type: "subscribe", channel });
      expect(await socket.next()).toMatchObject({ type: "error", code: "INVALID_CHANNEL" });
    }
    await subscribe(socket, "realtime:shared:posts:a:b:c");
    await subscribe(socket, "realtime:clubs:a:members");
    await user.post("/api/db/shared/tables/posts", { id: "a:b:c", title: "colons" });
    await socket.expect({ type: "db_change", channel: "realtime:shared:posts:a:b:c", docId: "a:b:c" });
    await user.post("/api/db/clubs/b/tables/members", { name: "elsewhere" });
    await user.post("/api/db/clubs/a/tables/members", { name: "here" });
    await socket.expect({ type: "db_change", channel: "realtime:clubs:a:members", data: { name: "here" } });
    await socket.close();
  });

  test("[RT14] a table's channel needs the read rule, and the instance's open rule", async () => {
    const socket = await connect(platform, user);
    for (const channel of [
      ...["realtime:shared:closed", "realtime:shared:closed:id"],
      ...["realtime:shared:staff", "realtime:clubs:secret:members"],
    ]) {
      socket.send({ type: "subscribe", channel });
      expect(await socket.next()).toMatchObject({ type: "error", code: "SUBSCRIBE_DENIED", channel });
    }
    await platform.service.post("/api/db/shared/tables/closed", { note: "secret" });
    await settled(socket);
    await socket.close();
  });

  test("[RT16] presence and broadcast rules", async () => {
    const socket = await connect(platform, user);
    for (const channel of ["presence:vip-lounge", "broadcast:secret", "broadcast:broken"]) {
      socket.send({ type: "subscribe", channel });
      await socket.expect({ type: "error", code: "SUBSCRIBE_DENIED", channel });
    }
    await subscribe(socket, "broadcast:news");
    socket.send({ type: "track", channel: "presence:vip-lounge", state: {} });
    await socket.expect({ type: "error", code: "ACCESS_DENIED" });
    socket.send({ type: "broadcast", channel: "broadcast:news", event: "breaking", data: {}, excludeSelf: false });
    await socket.expect({ type: "error", code: "ACCESS_DENIED" });
    const editor = await connect(platform, await signIn(platform, { role: "editor" }));
    editor.send({ type: "broadcast", channel: "broadcast:news", event: "breaking", data: { a: 1 } });
    await socket.expect({ type: "broadcast_event", event: "breaking", data: { a: 1 } });
    for (const [type, channel, members] of [
      ["track", "broadcast:x", { state: {} }],
      ["track", "realtime:shared:posts", { state: {} }],
      ["untrack", "broadcast:x", {}],
      ["broadcast", "presence:x", { event: "e", data: {} }],
    ] as const) {
      socket.send({ type, channel, ...members });
      await socket.expect({ type: "error", code: "INVALID_CHANNEL", channel });
    }
    await Promise.all([socket.close(), editor.close()]);
  });
});
