import {
  avatarUrlField,
  checkPassword,
  displayNameField,
  emailField,
  emailVisibilityField,
  metadataField,
  newPasswordField,
  roleField,
} from "../access/account-fields.ts";
import type { AccountChanges, NewAccount } from "../access/accounts.ts";
import { METADATA_MAX_BYTES } from "../access/limits.ts";
import { badField, type FieldProblems } from "../kernel/errors.ts";
import { Fields, throwProblems } from "../kernel/fields.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { nextTurn } from "../kernel/next-turn.ts";
import { USERS_PER_SLICE } from "./limits.ts";

/** Spec: Limits. */
export const IMPORT_USERS_MAX = 1_000;
const PASSWORD_HASH_MAX_CHARACTERS = 4_096;
const ID_MAX_CHARACTERS = 256;
/** As record ids: no control characters, no `/`. Decisions 4 and 7. */
const ID = /^[^\p{Cc}/]+$/u;
/** The dots, because no URL can name them. */
const RESERVED_IDS = new Set(["count", "search", "batch", "batch-by-filter", ".", ".."]);

interface ParseOptions {
  passwordMinLength: number;
}

/** Errors: 400 with every problem. */
export function parseNewUser(body: JsonObject, { passwordMinLength }: ParseOptions): NewAccount {
  const fields = new Fields(body);
  const user = {
    email: emailField(fields),
    password: newPasswordField(fields, passwordMinLength),
    displayName: displayNameField(fields),
    role: roleField(fields),
  };
  fields.finish();
  return user;
}

/** Errors: 400, 413 for metadata over 16 KB. */
export function parseUserChanges(body: JsonObject): AccountChanges {
  const fields = new Fields(body);
  const changes = {
    displayName: displayNameField(fields),
    avatarUrl: avatarUrlField(fields),
    role: roleField(fields),
    emailVisibility: emailVisibilityField(fields),
    disabled: fields.flag("disabled"),
    metadata: metadataField(fields, "metadata"),
    appMetadata: metadataField(fields, "appMetadata"),
  };
  fields.finish();
  return changes;
}

interface ImportOptions extends ParseOptions {
  passwordHashProblem(text: string): string | null;
}

/** In slices, since a thousand users may have 10 MiB. Errors: 400 naming every `users.N.field` at fault. */
export async function parseImport(body: JsonObject, options: ImportOptions): Promise<NewAccount[]> {
  const top = new Fields(body);
  const users = top.value("users");
  if (users === undefined || users === null) top.problem("users", "required", "users is required");
  else if (!Array.isArray(users)) top.problem("users", "invalid_type", "users must be an array");
  top.finish();
  if (!Array.isArray(users)) return [];
  if (users.length > IMPORT_USERS_MAX) {
    throw badField("users", "too_long", `users must hold at most ${IMPORT_USERS_MAX}, got ${users.length}`);
  }
  const problems: FieldProblems = {};
  const parsed: NewAccount[] = [];
  for (const [index, user] of users.entries()) {
    if (index % USERS_PER_SLICE === USERS_PER_SLICE - 1) await nextTurn();
    if (isJsonObject(user)) {
      parsed.push(parseImported(new Fields(user, { prefix: `users.${index}.`, problems }), options));
    } else problems[`users.${index}`] = { code: "invalid_type", message: `users.${index} must be an object` };
  }
  throwProblems(problems);
  return parsed;
}

function parseImported(fields: Fields, options: ImportOptions): NewAccount {
  const user: NewAccount = {
    id: idField(fields),
    email: emailField(fields),
    ...passwordFields(fields, options),
    displayName: displayNameField(fields),
    avatarUrl: avatarUrlField(fields),
    role: roleField(fields),
    emailVerified: fields.flag("verified"),
    metadata: importedMetadata(fields, "metadata"),
    appMetadata: importedMetadata(fields, "appMetadata"),
  };
  fields.refuseUnknown();
  return user;
}

function idField(fields: Fields): string | undefined {
  const id = fields.text("id", { minLength: 1, maxLength: ID_MAX_CHARACTERS });
  if (id === undefined || (ID.test(id) && !RESERVED_IDS.has(id))) return id;
  if (id !== "." && id !== "..") {
    return fields.problem("id", "invalid_value", "id must not hold control characters or /, nor be a reserved word");
  }
  return fields.problem("id", "invalid_value", `id must not be "${id}", which no URL can name`);
}

/** One of the two. */
function passwordFields(fields: Fields, options: ImportOptions): Pick<NewAccount, "password" | "passwordHash"> {
  const password = fields.value("password") ?? undefined;
  const passwordHash = fields.text("passwordHash", { maxLength: PASSWORD_HASH_MAX_CHARACTERS });
  const hasHash = (fields.value("passwordHash") ?? undefined) !== undefined;
  if (password === undefined && !hasHash) {
    fields.problem("password", "required", "password or passwordHash is required");
  } else if (password !== undefined && hasHash) {
    fields.problem("password", "invalid_value", "password and passwordHash exclude each other");
  } else if (password !== undefined && typeof password !== "string") {
    fields.problem("password", "invalid_type", "password must be a string");
  } else if (typeof password === "string") {
    checkPassword(fields, "password", password, options.passwordMinLength);
    return { password };
  } else if (passwordHash !== undefined) {
    const problem = options.passwordHashProblem(passwordHash);
    if (problem !== null) fields.problem("passwordHash", "invalid_value", `passwordHash ${problem}`);
  }
  return { passwordHash };
}

/** Here a size over the limit is one user's problem among others. Decisions 7. */
function importedMetadata(fields: Fields, name: "metadata" | "appMetadata"): JsonObject | undefined {
  const value = fields.object(name);
  if (value === undefined || Buffer.byteLength(JSON.stringify(value)) <= METADATA_MAX_BYTES) return value;
  return fields.problem(name, "too_large", `${name} must be at most ${METADATA_MAX_BYTES} bytes of JSON`);
}
