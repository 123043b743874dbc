import type { Clock } from "../../../kernel/clock.ts";
import type { WebhookConfig } from "../../config/types.ts";
import type { OutgoingAnswer } from "../../http/outgoing/call.ts";
import { ANSWER_KEPT_BYTES, ANSWER_READ_MS, CONTENT_TYPE_MAX_LENGTH, HIDDEN_MIN_LENGTH } from "./limits.ts";

/** Answer of a receiver, as administrators see it. */
export interface ReceiverAnswer {
  status: number;
  /** Media type without parameters; null: the answer named none. */
  contentType: string | null;
  /** The beginning of the body, without the secrets of the config. */
  body: string;
  /** Whether there was more of the body. */
  isCut: boolean;
}

const HIDDEN = "[hidden]";

/** Reads the beginning of a body, and drops the rest of it. Never fails: a body that breaks off counts as ended there. */
export async function answerOf(answer: OutgoingAnswer, config: WebhookConfig, clock: Clock): Promise<ReceiverAnswer> {
  const { bytes, isCut } = await beginningOf(answer, clock);
  const type = answer.headers.get("content-type")?.split(";")[0]?.trim() ?? "";
  const secrets = secretsOf(config);
  return {
    status: answer.status,
    contentType: type === "" ? null : withoutSecrets(type, secrets).slice(0, CONTENT_TYPE_MAX_LENGTH),
    body: withoutSecrets(new TextDecoder().decode(bytes), secrets),
    isCut,
  };
}

async function beginningOf(answer: OutgoingAnswer, clock: Clock): Promise<{ bytes: Uint8Array; isCut: boolean }> {
  if ((answer.headers.get("content-encoding") ?? "identity") !== "identity") {
    // The answer is compressed, although that was not requested: nobody can read it, nor find secrets in it.
    answer.drop();
    return { bytes: new Uint8Array(), isCut: true };
  }
  const reading = new AbortController();
  const cancelTimer = clock.after(ANSWER_READ_MS, () => reading.abort());
  try {
    return await answer.read({ maxBytes: ANSWER_KEPT_BYTES, until: reading.signal });
  } finally {
    cancelTimer();
  }
}

/** Returns the secrets of the config, the longest first: a receiver that echoes the request in its answer would reveal them. */
function secretsOf({ url, secret, headers = {} }: WebhookConfig): readonly string[] {
  const { href, host, pathname, search, searchParams, username, password } = new URL(url);
  const address = [url, href, host, `${pathname}${search}`, search, ...searchParams.values(), username, password];
  const credentials = Object.values(headers).flatMap((value) => [value, value.slice(value.indexOf(" ") + 1)]);
  const all = [...address, secret, secret.replace(/^whsec_/, ""), ...credentials];
  return [...new Set(all.flatMap(writtenForms))]
    .filter((text) => text.length >= HIDDEN_MIN_LENGTH)
    .toSorted((one, other) => other.length - one.length);
}

/** Returns a text as it is, and as it is within JSON; some encoders escape slashes there. */
function writtenForms(text: string): string[] {
  const inJson = JSON.stringify(text).slice(1, -1);
  return [text, inJson, inJson.replaceAll("/", "\\/")];
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  let shown = text;
  for (const secret of secrets) shown = shown.replaceAll(secret, HIDDEN);
  // Hides a secret that is cut off at the end of the read part.
  for (const secret of secrets) {
    for (let length = Math.min(secret.length, shown.length); length >= HIDDEN_MIN_LENGTH; length--) {
      if (!shown.endsWith(secret.slice(0, length))) continue;
      shown = `${shown.slice(0, -length)}${HIDDEN}`;
      break;
    }
  }
  return shown;
}
