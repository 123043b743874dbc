import ipaddr from "ipaddr.js";
import { isIsoDateTime } from "../kernel/iso-datetime.ts";
import { nameProblem } from "./names.ts";
import { rsaKey, vapidPublicKey } from "./push-keys.ts";
import { scopeProblem } from "./scope-syntax.ts";
import { serviceKeyProblem } from "./service-key-text.ts";
import {
  boolean,
  booleanOrFunction,
  type Check,
  describe,
  duration,
  isPlainObject,
  list,
  members,
  named,
  oneOf,
  secretText,
  text,
  textWith,
  url,
  whole,
} from "./shape.ts";

/** sqlite-vec's own bound. */
export const VECTOR_DIMENSIONS_MAX = 8192;
const THUMB_PIXELS_MAX = 4096;
const THUMBS_AT_ONCE_LIMIT = 16;
const THUMB_MEGAPIXELS_LIMIT = 256;

export const objectStore = members(
  {
    endpoint: url("https", "http"),
    bucket: text,
    region: text,
    accessKeyId: text,
    secretAccessKey: secretText,
    prefix: text,
  },
  ["endpoint", "bucket", "accessKeyId", "secretAccessKey"],
);

const thumb = textWith((value) => {
  const [, width, height] = /^(\d{1,4})x(\d{1,4})$/.exec(value) ?? [];
  const isRight = [width, height].every((side) => Number(side) >= 1 && Number(side) <= THUMB_PIXELS_MAX);
  return isRight ? null : `must be WIDTHxHEIGHT in pixels up to ${THUMB_PIXELS_MAX}, as in 200x200, got "${value}"`;
});

export const checkStorage = members(
  {
    buckets: named(
      nameProblem,
      members({
        maxFileSize: whole({ min: 1, unit: "bytes" }),
        access: members({ read: booleanOrFunction, write: booleanOrFunction, delete: booleanOrFunction }),
        inline: boolean,
        thumbs: list(thumb, { isEmptyAllowed: true }),
        backend: members({ s3: objectStore }, ["s3"]),
      }),
    ),
    thumbs: members({
      atOnce: whole({ min: 1, max: THUMBS_AT_ONCE_LIMIT }),
      maxMegapixels: whole({ min: 1, max: THUMB_MEGAPIXELS_LIMIT, unit: "megapixels" }),
    }),
  },
  ["buckets"],
);

/** kv namespaces and SQL databases: a name, and nothing to say about it. */
export const checkDeclared = named(nameProblem, members({}));

export const checkVectorize = named(
  nameProblem,
  members(
    {
      dimensions: whole({ min: 1, max: VECTOR_DIMENSIONS_MAX }),
      metric: oneOf("cosine", "euclidean", "dot-product"),
    },
    ["dimensions"],
  ),
);

export const checkRealtime = members({
  access: members({ broadcast: booleanOrFunction, presence: booleanOrFunction }),
  authTimeout: duration("milliseconds"),
  pendingPerAddress: whole({ min: 1, unit: "connections" }),
  presenceTtl: duration("milliseconds"),
  batchThreshold: whole({ min: 1 }),
  messageRate: whole({ min: 1, unit: "messages a second" }),
});

const serviceAccount: Check = (value, report) => {
  if (typeof value === "string") return text(value, report);
  if (!isPlainObject(value))
    return report.say(`must be the account's JSON or the path of its file, got ${describe(value)}`);
  // Google's file has more members than these, which may stay.
  const isEmail = secretText(value["client_email"], report.at("client_email"));
  const key = value["private_key"];
  if (!secretText(key, report.at("private_key")) || typeof key !== "string") return false;
  return isEmail && (rsaKey(key) !== null || report.at("private_key").say("must be an RSA key in PEM"));
};

const base64url = textWith((value) =>
  /^[A-Za-z0-9_-]+={0,2}$/.test(value) ? null : "must be base64url, as VAPID keys are",
);

const vapid = members({ subject: url("mailto", "https"), publicKey: base64url, privateKey: base64url }, [
  "subject",
  "publicKey",
  "privateKey",
]);

const webPush: Check = (value, report) => {
  if (!vapid(value, report) || !isPlainObject(value)) return false;
  // `vapid` has seen that both are text.
  const publicKey = vapidPublicKey(value["privateKey"] as string);
  if (publicKey === null) return report.at("privateKey").say("must be a VAPID private key: 32 bytes in base64url");
  return (
    (value["publicKey"] as string).replace(/=+$/, "") === publicKey ||
    report.at("publicKey").say("must be the public key that belongs to privateKey")
  );
};

export const checkPush = members({
  fcm: members(
    { projectId: text, serviceAccount, endpoint: url("https", "http"), tokenEndpoint: url("https", "http") },
    ["projectId", "serviceAccount"],
  ),
  webPush,
});

const limit = members({ requests: whole({ min: 1 }), window: duration("seconds") }, ["requests", "window"]);
export const checkRateLimits = members({ global: limit, auth: limit, signin: limit, signup: limit, events: limit });

const address = textWith((value) => {
  const isRight = value.includes("/") ? ipaddr.isValidCIDR(value) : ipaddr.isValid(value);
  return isRight ? null : `must be an address or a range such as 10.0.0.0/8, got ${describe(value)}`;
});

const serviceKeyText: Check = (value, report) => {
  if (!secretText(value, report)) return false;
  // secretText has seen that it is one.
  const problem = serviceKeyProblem(value as string);
  return problem === null || report.say(problem);
};

const serviceKey = members(
  {
    key: serviceKeyText,
    scopes: list(textWith(scopeProblem), { isEmptyAllowed: true }),
    expiresAt: textWith((value) =>
      isIsoDateTime(value) ? null : `must be an ISO 8601 date and time, got ${describe(value)}`,
    ),
    ips: list(address),
  },
  ["key"],
);

export const checkServiceKeys: Check = (value, report) => {
  const isRight = named(serviceKeyNameProblem, serviceKey)(value, report);
  if (!isPlainObject(value)) return false;
  const nameByKey = new Map<unknown, string>();
  let isEachOnce = true;
  for (const [name, entry] of Object.entries(value)) {
    const key: unknown = isPlainObject(entry) ? entry["key"] : undefined;
    const twin = nameByKey.get(key);
    if (key === undefined) continue;
    nameByKey.set(key, name);
    if (twin !== undefined) isEachOnce = report.at(name).at("key").say(`is the key of ${twin} as well`);
  }
  return isRight && isEachOnce;
};

const serviceKeyNameProblem = (name: string): string | null =>
  name === "root" ? "is what the key of the data directory is called" : nameProblem(name);
