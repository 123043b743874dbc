import { asksForSignIn, faultOf } from "./faults.ts";
import { askAgain } from "./finish.ts";
import type { Form } from "./forms.ts";
import type { Answer, Done, Handled } from "./layout.ts";
import { PHONE_FORMS } from "./phone-forms.ts";
import { leadToLink } from "./provider-pages.ts";
import { parsed } from "./sign-in-pages.ts";
import { filled } from "./texts/languages.ts";
import type { Visitor } from "./visitor.ts";

// What the forms of the account page do. Each is a request of its own to an endpoint, with the rights of the session.

export const isAnswer = (handled: Handled): handled is Answer => "location" in handled || "body" in handled;

/** Does what a form asks for. */
export async function handleAccountForm(visitor: Visitor, form: Form): Promise<Handled> {
  const { texts } = visitor.language;
  const id = encodeURIComponent(form.text("id"));
  const done: Done = (answer, section, notice = texts.saved) => {
    if (asksForSignIn(answer)) return askAgain(visitor);
    if (!answer.ok) return { fault: faultOf(answer), section };
    visitor.visit.notice = notice;
    return { location: visitor.path("account") };
  };
  const action = form.text("action");
  if (Object.hasOwn(PHONE_FORMS, action)) return (await PHONE_FORMS[action]?.(visitor, form, done)) ?? {};
  switch (action) {
    case "sign-out":
      await visitor.endSession();
      visitor.visit.notice = texts.signedOut;
      return { location: visitor.path("sign-in") };
    case "name":
      return done(
        await visitor.call("PATCH /api/auth/me", { body: { displayName: form.text("name").trim() } }),
        "name",
      );
    case "picture":
      return changePicture(visitor, form);
    case "email":
      return changeEmail(visitor, form);
    case "verification":
      return done(
        await visitor.call("POST /api/auth/request-email-verification", { body: {} }),
        "email",
        filled(texts.verifySentText, { email: visitor.session?.account.email ?? "" }),
      );
    case "password":
      return changePassword(visitor, form);
    case "mail-password": {
      const email = visitor.session?.account.email ?? "";
      const answer = await visitor.call("POST /api/auth/request-password-reset", {
        body: { email },
        accessToken: null,
      });
      return done(answer, "password", filled(texts.mailSentText, { email }));
    }
    case "passkey": {
      const body = parsed(form.text("passkey"));
      return done(await visitor.call("POST /api/auth/passkeys/register", { body }), "passkeys");
    }
    case "passkey-remove":
      return done(await visitor.call(`DELETE /api/auth/passkeys/${id}`), "passkeys");
    case "factor-begin": {
      const answer = await visitor.call("POST /api/auth/mfa/totp/enroll");
      return answer.ok ? { enrolment: answer.body, section: "factor" } : done(answer, "factor");
    }
    case "factor-verify": {
      const body = { factorId: form.text("factorId"), code: codeOf(form) };
      const answer = await visitor.call("POST /api/auth/mfa/totp/verify", { body });
      if (answer.ok || answer.status !== 400) return done(answer, "factor");
      return { fault: faultOf(answer), section: "factor", enrolment: { factorId: body.factorId } };
    }
    case "factor-remove":
      return done(await visitor.call("DELETE /api/auth/mfa/totp", { body: { code: codeOf(form) } }), "factor");
    case "session-end":
      return done(await visitor.call(`DELETE /api/auth/sessions/${id}`), "sessions");
    case "identity-remove":
      return done(await visitor.call(`DELETE /api/auth/identities/${id}`), "providers");
    case "identity-link":
      return (
        (await leadToLink(visitor, form.text("id"))) ?? {
          fault: { status: 502, text: "providerFailed" },
          section: "providers",
        }
      );
    case "delete":
      return deleteAccount(visitor, form);
    default:
      return { fault: { status: 400, text: "failed" } };
  }
}

const codeOf = (form: Form): string => form.text("code").replaceAll(/\s/g, "");

async function changeEmail(visitor: Visitor, form: Form): Promise<Handled> {
  const [newEmail, password] = [form.text("newEmail"), form.text("emailPassword")];
  const body = { newEmail, ...(password === "" ? {} : { password }) };
  const answer = await visitor.call("POST /api/auth/change-email", { body });
  if (asksForSignIn(answer)) return askAgain(visitor);
  if (!answer.ok) {
    const fault = faultOf(answer);
    return { fault: fault.text === "weakPassword" ? { status: 401, text: "wrongPassword" } : fault, section: "email" };
  }
  visitor.visit.notice = filled(visitor.language.texts.emailChangeSent, { email: newEmail });
  return { location: visitor.path("account") };
}

async function changePassword(visitor: Visitor, form: Form): Promise<Handled> {
  const { session } = visitor;
  const body = { currentPassword: form.text("currentPassword"), newPassword: form.text("newPassword") };
  const answer = await visitor.call("POST /api/auth/change-password", { body });
  if (!answer.ok) {
    const isCurrent = "currentPassword" in Object(answer.body["data"]);
    return { fault: isCurrent ? { status: 401, text: "wrongPassword" } : faultOf(answer), section: "password" };
  }
  // Earlier cookies of the session count no longer, as its tokens do.
  if (session !== null) visitor.keepSession({ ...session, tokenVersion: session.tokenVersion + 1 });
  visitor.visit.notice = visitor.language.texts.saved;
  return { location: visitor.path("account") };
}

async function deleteAccount(visitor: Visitor, form: Form): Promise<Handled> {
  const { texts } = visitor.language;
  if (form.text("sure") !== "1") return { fault: { status: 400, text: "failed" }, section: "deletion" };
  const answer = await visitor.call("DELETE /api/auth/me");
  if (asksForSignIn(answer)) return askAgain(visitor);
  if (!answer.ok) return { fault: faultOf(answer), section: "deletion" };
  visitor.dropSession();
  visitor.visit.notice = texts.deleted;
  return { location: visitor.path("sign-in") };
}

/** Endings of pictures by what they are; others may hold scripts. */
const PICTURES: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/gif": "gif",
};

/** Puts a picture into the bucket of the config, by the bucket's own rules, and removes the one before. */
async function changePicture(visitor: Visitor, form: Form): Promise<Handled> {
  const { deps, session } = visitor;
  const { pictures: bucket } = deps.config;
  const { picture } = form;
  const ending = picture === null ? undefined : PICTURES[picture.type];
  const refused = { fault: { status: 400, text: "pictureRefused" }, section: "name" } as const;
  if (bucket === undefined || session === null || picture === null || ending === undefined) return refused;
  const key = `${session.account.id}/${deps.auth.ids.uuid()}.${ending}`;
  const upload = new FormData();
  upload.set("key", key);
  upload.set("file", picture, `picture.${ending}`);
  const request = new Response(upload);
  const contentType = request.headers.get("content-type") ?? "";
  const content = new Uint8Array(await request.arrayBuffer());
  const stored = await visitor.call(`POST /api/storage/${bucket}/upload`, { bytes: { content, contentType } });
  if (!stored.ok) return { fault: { status: stored.status, text: "pictureRefused" }, section: "name" };
  const before = pictureKey(visitor);
  const avatarUrl = `${deps.auth.publicUrl()}/api/storage/${bucket}/${key}`;
  const answer = await visitor.call("PATCH /api/auth/me", { body: { avatarUrl } });
  if (!answer.ok) return { fault: faultOf(answer), section: "name" };
  // Where the rules forbid it, it stays.
  if (before !== null) await visitor.call(`DELETE /api/storage/${bucket}/${before}`);
  visitor.visit.notice = visitor.language.texts.saved;
  return { location: visitor.path("account") };
}

/** Returns the key of the user's picture, if it is in the bucket of the config. */
export function pictureKey({ deps, session }: Visitor): string | null {
  const { pictures: bucket } = deps.config;
  const beginning = `${deps.auth.publicUrl()}/api/storage/${bucket}/`;
  const address = session?.account.avatarUrl ?? "";
  return bucket !== undefined && address.startsWith(beginning) ? address.slice(beginning.length) : null;
}
