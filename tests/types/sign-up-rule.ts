import { defineConfig } from "platform";

// Checked by `tsc`, never run: the facts and the context of a sign-up rule are typed without annotations.

export default defineConfig({
  auth: {
    signup: async ({ method, email, emailVerified, metadata }, { db, namespace }) => {
      const isListed =
        email !== null &&
        db("lists")
          .table("domains")
          .exists([["name", "==", email]]);
      // @ts-expect-error: there is no such way of signing up
      if (method === "telepathy") return false;
      return namespace === null && emailVerified && isListed && metadata["plan"] === "free";
    },
  },
  databases: { lists: { tables: { domains: { schema: { name: { type: "string", unique: true } } } } } },
});

export const wrong = defineConfig({
  // @ts-expect-error: a rule gives a boolean
  auth: { signup: () => "yes" },
});
