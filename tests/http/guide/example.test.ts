import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ErrorAnswer,
  type ListAnswer,
  openSocket,
  type SignedIn,
  signIn,
  type TestPlatform,
  testPlatform,
} from "../../support/index.ts";
import { until } from "../../support/until.ts";
import { mailedToken } from "../auth/auth-support.ts";

// The film club of platform.config.ts does what its comments say.

const films = "/api/db/shared/tables/films";
const reviews = "/api/db/shared/tables/reviews";

let platform: TestPlatform;
let ann: SignedIn;
let ben: SignedIn;
let editor: SignedIn;

beforeAll(async () => {
  platform = await testPlatform({
    config: readFileSync(join(import.meta.dir, "../../../platform.config.ts"), "utf8"),
    files: { "example/web/public/index.html": "<h1>Film club</h1>" },
  });
  [ann, ben, editor] = await Promise.all([signIn(platform), signIn(platform), signIn(platform, { role: "editor" })]);
});
afterAll(() => platform.stop());

let filmCount = 0;
async function addFilm(title: string): Promise<string> {
  const { status, body } = await editor.post<{ id: string }>(films, { title, director: `Director ${++filmCount}` });
  expect(status).toBe(201);
  return body.id;
}

test("editors look after the catalogue, everybody reads and searches it", async () => {
  const id = await addFilm("The Third Man");
  expect((await platform.get(`${films}/${id}`)).body).toMatchObject({ title: "The Third Man" });
  const found = await platform.get<ListAnswer>(`${films}/search?q=third`);
  expect(found.body.items).toMatchObject([{ id, highlights: { title: "The <mark>Third</mark> Man" } }]);
  expect((await ann.post(films, { title: "Mine" })).status).toBe(403);
  expect((await platform.post(films, { title: "Nobody's" })).status).toBe(401);
  expect((await editor.delete(`${films}/${id}`)).status).toBe(403);
  const wrong = await editor.post<ErrorAnswer>(films, { title: "X", rating: "PG-99" });
  expect(wrong.body).toMatchObject({ code: 400, data: { rating: { code: "invalid_value" } } });
});

test("a review belongs to its author, and each user writes one per film", async () => {
  const film = await addFilm("Stalker");
  const review = await ann.post<{ id: string }>(reviews, {
    film,
    stars: 5,
    text: "Slow, and right so",
    ownerId: ben.id,
  });
  expect(review.body).toMatchObject({ stars: 5, ownerId: ann.id });
  expect((await ann.post(reviews, { film, stars: 1 })).status).toBe(409);
  expect((await ben.patch(`${reviews}/${review.body.id}`, { stars: 1 })).status).toBe(403);
  expect((await ann.patch(`${reviews}/${review.body.id}`, { ownerId: ben.id })).status).toBe(403);
  expect((await ann.patch(`${reviews}/${review.body.id}`, { stars: 4 })).body).toMatchObject({ stars: 4 });
  const overwritten = await ben.post(`${reviews}?upsert=true`, { id: review.body.id, film, stars: 1 });
  expect(overwritten.status).toBe(403);
  expect((await ben.delete(`${reviews}/${review.body.id}`)).status).toBe(403);
  expect((await editor.delete(`${reviews}/${review.body.id}`)).status).toBe(200);
});

test("anonymous visitors read, and write nothing", async () => {
  const film = await addFilm("Solaris");
  const visitor = await platform.post<{ accessToken: string }>("/api/auth/signin/anonymous");
  const door = platform.as(visitor.body.accessToken);
  expect((await door.get(`${films}/${film}`)).status).toBe(200);
  expect((await door.post(reviews, { film, stars: 3 })).status).toBe(403);
});

test("a film's reviews are deleted with it, and new ones are broadcast", async () => {
  const film = await addFilm("Playtime");
  const socket = await openSocket(`${platform.wsUrl}/api/realtime`);
  socket.send({ type: "auth", token: ben.token });
  await socket.expect({ type: "auth_success" });
  socket.send({ type: "subscribe", channel: "broadcast:reviews" });
  await socket.expect({ type: "subscribed" });
  const { body } = await ann.post<{ id: string }>(reviews, { film, stars: 5 });
  await socket.expect({ type: "broadcast_event", event: "new", data: { film, stars: 5 } });
  await socket.close();
  expect((await platform.service.delete(`${films}/${film}`)).status).toBe(200);
  expect((await platform.get(`${reviews}/${body.id}`)).status).toBe(404);
});

test("a club belongs to its founder and the invited members", async () => {
  const club = `${ann.id}-noir`;
  const tables = `/api/db/clubs/${club}/tables`;
  expect((await ben.post(`${tables}/messages`, { text: "squatting" })).status).toBe(403);
  const first = await ann.post<{ id: string }>(`${tables}/messages`, { text: "Welcome", authorId: ben.id });
  expect(first.body).toMatchObject({ text: "Welcome", authorId: ann.id });
  expect((await ben.get(`${tables}/messages`)).status).toBe(403);
  const guest = await signIn(platform);
  expect((await guest.post(`${tables}/members`, { userId: guest.id, nickname: "Guest" })).status).toBe(403);
  const invited = await ann.post<{ id: string }>(`${tables}/members`, { userId: guest.id, nickname: "Guest" });
  expect(invited.status).toBe(201);
  expect((await guest.get<ListAnswer>(`${tables}/messages`)).body.items).toMatchObject([{ text: "Welcome" }]);
  expect((await guest.post(`${tables}/members`, { userId: ben.id, nickname: "Ben" })).status).toBe(403);
  expect((await guest.patch(`${tables}/members/${invited.body.id}`, { nickname: "The guest" })).status).toBe(200);
  expect((await guest.patch(`${tables}/messages/${first.body.id}`, { text: "changed" })).status).toBe(403);
  expect((await guest.delete(`${tables}/messages/${first.body.id}`)).status).toBe(403);
  expect((await ann.delete(`${tables}/members/${invited.body.id}`)).status).toBe(200);
  expect((await guest.get(`${tables}/messages`)).status).toBe(403);
});

test("a watch list is its owner's, and a club has the members whom its founder invites", async () => {
  const film = await addFilm("Brazil");
  const list = "/api/db/shared/tables/watchlist";
  const entry = await ann.post<{ id: string }>(list, { film, ownerId: ben.id });
  expect(entry.body).toMatchObject({ film, ownerId: ann.id });
  expect((await ann.post(list, { film })).status).toBe(409);
  expect((await ben.get<ListAnswer>(list)).body.items).toEqual([]);
  expect((await platform.get(list)).status).toBe(401);
  expect((await ben.delete(`${list}/${entry.body.id}`)).status).toBe(404);

  const clubs = "/api/db/shared/tables/clubs";
  const club = { id: `${ann.id}-musicals`, name: "Musicals" };
  expect((await ben.post(clubs, club)).status).toBe(403);
  expect((await ann.post(clubs, club)).body).toMatchObject({ ownerId: ann.id });
  const [{ email = "" } = {}] = [(await ben.get<{ user: { email: string } }>("/api/auth/me")).body.user];
  const invitations = `/api/functions/clubs/${club.id}/invitations`;
  expect((await ben.post(invitations, { email })).status).toBe(403);
  expect((await ann.post(invitations, { email })).status).toBe(200);
  const messages = `/api/db/clubs/${club.id}/tables/messages`;
  await ann.post(messages, { text: "Curtain up" });
  expect((await ben.get(messages)).status).toBe(403);
  const token = mailedToken(platform, email);
  expect((await ann.post("/api/auth/accept-invite", { token })).status).toBe(403);
  expect((await ben.post("/api/auth/accept-invite", { token })).status).toBe(200);
  await until("ben is a member", async () => (await ben.get(messages)).status === 200);
  expect((await ben.get<ListAnswer>(messages)).body.items).toMatchObject([{ text: "Curtain up" }]);
  expect((await ben.delete(`${clubs}/${club.id}`)).status).toBe(403);
});

test("posters are public, avatars are their owner's", async () => {
  const upload = (caller: SignedIn, bucket: string, key: string) => {
    const form = new FormData();
    form.set("file", new File(["picture"], "p.jpg", { type: "image/jpeg" }));
    form.set("key", key);
    return caller.fetch(`/api/storage/${bucket}/upload`, { method: "POST", body: form });
  };
  expect((await upload(editor, "posters", "stalker.jpg")).status).toBe(201);
  expect((await upload(ann, "posters", "mine.jpg")).status).toBe(403);
  expect((await platform.fetch("/api/storage/posters/stalker.jpg")).status).toBe(200);
  expect((await upload(ann, "avatars", `${ann.id}/me.jpg`)).status).toBe(201);
  expect((await upload(ben, "avatars", `${ann.id}/me.jpg`)).status).toBe(403);
  expect((await ben.fetch(`/api/storage/avatars/${ann.id}/me.jpg`)).status).toBe(200);
  expect((await platform.fetch(`/api/storage/avatars/${ann.id}/me.jpg`)).status).toBe(401);
});

test("members of the lounge propose, vote and see the same position", async () => {
  const film = await addFilm("Rear Window");
  const sit = async (person: SignedIn) => {
    const socket = await openSocket(`${platform.wsUrl}/api/room?namespace=lounge&id=tonight`);
    socket.send({ type: "auth", token: person.token });
    await socket.expect({ type: "auth_success" });
    socket.send({ type: "join" });
    await socket.nextOf("sync");
    return socket;
  };
  const [one, other] = [await sit(ann), await sit(ben)];
  expect((await platform.get("/api/room/metadata?namespace=lounge&id=tonight")).body).toEqual({ present: 2 });
  one.send({ type: "send", actionType: "propose", payload: film, requestId: "1" });
  expect(await one.nextOf("action_result")).toMatchObject({ requestId: "1", result: { title: "Rear Window" } });
  expect(await other.nextOf("message")).toMatchObject({ messageType: "proposed", data: { title: "Rear Window" } });
  other.send({ type: "send", actionType: "vote", payload: true, requestId: "2" });
  other.send({ type: "send", actionType: "play", payload: 61, requestId: "3" });
  other.send({ type: "send", actionType: "propose", payload: "no-such-film", requestId: "4" });
  expect(await other.nextOf("action_error")).toMatchObject({ requestId: "4", message: "There is no such film" });
  await one.close();
  await other.close();
  const again = await openSocket(`${platform.wsUrl}/api/room?namespace=lounge&id=tonight`);
  again.send({ type: "auth", token: ann.token });
  again.send({ type: "join" });
  const { sharedState } = await again.nextOf<{ sharedState: object }>("sync");
  expect(sharedState).toEqual({ film, isPlaying: true, positionSeconds: 61, votes: { [ben.id]: true } });
  await again.close();
});
