import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { startPocketbase } from "../../support/pocketbase.ts";
import { PASSWORD, TIMES } from "./demo-world.ts";

const relation = (name: string, target: JsonObject, options: JsonObject = {}) => ({
  name,
  type: "relation",
  collectionId: String(target["id"]),
  maxSelect: 1,
  ...options,
});

/** Names of the tables of marks, each with a rule of its own form. */
export const MARKS = [
  ...["any", "every", "nobodys", "moods", "both", "secret", "blocked", "listed", "known"],
  ...["lower", "long", "near", "same"],
];

/** Fills a PocketBase with a blog: posts with editors and labels, comments that answer one another, likes, and who blocks whom. */
export async function blogWorld() {
  const pb = await startPocketbase();
  const users = await pb.collection({
    name: "users",
    listRule: '@request.auth.id != ""',
    viewRule: '@request.auth.id != ""',
  });
  await pb.collection({
    name: "users",
    fields: [
      ...(users["fields"] as { name: string }[]),
      { name: "level", type: "number", onlyInt: true },
      { name: "moderator", type: "bool", hidden: true },
    ],
  });
  const labels = await pb.collection({
    name: "labels",
    type: "base",
    listRule: "",
    viewRule: "",
    createRule: "@request.auth.verified = true && @request.auth.level >= 3",
    fields: [{ name: "name", type: "text", required: true }],
    indexes: ["CREATE UNIQUE INDEX idx_labels_name ON labels (name)"],
  });
  const seen =
    'status = "published" && publishedAt <= @now || author = @request.auth.id || editors.id ?= @request.auth.id // mine';
  const _blocks = await pb.collection({
    name: "blocks",
    type: "base",
    listRule: "who = @request.auth.id",
    viewRule: "who = @request.auth.id",
    fields: [relation("who", users), { name: "whom", type: "text" }],
  });
  const posts = await pb.collection({
    name: "posts",
    type: "base",
    listRule: seen,
    viewRule: seen,
    createRule: "author = @request.auth.id && (@request.body.pinned:isset = false || @request.auth.level > 5)",
    updateRule:
      '(author = @request.auth.id || editors ~ @request.auth.id) && @request.body.author:isset = false && @request.body.status != "deleted"',
    deleteRule: 'author = @request.auth.id && title !~ "keep"',
    fields: [
      { name: "title", type: "text", required: true },
      { name: "status", type: "select", values: ["draft", "published", "deleted"] },
      { name: "publishedAt", type: "date" },
      { name: "pinned", type: "bool" },
      { name: "moods", type: "select", maxSelect: 3, values: ["glad", "sad", "sadder"] },
      relation("author", users),
      relation("editors", users, { maxSelect: 9 }),
      relation("labels", labels, { maxSelect: 9 }),
      ...TIMES,
    ],
  });
  const comments = await pb.collection({
    name: "comments",
    type: "base",
    listRule: 'post.status = "published" || post.author = @request.auth.id',
    viewRule: 'post.status = "published" || post.author = @request.auth.id',
    createRule:
      'author = @request.auth.id && @collection.blocks.who ?= author && @collection.blocks.whom ?= "nobody-at-all" || author = @request.auth.id && post.status = "published"',
    deleteRule: "author = @request.auth.id || post.author = @request.auth.id",
    fields: [
      { name: "text", type: "text", required: true },
      relation("post", posts, { required: true, cascadeDelete: true }),
      relation("author", users),
      ...TIMES,
    ],
  });
  await pb.collection({
    name: "comments",
    updateRule: 'author = @request.auth.id && @request.body.text:isset = true && @request.headers.via = "unsupported"',
    fields: [...(comments["fields"] as { name: string }[]), relation("answers", comments)],
  });
  const _likes = await pb.collection({
    name: "likes",
    type: "base",
    listRule: '@request.auth.id != "" && user != @request.auth.id',
    viewRule: '@request.auth.id != "" && user != @request.auth.id',
    createRule: "user = @request.auth.id",
    deleteRule: "user = @request.auth.id",
    fields: [relation("post", posts, { required: true }), relation("user", users, { required: true })],
    indexes: ["CREATE UNIQUE INDEX idx_likes ON likes (post, user)"],
  });
  // Posts with a like of mine; posts that all likes are mine of; posts that nobody whom I know likes.
  for (const [name, rule] of [
    ["any", "post.likes_via_post.user ?= @request.auth.id"],
    ["every", "post.likes_via_post.user = @request.auth.id"],
    ["nobodys", "post.likes_via_post.user != @request.auth.id"],
    ["moods", 'post.moods:each ?= "sad" && @request.auth.id != ""'],
    ["both", 'post.likes_via_post.user ?= @request.auth.id && (post.likes_via_post.post ?= "x" || kind = "open")'],
    ["secret", 'secret = "yes" && @request.auth.id != ""'],
    ["blocked", "@collection.blocks.who ?= @request.auth.id && @collection.blocks.whom ?= kind"],
    ["listed", '@collection.blocks.whom ?= kind && @request.auth.id != ""'],
    ["known", "@request.auth.blocks_via_who.whom ?= kind"],
    ["lower", 'kind:lower = "open" && @request.auth.id != ""'],
    ["long", 'moods:length > 1 && @request.auth.id != ""'],
    ["near", 'geoDistance(at.lon, at.lat, 16.37, 48.2) < 50 && @request.auth.id != ""'],
    ["same", 'post = other && @request.method = "GET" && @request.auth.id != ""'],
  ] as const) {
    await pb.collection({
      name: `marks_${name}`,
      type: "base",
      listRule: rule,
      viewRule: rule,
      fields: [
        relation("post", posts),
        relation("other", posts),
        { name: "kind", type: "text" },
        { name: "secret", type: "text", hidden: true },
        { name: "moods", type: "select", maxSelect: 3, values: ["glad", "sad", "sadder"] },
        { name: "at", type: "geoPoint" },
      ],
    });
  }
  for (const [name, viewQuery, rule] of [
    [
      "liked",
      "SELECT posts.id, posts.title, posts.author, posts.created, count(likes.id) AS total FROM posts LEFT JOIN likes ON likes.post = posts.id GROUP BY posts.id",
      'total > 0 || author = @request.auth.id && @request.auth.id != ""',
    ],
    ["chosen", 'SELECT id, title FROM posts WHERE publishedAt = ""', ""],
    ["exposed", "SELECT id, moderator FROM users", ""],
  ] as const) {
    await pb.collection({ name, type: "view", viewQuery, listRule: rule, viewRule: rule });
  }
  const account = async (name: string, values = {}) => {
    const given = { email: `${name}@example.com`, password: PASSWORD, passwordConfirm: PASSWORD, verified: true, name };
    return String((await pb.insert("users", { ...given, ...values }))["id"]);
  };
  const ids = {
    owner: await account("owner", { level: 9, emailVisibility: true }),
    member: await account("member", { level: 3 }),
    stranger: await account("stranger", { level: 1, verified: false }),
  };
  const insert = async (collection: string, values: JsonObject) => String((await pb.insert(collection, values))["id"]);
  const label = await insert("labels", { name: "news" });
  const past = "2020-01-01 10:00:00.000Z";
  const open = await insert("posts", {
    title: "Open",
    status: "published",
    publishedAt: past,
    author: ids.owner,
    moods: ["sad"],
    labels: [label],
  });
  const draft = await insert("posts", {
    title: "Draft",
    status: "draft",
    author: ids.owner,
    editors: [ids.member],
    moods: ["sadder"],
  });
  const later = await insert("posts", {
    title: "Keep later",
    status: "published",
    publishedAt: "2090-01-01 10:00:00.000Z",
    author: ids.owner,
  });
  const orphan = await insert("posts", { title: "Orphan", status: "draft" });
  for (const [post, user] of [
    [open, ids.owner],
    [open, ids.member],
    [draft, ids.member],
  ] as const) {
    await insert("likes", { post, user });
  }
  await insert("blocks", { who: ids.owner, whom: "troll" });
  await insert("blocks", { who: ids.member, whom: "bore" });
  const first = await insert("comments", { text: "First", post: open, author: ids.member });
  await insert("comments", { text: "Second", post: open, author: ids.stranger, answers: first });
  await insert("comments", { text: "Inside", post: draft, author: ids.member });
  const titles: Record<string, string> = { [open]: "open", [draft]: "draft", [later]: "later", [orphan]: "orphan" };
  for (const name of MARKS) {
    for (const [post, kind] of [
      [open, "open"],
      [draft, "troll"],
      [later, "bore"],
      [orphan, ""],
    ] as const) {
      const secret = kind === "troll" ? "yes" : "";
      const written = name === "lower" ? kind.toUpperCase() : kind;
      const other = kind === "bore" ? open : post;
      const moods = kind === "troll" ? ["sad", "glad"] : ["sad"];
      const at = kind === "open" ? { lon: 16.4, lat: 48.2 } : { lon: 11.6, lat: 48.1 };
      titles[await insert(`marks_${name}`, { post, other, kind: written, secret, moods, at })] = kind || "none";
    }
  }
  return { pb, ids, open, draft, later, orphan, label, first, titles };
}
