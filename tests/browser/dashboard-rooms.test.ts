import { afterAll, beforeAll, expect } from "bun:test";
import { testBrowser } from "../support/browser.ts";
import { expectAccessible, LOOKS, openDashboard } from "../support/dashboard.ts";
import { type SignedIn, signIn, type TestPlatform, testPlatform } from "../support/index.ts";
import { roomVisits } from "../support/room-visits.ts";

const READER = "reader-key-0123456789abcdefghijklmnopqrstuv";
const LONG = `a-room-with-${"an-absurdly-".repeat(9)}long-id`;
const CONFIG = `{
  rooms: {
    game: {
      messageRate: 1000, access: { join: true },
      onJoin(room, player) {
        room.setShared((state) => ({ ...state, score: state.score ?? 0, board: { rows: [1, 2, 3] } }));
        room.setPlayer(player.userId, { cards: { ace: 1 } });
        room.setServer({ solution: 42 });
        room.setMetadata({ title: "A game" });
      },
      actions: {
        add: (room, player, { by }) => room.setShared((state) => ({ ...state, score: state.score + by })),
        open: (room) => room.setShared((state) => ({ ...state, door: "open" })),
      },
    },
    chess: { access: { join: true } },
  },
  serviceKeys: { reader: { key: "${READER}", scopes: ["rooms:*:game:read"] } },
}`;

const { browserTest, openProfile } = testBrowser();
let platform: TestPlatform;
let ann: SignedIn;
let bob: SignedIn;
const { enter, act, closeAll } = roomVisits(() => platform);
const open = (path: string, options?: Parameters<typeof openDashboard>[3]) =>
  openDashboard({ openProfile }, platform, path, options);
beforeAll(async () => {
  platform = await testPlatform({ config: CONFIG });
  [ann, bob] = await Promise.all([signIn(platform), signIn(platform)]);
});
afterAll(async () => {
  await closeAll();
  await platform.stop();
});

browserTest("[AD45] rooms appear as they begin, and are found by type and beginning of the id", async () => {
  const { page, problems } = await open("/admin/rooms");
  await page.getByRole("heading", { level: 1, name: "Rooms" }).waitFor();
  expect(await page.title()).toBe("Rooms");
  await page.getByText("No rooms are live").waitFor();
  await enter(ann, "friday");
  await page.getByRole("link", { name: "friday" }).waitFor();
  await enter(bob, "friday");
  await page.getByRole("row", { name: /friday game 2 2/ }).waitFor();
  await enter(ann, "monday", "chess");
  await page.getByText("chess: 1 room, 1 player").waitFor();
  await page.getByRole("textbox", { name: "Search" }).fill("mon");
  await page.getByRole("link", { name: "friday" }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: "monday" }).waitFor();
  await page.getByRole("combobox", { name: "Type" }).click();
  await page.getByRole("option", { name: "game" }).click();
  await page.getByText("No live room begins so").waitFor();
  expect(new URL(page.url()).search).toBe("?q=mon&type=game");
  await page.reload();
  await page.getByText("No live room begins so").waitFor();
  expect(problems).toEqual([]);
});

browserTest("[AD45] the state of a room is a tree that changes as the room does", async () => {
  const socket = await enter(ann, "tree");
  const { page } = await open("/admin/rooms/game/tree");
  await page.getByRole("heading", { level: 1, name: "tree" }).waitFor();
  const shared = page.getByRole("region", { name: "Shared state" });
  await shared.getByText("score").waitFor();
  await act(socket, "add", { by: 7 });
  await shared.getByText("7", { exact: true }).waitFor();
  expect(await shared.locator(".json-changed").allTextContents()).toContain("7");
  await act(socket, "open");
  await shared.getByText("door").waitFor();
  await shared.getByRole("button", { name: /board/ }).click();
  expect(await shared.getByText("rows").count()).toBe(0);
  // It stays closed while the rest changes.
  await act(socket, "add", { by: 1 });
  await shared.getByText("8", { exact: true }).waitFor();
  expect(await shared.getByText("rows").count()).toBe(0);
  await page.getByRole("region", { name: "Metadata" }).getByText("A game").waitFor();
  await page.getByRole("region", { name: "Server state" }).getByText("42").waitFor();
  await page.getByRole("region", { name: "Players" }).getByRole("button", { name: /cards/ }).click();
  await page.getByRole("region", { name: "Players" }).getByText("ace", { exact: true }).waitFor();
});

browserTest("[AD45] a player is kicked, and the room is closed", async () => {
  const kicked = await enter(ann, "ends");
  const closed = await enter(bob, "ends");
  const { page } = await open("/admin/rooms/game/ends");
  await page.getByRole("button", { name: `Kick ${ann.id}` }).click();
  expect((await kicked.closed).code).toBe(4001);
  await page.getByRole("button", { name: `Kick ${ann.id}` }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("dialog", { name: "Close" }).getByRole("button", { name: "Close", exact: true }).last().click();
  expect((await closed.closed).code).toBe(4001);
  await page.getByText("saved", { exact: true }).waitFor();
  await page.getByText("Nobody is in the room.").waitFor();
  expect(await page.getByRole("button", { name: "Close" }).count()).toBe(0);
  await page.goto(`${platform.url}/admin/rooms/game/nowhere`);
  await page.getByRole("alert").getByText('There is no room "nowhere"').waitFor();
});

browserTest(
  "[AD45] [AD21] a key that may only read one type sees no button that changes, and no other type",
  async () => {
    await enter(ann, "scoped");
    await enter(ann, "scoped", "chess");
    const { page } = await open("/admin/rooms", { key: READER });
    await page.getByRole("row", { name: /scoped game/ }).waitFor();
    expect(await page.getByRole("row", { name: /chess/ }).count()).toBe(0);
    expect(await page.getByRole("navigation").getByRole("link").allTextContents()).toEqual(["Overview", "Rooms"]);
    await page.getByRole("link", { name: "scoped" }).click();
    await page.getByRole("region", { name: "Shared state" }).getByText("score").waitFor();
    for (const name of [/^Kick/, "Close"]) expect(await page.getByRole("button", { name }).count()).toBe(0);
    await page.goto(`${platform.url}/admin/rooms/chess/scoped`);
    await page.getByRole("alert").getByText("Access denied").waitFor();
  },
);

for (const { name, options } of LOOKS) {
  browserTest(`[AD30] the pages of rooms are accessible and fit: ${name}`, async () => {
    await enter(ann, LONG);
    const { page } = await open("/admin/rooms", options);
    await page.getByRole("link", { name: LONG }).waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: LONG }).click();
    await page.getByRole("region", { name: "Shared state" }).getByText("score").waitFor();
    await expectAccessible(page);
  });
}
