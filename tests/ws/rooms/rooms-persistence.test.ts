import { afterEach, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { encodeFrame, OPCODE, openRawSocket } from "../../support/raw-socket.ts";
import { CONFIG, roomVisits } from "../../support/room-visits.ts";
import { until } from "../../support/until.ts";

let platform: TestPlatform;
const { enter, act, flush, untilInMemory, closeAll } = roomVisits(() => platform);

const metadataOf = async (id: string, namespace = "game"): Promise<JsonObject> => {
  return (await platform.get(`/api/room/metadata?namespace=${namespace}&id=${id}`)).body;
};

async function start(extra = ""): Promise<[SignedIn, SignedIn]> {
  platform = await testPlatform({ config: CONFIG.replace("messageRate: 200,", `messageRate: 200, ${extra}`) });
  return Promise.all([signIn(platform), signIn(platform)]);
}

afterEach(async () => {
  await closeAll();
  await platform.stop();
});

/** Something in every place that has to come back. */
async function fill(user: SignedIn, id: string) {
  const socket = await enter(user, id);
  await act(socket, "rename", { title: "kept" });
  await act(socket, "add", { by: 7 });
  await act(socket, "mine", { gold: 3 });
  await socket.nextOf("player_delta");
  return socket;
}

test("[RM34] the room hibernates when the last player leaves, and is restored completely", async () => {
  const [ann, bob] = await start();
  const socket = await fill(ann, "sleep");
  await act(socket, "alarm", { ms: 1_500, n: 1 });
  await socket.close();
  await untilInMemory(0);
  const other = await enter(bob, "sleep");
  expect(other.sync).toMatchObject({ sharedState: { count: 7, log: ["join", "leave", "join"] } });
  expect(await act(other, "server")).toMatchObject({ result: { destroyed: 1 } });
  const again = await enter(ann, "sleep");
  expect(again.sync).toMatchObject({ playerState: { gold: 3 }, playerVersion: 1 });
  expect(again.sync["sharedVersion"]).toBeGreaterThan(2);
  expect(await again.nextOf("message")).toMatchObject({ messageType: "tick", data: { n: 1 } });
  expect(await metadataOf("sleep")).toEqual({ title: "kept", ticks: 1 });
});

test("[RM27] a timer wakes a hibernating room", async () => {
  const [ann] = await start();
  const socket = await fill(ann, "alarm");
  await act(socket, "alarm", { ms: 800 });
  await socket.close();
  await until("the alarm has ticked", async () => (await metadataOf("alarm"))["ticks"] === 1);
  await untilInMemory(0);
  const back = await enter(ann, "alarm");
  // Asleep after the leave, awake for the timer, asleep again.
  expect(await act(back, "server")).toMatchObject({ result: { destroyed: 2 } });
});

test("[RM35] an idle room is removed from memory with its connections open, and restored with a sync for each", async () => {
  const [ann, bob] = await start("idleTimeout: 200,");
  const one = await fill(ann, "idle");
  const two = await enter(bob, "idle");
  // That it has left memory shows in the next action only.
  await until("the room has left memory", async () => {
    await Bun.sleep(2 * 200);
    await act(two, "nothing");
    return one.pending.some(({ type }) => type === "sync");
  });
  expect(await one.nextOf("sync")).toMatchObject({ sharedState: { count: 7 }, playerState: { gold: 3 } });
  expect(await act(two, "add", { by: 1 })).toMatchObject({ result: 8 });
  expect(await one.nextOf("shared_delta")).toMatchObject({ delta: { count: 8 } });
});

test("[RM36] a server that stops closes with 1001 and saves; the players' places are kept", async () => {
  const [ann, bob] = await start("saveInterval: 600000,");
  const socket = await fill(ann, "restart");
  await enter(bob, "restart");
  await platform.restart();
  expect((await socket.closed).code).toBe(1001);
  const back = await enter(ann, "restart");
  expect(back.sync).toMatchObject({ sharedState: { count: 7, log: ["join", "join"] }, playerState: { gold: 3 } });
  // The other one does not come back, and leaves when the time is over.
  expect(await back.nextOf("shared_delta")).toMatchObject({ delta: { log: ["join", "join", "disconnect"] } });
});

test("[RM33] a killed server loses no more than the save interval", async () => {
  const [ann] = await start("saveInterval: 150,");
  const socket = await fill(ann, "killed");
  await Bun.sleep(1_000);
  await platform.kill("SIGKILL");
  await platform.restart();
  const back = await enter(ann, "killed");
  expect(back.sync).toMatchObject({ sharedState: { count: 7 }, playerState: { gold: 3 } });
  expect((await platform.get("/api/room/metadata?namespace=game&id=killed")).body).toEqual({ title: "kept" });
  expect((await socket.closed).code).toBe(1006);
});

test("[RM37] an expired room is created anew", async () => {
  const [ann] = await start("stateTtl: 300,");
  const socket = await fill(ann, "old");
  await socket.close();
  await until("the old room is removed", async () => Object.keys(await metadataOf("old")).length === 0);
  expect((await enter(ann, "old")).sync).toMatchObject({
    sharedState: { count: 0, log: ["join"] },
    playerState: {},
    playerVersion: 0,
  });
});

test("[RM37] a room with a connected player keeps its state, however long ago it was saved", async () => {
  const [ann] = await start("stateTtl: 300, idleTimeout: 100, saveInterval: 100,");
  const socket = await fill(ann, "kept");
  // It has left memory by then, and is past its time to live.
  await Bun.sleep(1_000);
  const metadata = await platform.get("/api/room/metadata?namespace=game&id=kept");
  expect(metadata.body).not.toEqual({});
  socket.send({ type: "send", actionType: "add", payload: { by: 0 }, requestId: "late" });
  const sync = await socket.nextOf<JsonObject>("sync");
  expect(sync["sharedState"]).not.toMatchObject({ count: 0 });
  await socket.close();
  await until("the kept room is removed", async () => Object.keys(await metadataOf("kept")).length === 0);
  expect((await enter(ann, "kept")).sync).toMatchObject({ sharedState: { count: 0, log: ["join"] } });
});

test("[RM36] a server that is told to stop answers what is under way, and ignores new messages", async () => {
  const [ann, bob] = await start();
  const one = await fill(ann, "stopping");
  const two = await enter(bob, "stopping");
  one.send({ type: "send", actionType: "slowly", payload: { ms: 2_000 }, requestId: "slow" });
  await flush(one);
  const restarted = platform.restart();
  await until(
    "the server has stopped",
    async () => (await fetch(`${platform.url}/api/health`).catch(() => null)) === null,
  );
  two.send({ type: "send", actionType: "add", payload: { by: 1 }, requestId: "new" });
  expect(await one.nextOf("action_result")).toMatchObject({ requestId: "slow", result: "done" });
  expect((await one.closed).code).toBe(1001);
  expect((await two.closed).code).toBe(1001);
  await restarted;
  expect((await enter(ann, "stopping")).sync).toMatchObject({ sharedState: { count: 7, slowly: true } });
});

test("[RM41] rooms of an undeclared namespace delay no timers, and are restored when it is declared again", async () => {
  platform = await testPlatform({ config: CONFIG });
  const users = [await signIn(platform), await signIn(platform)];
  const [ann] = users;
  if (ann === undefined) throw new Error("there are two");
  for (let index = 0; index < 3; index++) {
    const socket = await enter(ann, `sleeper${index}`);
    await act(socket, "alarm", { ms: 1_500, n: index });
    await socket.close();
  }
  // Under another name the same rooms are those of a namespace that nobody declares.
  await platform.restart({ config: CONFIG.replace("game: {", "other: {") });
  const socket = await enter(ann, "awake", "other");
  await act(socket, "alarm", { ms: 1_800 });
  await socket.close();
  await until("the room that is awake has ticked", async () => (await metadataOf("awake", "other"))["ticks"] === 1);
  await untilInMemory(0);
  const back = await enter(ann, "awake", "other");
  expect(await act(back, "server")).toMatchObject({ result: { destroyed: 2 } });
  await platform.restart({ config: CONFIG });
  // Overdue: it wakes, and goes to sleep again.
  await until("the sleeping room has ticked", async () => (await metadataOf("sleeper0"))["ticks"] === 1);
  await untilInMemory(0);
  const sleeper = await enter(ann, "sleeper0");
  expect(sleeper.sync).toMatchObject({ sharedState: { log: ["join", "leave", "join"] } });
  expect(await act(sleeper, "server")).toMatchObject({ result: { destroyed: 2 } });
});

test("[RM11] a slow reader of the largest state is closed with 1013", async () => {
  platform = await testPlatform({
    config: `{
      auth: { anonymous: true },
      rooms: { big: {
        maxStateSize: 10 * 1024 * 1024, messageRate: 100, access: { join: true },
        actions: { flood: (room) => room.send("flood", "x".repeat(1024 * 1024)) },
      } },
    }`,
  });
  const [ann, bob] = await Promise.all([signIn(platform), signIn(platform)]);
  const slow = await openRawSocket(`${platform.wsUrl}/api/room?namespace=big&id=one`);
  for (const message of [{ type: "auth", token: ann.token }, { type: "join" }]) {
    slow.write(encodeFrame({ opcode: OPCODE.text, payload: Buffer.from(JSON.stringify(message)) }));
  }
  expect(await slow.until('"sync"', 5_000)).toBe(true);
  slow.pause();
  const quick = await enter(bob, "one", "big");
  for (let index = 0; index < 50; index++) await act(quick, "flood");
  slow.resume();
  await until("the slow client is closed", () => slow.closeCode !== null || slow.isClosed);
  expect(slow.closeCode).toBe(1013);
});
