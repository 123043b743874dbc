import { afterAll, beforeAll, expect, test } from "bun:test";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../../support/index.ts";
import { CONFIG, roomVisits } from "../../support/room-visits.ts";

let platform: TestPlatform;
let ann: SignedIn;
const { enter, act, closeAll } = roomVisits(() => platform);

beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  ann = await signIn(platform);
});

afterAll(async () => {
  await closeAll();
  await platform.stop();
});

test("[RM29] metadata is public and kept, and later changes to the handler's object do not change it", async () => {
  const url = "/api/room/metadata?namespace=game&id=titled";
  expect(await platform.get(url)).toMatchObject({ status: 200, body: {} });
  const socket = await enter(ann, "titled");
  await act(socket, "rename", { title: "A game", "key.with.dots": 1 });
  expect(await platform.get(url)).toMatchObject({ status: 200, body: { title: "A game", "key.with.dots": 1 } });
  const listed = { title: "A game", seats: [null, { by: null }, { by: "ann" }] };
  await act(socket, "rename", listed);
  expect((await platform.get(url)).body).toEqual(listed);
  await act(socket, "rename", { title: "A game", "key.with.dots": 1 });
  await socket.close();
  await Bun.sleep(50);
  expect((await platform.get(url)).body).toEqual({ title: "A game", "key.with.dots": 1 });
  expect((await platform.get("/api/room/metadata?namespace=game")).status).toBe(400);
  expect((await platform.get("/api/room/metadata?namespace=none&id=a")).status).toBe(404);
  const again = await enter(ann, "titled");
  expect(await act(again, "rename", { text: "x".repeat(17_000) })).toMatchObject({ type: "action_error" });
});
