import { startPocketbase } from "../../support/pocketbase.ts";

export const PASSWORD = "correct horse battery";

export const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

export const picture = (name: string): File => new File([PNG], name, { type: "image/png" });

/** The fields of both times, which the dashboard of PocketBase proposes. */
export const TIMES = [
  { name: "created", type: "autodate", onCreate: true },
  { name: "updated", type: "autodate", onCreate: true, onUpdate: true },
];

/** Fills a PocketBase with every type of field, hidden ones, accounts with identities, and files. */
export async function demoWorld() {
  const pb = await startPocketbase();
  const users = await pb.collection({ name: "users" });
  const usersId = String(users["id"]);
  await pb.collection({
    name: "users",
    authRule: "verified = true",
    fields: [
      ...(users["fields"] as { name: string }[]),
      { name: "points", type: "number", onlyInt: true },
      { name: "note", type: "text", hidden: true },
    ],
    oauth2: { enabled: true, providers: [{ name: "github", clientId: "github-id", clientSecret: "github-secret" }] },
  });
  const demo = await pb.collection({
    name: "demo",
    type: "base",
    fields: [
      { name: "text", type: "text", required: true, max: 40 },
      { name: "empty", type: "text" },
      { name: "html", type: "editor" },
      { name: "count", type: "number", onlyInt: true, min: 0 },
      { name: "price", type: "number" },
      { name: "done", type: "bool" },
      { name: "mail", type: "email" },
      { name: "link", type: "url" },
      { name: "due", type: "date" },
      { name: "kind", type: "select", maxSelect: 1, values: ["red", "green"] },
      { name: "kinds", type: "select", maxSelect: 2, values: ["a", "b", "c"] },
      { name: "data", type: "json" },
      { name: "at", type: "geoPoint" },
      { name: "picture", type: "file", maxSelect: 1, mimeTypes: ["image/png"], thumbs: ["100x100", "0x50"] },
      { name: "papers", type: "file", maxSelect: 3 },
      { name: "owner", type: "relation", collectionId: usersId, maxSelect: 1, cascadeDelete: true },
      { name: "people", type: "relation", collectionId: usersId, maxSelect: 9 },
      { name: "secret", type: "text", hidden: true },
      ...TIMES,
    ],
    indexes: ["CREATE INDEX idx_demo_due ON demo (kind, due)", "CREATE UNIQUE INDEX idx_demo_text ON demo (text)"],
  });
  await pb.collection({
    name: "demo",
    fields: [
      ...(demo["fields"] as { name: string }[]),
      { name: "parent", type: "relation", collectionId: String(demo["id"]), maxSelect: 1 },
    ],
  });
  const account = async (email: string, values = {}) =>
    String(
      (
        await pb.insert("users", {
          email,
          password: PASSWORD,
          passwordConfirm: PASSWORD,
          verified: true,
          name: email.slice(0, 3),
          ...values,
        })
      )["id"],
    );
  const ada = await account("ada@example.com", { emailVisibility: true, points: 7, note: "a secret" });
  const bob = await account("bob@example.com", { avatar: picture("bob.png"), verified: false });
  await pb.insert("_externalAuths", { collectionRef: usersId, recordRef: ada, provider: "github", providerId: "4711" });
  const full = await pb.insert("demo", {
    text: "Full",
    html: "<p>Grüße</p>",
    count: 3,
    price: 9.5,
    done: true,
    mail: "x@example.com",
    link: "https://example.com",
    due: "2030-05-06 07:08:09.123Z",
    kind: "green",
    kinds: ["c", "a"],
    data: { deep: [1, "two", null] },
    at: { lon: 16.37, lat: 48.2 },
    picture: picture("full.png"),
    papers: [
      new File(["one"], "one.txt", { type: "text/plain" }),
      new File(["two"], "two.txt", { type: "text/plain" }),
    ],
    owner: ada,
    people: [bob, ada],
    secret: "hush",
  });
  const bare = await pb.insert("demo", { text: "Bare", parent: String(full["id"]) });
  // In a cycle, which no order of inserts can make.
  await pb.superuser.patch(`/api/collections/demo/records/${String(full["id"])}`, { parent: String(bare["id"]) });
  return { pb, ada, bob, full: String(full["id"]), bare: String(bare["id"]) };
}
