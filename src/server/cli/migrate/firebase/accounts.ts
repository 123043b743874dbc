import { isJsonObject, type JsonObject } from "../../../../kernel/json/json.ts";
import { KNOWN_PROVIDERS } from "../../../config/sections/oauth-providers.ts";
import { CommandError } from "../../errors.ts";
import type { Account } from "../load/accounts.ts";
import type { Remarks } from "../remarks.ts";
import type { MovedAccounts } from "../supabase/accounts.ts";

/** Parameters of a project's scrypt, which all its hashes share. */
export interface HashParameters {
  signerKey: string;
  saltSeparator: string;
  rounds: number;
  memCost: number;
}

const RENAMED: Readonly<Record<string, string>> = { twitter: "x" };
/** Providers that need more than an id and a secret. */
const UNMOVABLE: ReadonlySet<string> = new Set(["apple"]);
const DISPLAY_NAME_MAX_CHARACTERS = 256;

/** Parses `--hash-parameters`. Errors: CommandError. */
export function hashParameters(text: string, file: string): HashParameters {
  const given = parsed(text, file);
  const { algorithm, base64_signer_key: key, base64_salt_separator: separator, rounds, mem_cost: memory } = given;
  if (algorithm !== "SCRYPT")
    throw new CommandError(`${file}: algorithm must be SCRYPT, got ${JSON.stringify(algorithm)}`);
  if (
    typeof key !== "string" ||
    typeof separator !== "string" ||
    typeof rounds !== "number" ||
    typeof memory !== "number"
  ) {
    throw new CommandError(`${file} must have base64_signer_key, base64_salt_separator, rounds and mem_cost`);
  }
  return { signerKey: plain(key), saltSeparator: plain(separator), rounds, memCost: memory };
}

function parsed(text: string, file: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch {
    // Said below.
  }
  throw new CommandError(`${file} is no JSON object`);
}

/** Returns base64 in its first form; exports have the one for URLs too. */
const plain = (text: string): string => text.replaceAll("-", "+").replaceAll("_", "/");

/** Reads what `firebase auth:export` writes as JSON. Errors: CommandError for another file. */
export function accountsIn(
  text: string,
  file: string,
  parameters: HashParameters | null,
  remarks: Remarks,
): MovedAccounts {
  const { users } = parsed(text, file);
  if (!Array.isArray(users)) throw new CommandError(`${file} has no users: name the JSON of firebase auth:export`);
  const providers = new Set<string>();
  const accounts: Account[] = [];
  const taken = new Map<string, string>();
  let withoutParameters = 0;
  for (const user of users.filter(isJsonObject)) {
    const [id, email] = [String(user["localId"] ?? ""), String(user["email"] ?? "")];
    const other = taken.get(email.toLowerCase());
    if (email === "") remarks.lost("accounts", `the account ${id}, which has no address`);
    else if (other !== undefined) remarks.lost("accounts", `the account ${id}: ${other} has its address`);
    else {
      taken.set(email.toLowerCase(), id);
      const hash = hashOf(user, parameters);
      if (hash === null && typeof user["passwordHash"] === "string") withoutParameters += 1;
      accounts.push(accountOf(user, { id, email, hash, identities: identitiesOf(user, providers, remarks) }));
    }
  }
  if (withoutParameters > 0) {
    const text = `${withoutParameters} passwords, whose parameters are not known: give them by --hash-parameters`;
    remarks.lost("accounts", text);
  }
  if (accounts.some((one) => one["appMetadata"] !== undefined)) {
    remarks.look("accounts", "custom claims are in `appMetadata` here, which rules do not see: give users a `role`");
  }
  // Whoever has not confirmed the address signs in there too.
  return { accounts, providers: [...providers].sort(), hasUnconfirmed: false };
}

function hashOf({ passwordHash, salt }: JsonObject, parameters: HashParameters | null): string | null {
  if (typeof passwordHash !== "string" || typeof salt !== "string" || parameters === null) return null;
  const { signerKey, saltSeparator, rounds, memCost } = parameters;
  return `$firebase-scrypt$ln=${memCost},r=${rounds}$${plain(salt)}$${saltSeparator}$${signerKey}$${plain(passwordHash)}`;
}

function accountOf(
  user: JsonObject,
  { id, email, hash, identities }: { id: string; email: string; hash: string | null; identities: JsonObject[] },
): Account {
  const created = Number(user["createdAt"] ?? Number.NaN);
  const name = String(user["displayName"] ?? "");
  const claims = claimsOf(user);
  return {
    id,
    email,
    ...(hash === null ? {} : { passwordHash: hash }),
    ...(name === "" ? {} : { displayName: [...name].slice(0, DISPLAY_NAME_MAX_CHARACTERS).join("") }),
    verified: user["emailVerified"] === true,
    disabled: user["disabled"] === true,
    ...(Number.isSafeInteger(created) ? { createdAt: new Date(created).toISOString() } : {}),
    ...(claims === null ? {} : { appMetadata: claims }),
    ...(identities.length === 0 ? {} : { identities }),
  };
}

function claimsOf({ customAttributes }: JsonObject): JsonObject | null {
  try {
    const claims: unknown = typeof customAttributes === "string" ? JSON.parse(customAttributes) : null;
    return isJsonObject(claims) && Object.keys(claims).length > 0 ? { customClaims: claims } : null;
  } catch {
    return null;
  }
}

function identitiesOf({ providerUserInfo }: JsonObject, providers: Set<string>, remarks: Remarks): JsonObject[] {
  const infos = Array.isArray(providerUserInfo) ? providerUserInfo.filter(isJsonObject) : [];
  return infos.flatMap(({ providerId, rawId }): JsonObject[] => {
    const there = String(providerId);
    if (there === "password" || there === "phone") return [];
    const name = there.replace(/\.com$/, "");
    const provider = RENAMED[name] ?? name;
    if (!KNOWN_PROVIDERS.some((known) => known === provider) || UNMOVABLE.has(provider) || typeof rawId !== "string") {
      remarks.lost(
        "accounts",
        `identities of ${there}: add it to auth.oauth, and its accounts are found by their address`,
      );
      return [];
    }
    providers.add(provider);
    return [{ provider, subject: rawId }];
  });
}
