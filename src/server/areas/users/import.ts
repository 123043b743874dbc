import type { Static } from "typebox";
import { type FieldProblem, type FieldProblems, noProblems } from "../../../kernel/errors.ts";
import { throwProblems } from "../../../kernel/fields.ts";
import { parseIsoDateTime } from "../../../kernel/time/iso-datetime.ts";
import { nextTurn } from "../../../kernel/time/next-turn.ts";
import { emailOf } from "../../config/shapes/user-fields.ts";
import type { ImportedAccount } from "../../access/accounts.ts";
import { METADATA_MAX_BYTES } from "../../access/limits.ts";
import { USERS_PER_SLICE } from "./limits.ts";
import type { userImport } from "./schemas.ts";

export type ImportedUser = Static<ReturnType<typeof userImport>>["users"][number];

interface ImportRules {
  hashProblem: (text: string) => string | null;
  /** The names of `auth.oauth`. */
  providers: ReadonlySet<string>;
}

/** The accounts of an import, checked in slices, as a thousand users may have 10 MiB. Errors: 400 naming every `users.N.field` at fault. */
export async function readImport(users: readonly ImportedUser[], rules: ImportRules): Promise<ImportedAccount[]> {
  const problems = noProblems();
  const accounts: ImportedAccount[] = [];
  for (const [index, user] of users.entries()) {
    if (index % USERS_PER_SLICE === USERS_PER_SLICE - 1) await nextTurn();
    for (const [field, problem] of Object.entries(problemsOf(user, rules))) {
      problems[`users.${index}.${field}`] = problem;
    }
    accounts.push(accountOf(user));
  }
  throwProblems(problems);
  return accounts;
}

function accountOf(user: ImportedUser): ImportedAccount {
  return {
    id: user.id ?? undefined,
    email: emailOf(user.email),
    password: user.password ?? undefined,
    passwordHash: user.passwordHash ?? undefined,
    displayName: user.displayName,
    avatarUrl: user.avatarUrl,
    role: user.role,
    emailVerified: user.verified,
    metadata: user.metadata,
    appMetadata: user.appMetadata,
    createdAt: typeof user.createdAt === "string" ? parseIsoDateTime(user.createdAt) : undefined,
    identities: user.identities?.map((identity) => ({
      ...identity,
      email: typeof identity.email === "string" ? emailOf(identity.email) : null,
    })),
  };
}

function problemsOf(user: ImportedUser, { hashProblem, providers }: ImportRules): FieldProblems {
  const problems = noProblems();
  const password = passwordProblem(user);
  if (password !== null) problems["password"] = password;
  const hash = typeof user.passwordHash === "string" && password === null ? hashProblem(user.passwordHash) : null;
  if (hash !== null) problems["passwordHash"] = { code: "invalid_value", message: `passwordHash ${hash}` };
  const identities = identitiesProblem(user, providers);
  if (identities !== null) problems["identities"] = identities;
  for (const name of ["metadata", "appMetadata"] as const) {
    const value = user[name];
    if (value === undefined || Buffer.byteLength(JSON.stringify(value)) <= METADATA_MAX_BYTES) continue;
    // The size of one user's metadata is one problem among others, and not the size of the request: 400 instead of 413.
    problems[name] = { code: "too_large", message: `${name} must be at most ${METADATA_MAX_BYTES} bytes of JSON` };
  }
  return problems;
}

/** An account without either signs in by link, code or provider, or sets a password by mail. */
function passwordProblem({ password, passwordHash }: ImportedUser): FieldProblem | null {
  if (typeof password !== "string" || typeof passwordHash !== "string") return null;
  return { code: "invalid_value", message: "password and passwordHash exclude each other" };
}

/** Identities of a provider that the config does not name could sign nobody in. */
function identitiesProblem({ identities }: ImportedUser, providers: ReadonlySet<string>): FieldProblem | null {
  const unknown = identities?.find(({ provider }) => !providers.has(provider));
  if (unknown === undefined) return null;
  return {
    code: "invalid_value",
    message: `identities names "${unknown.provider}", which is no provider of auth.oauth`,
  };
}
