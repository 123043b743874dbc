import type { SendText, TextContext } from "./sections/auth-phones.ts";

// Ready senders of texts for `auth.phones.send`. Each sends once: a failure is logged, and the person asks for another code.

async function post(context: TextContext, url: string, headers: Record<string, string>, body: string): Promise<void> {
  const status = await context.post(url, { headers, body });
  if (status < 200 || status > 299) throw new Error(`${new URL(url).host} answered ${status}`);
}

/**
 * Sends texts by Twilio. `from`: a number of yours, or the id of a messaging service (`MG…`). `endpoint`: Twilio's own by default; for
 * tests and proxies. Errors of the function: no answer within 10 s, or one that is not 2xx.
 */
export function twilioSender({
  accountSid,
  authToken,
  from,
  endpoint = "https://api.twilio.com",
}: {
  accountSid: string;
  authToken: string;
  from: string;
  endpoint?: string;
}): SendText {
  const url = `${endpoint}/2010-04-01/Accounts/${encodeURIComponent(accountSid)}/Messages.json`;
  const headers = {
    authorization: `Basic ${Buffer.from(`${accountSid}:${authToken}`).toString("base64")}`,
    "content-type": "application/x-www-form-urlencoded",
  };
  const sender = from.startsWith("MG") ? "MessagingServiceSid" : "From";
  return (_app, { to, text }, context) =>
    post(context, url, headers, new URLSearchParams({ To: to, [sender]: from, Body: text }).toString());
}

/**
 * Sends texts as JSON `{ to, code, text }` to an address of yours, signed as Standard Webhooks specify. `secret`: base64, with or
 * without `whsec_`. Errors of the function: no answer within 10 s, or one that is not 2xx.
 */
export function webhookSender({ url, secret }: { url: string; secret: string }): SendText {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  return (_app, message, context) => {
    const { id, timestamp } = context;
    const body = JSON.stringify(message);
    const signed = new Bun.CryptoHasher("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
    const headers = {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": `v1,${signed}`,
    };
    return post(context, url, headers, body);
  };
}
