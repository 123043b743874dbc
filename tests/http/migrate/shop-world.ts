import type { JsonObject } from "../../../src/kernel/json/json.ts";
import { startPocketbase } from "../../support/pocketbase.ts";
import { PASSWORD, picture, TIMES } from "./demo-world.ts";

const relation = (name: string, target: JsonObject, options: JsonObject = {}) => ({
  name,
  type: "relation",
  collectionId: String(target["id"]),
  maxSelect: 1,
  ...options,
});

const IS_MEMBER = "team.members_via_team.user ?= @request.auth.id";
const IS_OWNER = `${IS_MEMBER} && team.members_via_team.role ?= "owner"`;

/** Fills a PocketBase with a shop: teams with members and roles, products with files, orders, and staff who sign in as well. */
export async function shopWorld() {
  const pb = await startPocketbase();
  const users = await pb.collection({ name: "users" });
  const ownFields = users["fields"] as { name: string }[];
  await pb.collection({ name: "users", fields: [...ownFields, { name: "banned", type: "bool" }] });
  await pb.collection({
    name: "staff",
    type: "auth",
    authRule: "rank > 3",
    listRule: "id = @request.auth.id",
    viewRule: "id = @request.auth.id",
    fields: [{ name: "rank", type: "number" }, ...TIMES],
  });
  const teams = await pb.collection({
    name: "teams",
    type: "base",
    createRule: '@request.auth.id != "" && owner = @request.auth.id',
    deleteRule: "owner = @request.auth.id",
    fields: [{ name: "name", type: "text", required: true }, relation("owner", users, { required: true }), ...TIMES],
  });
  const _members = await pb.collection({
    name: "members",
    type: "base",
    listRule: "user = @request.auth.id",
    viewRule: "user = @request.auth.id",
    createRule: "team.owner = @request.auth.id",
    deleteRule: "team.owner = @request.auth.id || user = @request.auth.id",
    fields: [
      relation("team", teams, { required: true, cascadeDelete: true }),
      relation("user", users, { required: true, cascadeDelete: true }),
      { name: "role", type: "select", values: ["owner", "clerk"], required: true },
    ],
    indexes: ["CREATE UNIQUE INDEX idx_members ON members (team, user)"],
  });
  const seen = "members_via_team.user ?= @request.auth.id";
  await pb.collection({
    name: "teams",
    listRule: seen,
    viewRule: seen,
    updateRule: `${seen} && members_via_team.role ?= "owner"`,
  });
  const products = await pb.collection({
    name: "products",
    type: "base",
    listRule: `published = true || ${IS_MEMBER}`,
    viewRule: `published = true || ${IS_MEMBER}`,
    createRule: IS_MEMBER,
    updateRule: IS_OWNER,
    deleteRule: IS_OWNER,
    fields: [
      { name: "name", type: "text", required: true },
      relation("team", teams, { required: true }),
      { name: "price", type: "number", min: 0 },
      { name: "published", type: "bool" },
      { name: "photos", type: "file", maxSelect: 3 },
      { name: "code", type: "text" },
      { name: "origin", type: "text" },
      { name: "cost", type: "number", hidden: true },
      ...TIMES,
    ],
  });
  await pb.collection({
    name: "orders",
    type: "base",
    listRule: 'buyer = @request.auth.id || @request.auth.collectionName = "staff"',
    viewRule: `buyer = @request.auth.id || product.${IS_MEMBER}`,
    createRule:
      "buyer = @request.auth.id && product.published = true && @request.body.paid:isset = false && @request.auth.banned = false",
    updateRule: 'buyer = @request.auth.id && @request.body.buyer:isset = false && state = "new"',
    deleteRule: null,
    fields: [
      relation("product", products, { required: true }),
      relation("buyer", users),
      { name: "count", type: "number", onlyInt: true, min: 1, required: true },
      { name: "state", type: "select", values: ["new", "sent"] },
      { name: "paid", type: "bool" },
      ...TIMES,
    ],
  });
  const account = async (collection: string, name: string, values = {}) => {
    const given = {
      email: `${name}@example.com`,
      password: PASSWORD,
      passwordConfirm: PASSWORD,
      verified: true,
      ...values,
    };
    return String((await pb.insert(collection, given))["id"]);
  };
  const ids = {
    owner: await account("users", "owner"),
    member: await account("users", "member"),
    stranger: await account("users", "stranger"),
    clerk: await account("staff", "clerk", { rank: 5 }),
    intern: await account("staff", "intern", { rank: 1 }),
    // There each collection has addresses of its own.
    twin: await account("staff", "owner", { rank: 9 }),
  };
  const insert = async (collection: string, values: Parameters<typeof pb.insert>[1]) =>
    String((await pb.insert(collection, values))["id"]);
  const team = await insert("teams", { name: "Lamps", owner: ids.owner });
  const other = await insert("teams", { name: "Chairs", owner: ids.stranger });
  for (const [of, user, role] of [
    [team, ids.owner, "owner"],
    [team, ids.member, "clerk"],
    [other, ids.stranger, "owner"],
    // A clerk in one team is no owner of the other.
    [other, ids.owner, "clerk"],
  ] as const) {
    await pb.insert("members", { team: of, user, role });
  }
  const lamp = await insert("products", {
    name: "Lamp",
    team,
    price: 20,
    published: true,
    code: "a long code",
    cost: 9,
    photos: [picture("lamp.png")],
  });
  const draft = await insert("products", { name: "Draft", team, price: 5, origin: "Oslo" });
  const chair = await insert("products", { name: "Chair", team: other, price: 70 });
  const orderIds = [
    await insert("orders", { product: lamp, buyer: ids.stranger, count: 1, state: "new" }),
    await insert("orders", { product: lamp, buyer: ids.member, count: 2, state: "sent", paid: true }),
    // There everybody without a token is its buyer.
    await insert("orders", { product: chair, count: 3, state: "new" }),
  ];
  // What is stored is not compared with bounds that come later.
  const stricter = (products["fields"] as (JsonObject & { name: string })[]).map((field) => {
    if (field.name === "code") return { ...field, max: 4 };
    return field.name === "origin" ? { ...field, required: true } : field;
  });
  await pb.collection({ name: "products", fields: stricter });
  return {
    pb,
    ids,
    team,
    other,
    lamp,
    draft,
    chair,
    orderIds,
  };
}
