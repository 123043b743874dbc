import { isJsonObject } from "../../../../kernel/json/json.ts";
import type { PageTexts } from "../../../config/sections/page-texts.ts";
import type { ApiAnswer } from "./api.ts";

type TextName = Exclude<keyof PageTexts, "dir">;

/** Message of a page about a refused request. */
export interface Fault {
  status: number;
  text: TextName;
}

const OF_FIELDS: Readonly<Record<string, TextName>> = {
  email: "wrongEmail",
  newEmail: "wrongEmail",
  password: "weakPassword",
  newPassword: "weakPassword",
  phone: "wrongPhone",
  newPhone: "wrongPhone",
  displayName: "wrongName",
  captchaToken: "captchaFailed",
  token: "linkInvalid",
  code: "wrongCode",
  recoveryCode: "wrongCode",
  mfaTicket: "signInExpired",
  codeVerifier: "signInExpired",
  response: "passkeyFailed",
};

const OF_MESSAGES: Readonly<Record<string, TextName>> = {
  "Invalid email or password": "wrongCredentials",
  "Invalid password": "wrongPassword",
  "Account is disabled": "accountDisabled",
  "Email not verified": "emailNotVerified",
  "Email required": "emailRequired",
  "Sign-up is closed": "signUpClosed",
  "Sign in again": "signInAgain",
  "This email address already has an account": "emailTaken",
  "This phone number already has an account": "phoneTaken",
  "The phone is the second factor: sign in in another way": "phoneIsFactor",
  "This email address has an account, and is not verified on both sides: sign in to it another way": "emailTaken",
  "Another account signs in with this identity": "identityTaken",
  "The invitation is for another account": "otherAccount",
  "This is the only way to sign in to this account": "lastWayIn",
  "The phone is the only way to sign in to this account, and cannot be its second factor too": "lastWayIn",
  "The authenticator's response does not check": "passkeyFailed",
  "This passkey is registered already": "passkeyFailed",
};

/** Returns what a page says of an answer that is not what was asked for. */
export function faultOf({ status, body }: ApiAnswer): Fault {
  const { message, data } = body;
  const ofMessage =
    typeof message === "string" && Object.hasOwn(OF_MESSAGES, message) ? OF_MESSAGES[message] : undefined;
  if (ofMessage !== undefined) return { status, text: ofMessage };
  const [field = ""] = isJsonObject(data) ? Object.keys(data) : [];
  const ofField = Object.hasOwn(OF_FIELDS, field) ? OF_FIELDS[field] : undefined;
  if (ofField !== undefined) return { status, text: ofField };
  if (status === 429) return { status, text: "tooMany" };
  if (status === 503 || status === 502) return { status, text: "tryLater" };
  return { status, text: status === 404 ? "notFound" : "failed" };
}

/** Whether the answer asks for a sign-in of the last ten minutes, or its session has ended. */
export const asksForSignIn = ({ status, body }: ApiAnswer): boolean =>
  status === 401 &&
  (body["message"] === "Sign in again" || body["message"] === "Invalid token" || body["message"] === "Token expired");
