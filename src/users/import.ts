import type { Static } from "typebox";
import { emailOf } from "../access/account-fields.ts";
import type { NewAccount } from "../access/accounts.ts";
import { METADATA_MAX_BYTES } from "../access/limits.ts";
import { type FieldProblem, type FieldProblems, noProblems } from "../kernel/errors.ts";
import { throwProblems } from "../kernel/fields.ts";
import { nextTurn } from "../kernel/time/next-turn.ts";
import { USERS_PER_SLICE } from "./limits.ts";
import type { userImport } from "./schemas.ts";

export type ImportedUser = Static<ReturnType<typeof userImport>>["users"][number];
type HashProblem = (text: string) => string | null;

/** The accounts of an import, checked in slices, as a thousand users may have 10 MiB. Errors: 400 naming every `users.N.field` at fault. */
export async function readImport(users: readonly ImportedUser[], hashProblem: HashProblem): Promise<NewAccount[]> {
  const problems = noProblems();
  const accounts: NewAccount[] = [];
  for (const [index, user] of users.entries()) {
    if (index % USERS_PER_SLICE === USERS_PER_SLICE - 1) await nextTurn();
    for (const [field, problem] of Object.entries(problemsOf(user, hashProblem))) {
      problems[`users.${index}.${field}`] = problem;
    }
    accounts.push(accountOf(user));
  }
  throwProblems(problems);
  return accounts;
}

function accountOf(user: ImportedUser): NewAccount {
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
  };
}

function problemsOf(user: ImportedUser, hashProblem: HashProblem): FieldProblems {
  const problems = noProblems();
  const password = passwordProblem(user);
  if (password !== null) problems["password"] = password;
  const hash = typeof user.passwordHash === "string" && password === null ? hashProblem(user.passwordHash) : null;
  if (hash !== null) problems["passwordHash"] = { code: "invalid_value", message: `passwordHash ${hash}` };
  for (const name of ["metadata", "appMetadata"] as const) {
    const value = user[name];
    if (value === undefined || Buffer.byteLength(JSON.stringify(value)) <= METADATA_MAX_BYTES) continue;
    // The size of one user's metadata is one problem among others, and not the size of the request: 400 instead of 413.
    problems[name] = { code: "too_large", message: `${name} must be at most ${METADATA_MAX_BYTES} bytes of JSON` };
  }
  return problems;
}

function passwordProblem({ password, passwordHash }: ImportedUser): FieldProblem | null {
  const hasPassword = typeof password === "string";
  const hasHash = typeof passwordHash === "string";
  if (hasPassword && hasHash) {
    return { code: "invalid_value", message: "password and passwordHash exclude each other" };
  }
  return hasPassword || hasHash ? null : { code: "required", message: "password or passwordHash is required" };
}
