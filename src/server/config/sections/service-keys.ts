import { type Static, Type } from "typebox";
import { isIsoDateTime } from "../../../kernel/time/iso-datetime.ts";
import { serviceKeyProblem } from "../secrets/service-key-text.ts";
import { nameProblem } from "../shape/names.ts";
import { describe, isPlainObject } from "../shape/report.ts";
import { list, named, refined, related, secretText, textWith } from "../shape/schema.ts";
import { addressRange } from "./network/proxies.ts";
import { scopeProblem } from "./scope-syntax.ts";

const keyText = refined(secretText(), (value, report) => {
  const problem = serviceKeyProblem(value);
  if (problem !== null) report.say(problem);
});

const expiry = textWith((value) =>
  isIsoDateTime(value) ? null : `must be an ISO 8601 date and time, got ${describe(value)}`,
);

const ServiceKey = Type.Object({
  key: keyText,
  /** The scopes, of four parts each, `*` for any. Absent: every right. */
  scopes: Type.Optional(list(textWith(scopeProblem), { minItems: 0 })),
  /** The expiry in ISO 8601. */
  expiresAt: Type.Optional(expiry),
  /** The allowed addresses or CIDR ranges. */
  ips: Type.Optional(list(addressRange())),
});
export interface ServiceKeyConfig extends Static<typeof ServiceKey> {}

const keyNameProblem = (name: string): string | null =>
  name === "root" ? "is the name of the data directory's own key" : nameProblem(name);

export const ServiceKeys = related(named(Type.Unsafe<ServiceKeyConfig>(ServiceKey), keyNameProblem), (keys, report) => {
  const nameByKey = new Map<unknown, string>();
  for (const [name, entry] of Object.entries(keys)) {
    const key: unknown = isPlainObject(entry) ? entry["key"] : undefined;
    if (key === undefined) continue;
    const twin = nameByKey.get(key);
    if (twin !== undefined) report.at(name).at("key").say(`is also the key of ${twin}`);
    nameByKey.set(key, name);
  }
});
